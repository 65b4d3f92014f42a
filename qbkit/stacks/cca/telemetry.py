"""A row of sender.csv: what a controller says, beside what the driver reads from aioquic."""

from __future__ import annotations

import math
import time
from typing import Any, cast

from aioquic.quic.connection import QuicConnection
from aioquic.tls import Epoch
from aioquic_flow import telemetry

from .base import Controller
from .bbr import Bbr

COLUMNS = (
    "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,min_rtt_ms,"
    "pacing_rate_mbps,delivery_rate_mbps,lost_packets,state\n"
)


def install() -> None:
    """The driver's file gets these columns."""
    telemetry.COLUMNS = COLUMNS
    telemetry._row = row


def row(connection: QuicConnection) -> str:
    """Empty cells where there is no value yet, or never for this controller."""
    loss = connection._loss
    control = cast(Controller, loss._cc)
    rtts_s: tuple[float, ...] = (loss._rtt_smoothed, loss._rtt_latest, loss._rtt_min)
    delivery = math.nan
    if isinstance(control, Bbr):
        rtts_s = (*rtts_s[:2], control.min_rtt.value_s)  # the model's, which may be wrong
        delivery = control.bandwidth.value * 8e-6 or math.nan
    if not math.isfinite(loss._rtt_min):
        rtts_s = (math.nan,) * 3
    numbers = [1e3 * rtt_s for rtt_s in rtts_s] + [_pacing_mbps(loss._pacer), delivery]
    cells = [
        time.time_ns(),
        control.congestion_window,
        control.bytes_in_flight,
        "" if control.ssthresh is None else control.ssthresh,
        *("" if math.isnan(number) else f"{number:.6f}" for number in numbers),
        control.lost_packets,
        control.state or telemetry._state(loss, connection._spaces.get(Epoch.ONE_RTT)),
    ]
    return ",".join(map(str, cells)) + "\n"


def _pacing_mbps(pacer: Any) -> float:
    """NaN where nothing holds packets back."""
    rate = getattr(pacer, "rate_bytes_per_s", 0)
    if pacer.packet_time:
        rate = pacer._max_datagram_size / pacer.packet_time
    return rate * 8e-6 if rate else math.nan
