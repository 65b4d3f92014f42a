"""The configuration of both ends, beyond aioquic's defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aioquic.quic.configuration import QuicConfiguration

from .qlog import StreamingLogger

ALPN = "perf"
SERVER_NAME = "qbkit"
WINDOW_BYTES = 128 << 20
"""Initial flow-control window; aioquic doubles a window that is half used, so it never limits."""
DATAGRAM_BYTES = 1452
"""UDP payload that fills an MTU of 1500 over IPv6, and the maximum that quic-go accepts. aioquic
does not discover the path's MTU; its default of 1200 is for unknown paths."""
IDLE_TIMEOUT_S = 600.0


def configuration(out: str, qlog: bool, **more: Any) -> QuicConfiguration:
    """The configuration; ACKs, pacing and initial window (in packets) stay aioquic's."""
    return QuicConfiguration(
        alpn_protocols=[ALPN],
        max_data=WINDOW_BYTES,
        max_stream_data=WINDOW_BYTES,
        max_datagram_size=DATAGRAM_BYTES,
        idle_timeout=IDLE_TIMEOUT_S,
        quic_logger=StreamingLogger(Path(out)) if qlog else None,
        **more,
    )
