"""The state of aioquic's congestion control as rows of sender.csv, at most every 10 ms."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from aioquic.quic.connection import QuicConnection
from aioquic.tls import Epoch

SAMPLE_S = 0.01
BUFFER_BYTES = 1 << 17
COLUMNS = (
    "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,min_rtt_ms,"
    "pacing_rate_mbps,state\n"
)


class Telemetry:
    """Samples the recovery state of a connection into ``sender.csv``, in few writes."""

    def __init__(self, out: str, connection: QuicConnection) -> None:
        self._connection = connection
        self._file = (Path(out) / "sender.csv").open("w", buffering=BUFFER_BYTES)
        self._file.write(COLUMNS)
        self._next_s = -math.inf

    def sample(self, now_s: float) -> None:
        """Add a row if it is time for one."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + SAMPLE_S
        self._file.write(_row(self._connection))

    def close(self) -> None:
        """Add the last row and write out."""
        self._file.write(_row(self._connection))
        self._file.close()


def _row(connection: QuicConnection) -> str:
    """A row; cells are empty while aioquic has no value: before the first RTT or loss."""
    loss = connection._loss
    rtts = ",,"
    if math.isfinite(loss._rtt_min):
        values_ms = (1e3 * s for s in (loss._rtt_smoothed, loss._rtt_latest, loss._rtt_min))
        rtts = ",".join(f"{value:.3f}" for value in values_ms)
    ssthresh = "" if loss._cc.ssthresh is None else loss._cc.ssthresh
    pacer, pacing = loss._pacer, ""
    if pacer.packet_time:
        pacing = f"{pacer._max_datagram_size * 8e-6 / pacer.packet_time:.6f}"
    window = f"{loss.congestion_window},{loss.bytes_in_flight},{ssthresh}"
    state = _state(loss, connection._spaces.get(Epoch.ONE_RTT))
    return f"{time.time_ns()},{window},{rtts},{pacing},{state}\n"


def _state(loss: Any, space: Any) -> str:
    """Recovery lasts until nothing is in flight that was sent before it began (RFC 9002, 7.3.2)."""
    oldest = next(iter(space.sent_packets.values()), None) if space else None
    if oldest and oldest.sent_time <= loss._cc._congestion_recovery_start_time:
        return "recovery"
    ssthresh = loss._cc.ssthresh
    if ssthresh is None or loss.congestion_window < ssthresh:
        return "slow_start"
    return "congestion_avoidance"
