"""Why a load took its time: the parts of it, each with what limited it then."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, SharedLink, link_of, observe
from qbkit.metrics.parameters.limits import IDLE, STILL_RTTS, limited
from qbkit.metrics.parameters.start import start_of
from qbkit.metrics.web.loads import is_complete_load, lost_packets, measured_packets
from qbkit.traces.arrays import BoolArray, FloatArray
from qbkit.traces.run.early_end import early_end_sentences
from qbkit.traces.web.times import base_rtt_ms

HANDSHAKE, FIRST_BYTE, LINK = "handshake", "first byte", "link"
SLOW_START, LOSS, CONTROLLER = "slow start", "loss", "congestion controller"
SENDER, EITHER = "sender's buffer", "sender's buffer or receiver's window"
ROUND_TRIPS = "round trips"


def load_limits(load: xr.Dataset) -> pd.Series:
    """Seconds of a load by what limited it; they add up to the time to last byte or page load time.

    - ``handshake``, and ``first byte``: from its end to the first byte of the response.
    - ``link``: at least 90 % of its rate is used over the last base RTT.
    - ``slow start``: the window still grows by the round trip.
    - ``sender's buffer``: the link is idle, and the data in flight are constant for ten round trips
      without a loss (as `infer`'s ``limited_percent``). A buffer or a fixed window of the sender's
      program or kernel does that. Where the client's flow control may do it as well, the name is
      ``sender's buffer or receiver's window``.
    - ``loss``: the link is idle after a loss; ``congestion controller``: without one.
    - ``round trips``, for pages alone: the link is idle, as a browser has several connections and
      asks for one resource after another.

    Parts of no time are left out. Raises MetricError for a run that is no load or lacks its times,
    and for a load that ended before it was complete.
    """
    if not is_complete_load(load):
        raise MetricError(f"the load is not complete: {'; '.join(early_end_sentences(load))}")
    whole = "page_load_time_s" if "page_load_time_s" in load else "time_to_last_byte_s"
    missing = [name for name in (whole, "handshake_s", "first_byte_s") if name not in load]
    if missing or "first_packet_s" not in load.attrs:
        raise MetricError(f"the run is no load with {', '.join(missing) or 'its first packet'}")
    handshake_s, first_s, end_s = (
        float(load[name]) for name in ("handshake_s", "first_byte_s", whole)
    )
    parts = {HANDSHAKE: handshake_s, FIRST_BYTE: first_s - handshake_s}
    begin_s, rtt_s = float(load.attrs["first_packet_s"]), float(load.attrs["rtt_ms"]) / 1e3
    arrival_s = begin_s + np.arange(first_s, max(end_s, first_s + 1e-6), rtt_s / GRID_PARTS)
    words = _limits(load, arrival_s)
    shares = pd.Series(words).value_counts(normalize=True)
    found = pd.Series(parts, dtype=float).add(shares * (end_s - first_s), fill_value=0.0)
    return found[found > 0].sort_values(ascending=False).rename("seconds")


def limits_sentence(load: xr.Dataset) -> str:
    """The parts of a load in one sentence; a second one where a buffer held it longest."""
    parts = load_limits(load)
    listed = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in parts.items())
    name = str(parts.index[0])
    if name not in (SENDER, EITHER):
        return f"{parts.sum():.4g} s: {listed}."
    connection, rtt_s = observe(measured_packets(load)), float(load.attrs["rtt_ms"]) / 1e3
    held = limited(connection, _link(load))
    in_flight = float(np.median(connection.in_flight_packets[held])) * connection.packet_bytes
    return (
        f"{parts.sum():.4g} s: {listed}. The sender kept {in_flight / 1e3:.0f} kB in flight while "
        f"the link was idle and nothing was lost, which gives {in_flight * 8e-6 / rtt_s:.3g} "
        f"Mbit/s at this round-trip time: the {name} limits the load, not the network."
    )


def _limits(load: xr.Dataset, arrival_s: FloatArray) -> FloatArray:
    """What limited the data that reached the client at these times, in words."""
    link = _link(load)
    rtt_s = base_rtt_ms(load, arrival_s) / 1e3
    busy = link.used_part(arrival_s - rtt_s, arrival_s) >= IDLE
    if "page_load_time_s" in load:
        return np.where(busy, LINK, ROUND_TRIPS)
    measured = measured_packets(load)
    lost = bool(lost_packets(measured).any())
    try:
        connection = observe(measured)
    except MetricError:  # too few packets to leave slow start
        return np.where(busy, LINK, LOSS if lost else SLOW_START)
    # Data arrive half a round trip after they were sent, or later if they queue: the link is busy.
    sent_s = arrival_s - rtt_s / 2
    hosts = EITHER if load.attrs["client_limits"] else SENDER
    return np.select(
        [
            busy,
            sent_s <= start_of(connection).end_s,
            _held(connection, link, sent_s),
            np.searchsorted(connection.loss_detected_s, sent_s) > 0,
        ],
        [LINK, SLOW_START, hosts, LOSS],
        CONTROLLER,
    )


def _held(c: Connection, link: SharedLink, time_s: FloatArray) -> BoolArray:
    """Whether the hosts limit at the given times, or within the time that it takes to see it."""
    found = limited(c, link)
    lag = STILL_RTTS * GRID_PARTS
    ahead = np.concatenate([np.cumsum(found), np.full(lag, found.sum())])
    soon = ahead[lag:] > np.concatenate([[0], ahead[: len(found) - 1]])
    held: BoolArray = soon[np.clip(np.searchsorted(c.grid_s, time_s), 0, len(found) - 1)]
    return held


def _link(load: xr.Dataset) -> SharedLink:
    """The link of a load; MetricError where its rate is unknown."""
    link = link_of(load, 0)
    if link is None:
        raise MetricError("the rate of the load's link is unknown")
    return link
