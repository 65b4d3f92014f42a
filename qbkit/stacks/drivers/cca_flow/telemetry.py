"""A controller's state as rows of sender.csv, and its own values in controller.csv."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import cast

from aioquic.quic.connection import QuicConnection
from aioquic_flow.telemetry import BUFFER_BYTES, SAMPLE_S

from .adapter import Adapter
from .connection import Recovery

COLUMNS = (
    "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,min_rtt_ms,"
    "pacing_rate_mbps,delivery_rate_mbps,lost_packets,state\n"
)
STANDARD = ("min_rtt_ms", "delivery_rate_mbps")
"""Columns that take the value of `Controller.log`, if it gives one."""


class Telemetry:
    """In place of the driver's: samples every 10 ms at most, in few writes."""

    def __init__(self, out: str, connection: QuicConnection) -> None:
        self._connection = connection
        self._rows = (Path(out) / "sender.csv").open("w", buffering=BUFFER_BYTES)
        self._rows.write(COLUMNS)
        self._logged = (Path(out) / "controller.csv").open("w", buffering=BUFFER_BYTES)
        self._logged.write("time_ns,name,value\n")
        self._next_s = -math.inf

    def sample(self, now_s: float) -> None:
        """Add a row if it is time for one."""
        if now_s >= self._next_s:
            self._next_s = now_s + SAMPLE_S
            self._write()

    def close(self) -> None:
        """Add the last row and write out."""
        self._write()
        self._rows.close()
        self._logged.close()

    def _write(self) -> None:
        loss = cast(Recovery, self._connection._loss)
        adapter = cast(Adapter, loss._cc)
        adapter.guard.check_log(adapter.controller)
        now_ns, logged = time.time_ns(), adapter.controller.logged
        self._rows.write(_row(now_ns, loss, adapter))
        for name, value in logged.items():
            if name not in STANDARD:
                self._logged.write(f"{now_ns},{name},{value!r}\n")


def _row(now_ns: int, loss: Recovery, adapter: Adapter) -> str:
    """Empty cells where there is no value yet, or never for this controller."""
    controller = adapter.controller
    rtts_s: tuple[float, ...] = (loss._rtt_smoothed, loss._rtt_latest, loss._rtt_min)
    if not math.isfinite(loss._rtt_min):
        rtts_s = (math.nan,) * 3
    rtts_ms = [1e3 * rtt_s for rtt_s in rtts_s]
    numbers = [
        *rtts_ms[:2],
        controller.logged.get("min_rtt_ms", rtts_ms[2]),
        loss._pacer.rate_bytes_per_s * 8e-6,
        controller.logged.get("delivery_rate_mbps", 0.0) or math.nan,
    ]
    ssthresh = controller.ssthresh_bytes
    cells = [
        now_ns,
        adapter.congestion_window,
        adapter.bytes_in_flight,
        "" if ssthresh is None else int(ssthresh),
        *(f"{number:.6f}" if math.isfinite(number) else "" for number in numbers),
        adapter.flight.lost_packets,
        controller.state,
    ]
    return ",".join(map(str, cells)) + "\n"
