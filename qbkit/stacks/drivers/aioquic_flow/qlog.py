"""qlog written as events happen; aioquic's own logger keeps all in memory until the end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from aioquic.quic.logger import QLOG_VERSION, QuicLogger, QuicLoggerTrace

BUFFER_BYTES = 1 << 20
RECORD = "\x1e%s\n"
"""JSON text sequences, RFC 7464: qlog's format for streaming logs."""


class StreamingTrace(QuicLoggerTrace):
    """Writes the events of one connection to ``client.sqlog`` or ``server.sqlog``."""

    def __init__(self, folder: Path, *, is_client: bool, odcid: bytes) -> None:
        super().__init__(is_client=is_client, odcid=odcid)
        name = "client.sqlog" if is_client else "server.sqlog"
        self._file = (folder / name).open("w", buffering=BUFFER_BYTES)
        self._waiting: list[dict[str, Any]] = []
        trace = self.to_dict()
        del trace["events"]
        self._write({"qlog_format": "JSON-SEQ", "qlog_version": QLOG_VERSION, "trace": trace})

    def log_event(self, *, category: str, event: str, data: dict) -> None:
        """Write one event; a packet received waits until its frames are known.

        aioquic logs it before it reads them, and adds them one by one to the list in ``data``.
        """
        now_ms = self.encode_time(time.time())
        record = {"data": data, "name": f"{category}:{event}", "time": now_ms}
        if event in ("packet_received", "packet_sent"):
            self._write_waiting()
        if event == "packet_received" or self._waiting:
            self._waiting.append(record)
        else:
            self._write(record)

    def close(self) -> None:
        """Write out what is buffered."""
        self._write_waiting()
        self._file.close()

    def _write_waiting(self) -> None:
        for record in self._waiting:
            self._write(record)
        self._waiting.clear()

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(RECORD % json.dumps(record))


class StreamingLogger(QuicLogger):
    """Gives every connection its file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._files: list[StreamingTrace] = []

    def start_trace(self, is_client: bool, odcid: bytes) -> QuicLoggerTrace:
        """Open the file of a connection."""
        trace = StreamingTrace(self._folder, is_client=is_client, odcid=odcid)
        self._traces.append(trace)
        self._files.append(trace)
        return trace

    def close(self) -> None:
        """Complete the files."""
        for trace in self._files:
            trace.close()
