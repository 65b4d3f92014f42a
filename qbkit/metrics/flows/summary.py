"""Goodput, throughput, loss and RTT of each flow, as in QUIC-DC's tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.json_words import plain_rows
from qbkit.metrics.flows import lookup
from qbkit.metrics.flows.further import further_columns, is_news
from qbkit.metrics.flows.jitter import flow_jitter_ms
from qbkit.traces.run.attributes import delay_changes_ms, require_run
from qbkit.traces.run.journey import Fate

COLUMNS = (
    *("label", "stack", "controller", "goodput_mbps", "throughput_mbps"),
    *("loss_percent", "queue_loss_percent", "random_loss_percent"),
    *("rtt_mean_ms", "rtt_std_ms", "queue_delay_mean_ms"),
)


def summary(ds: xr.Dataset) -> pd.DataFrame:
    """One row per flow with the columns of `COLUMNS` (QUIC-DC, Tables I-IV); NaN is unknown.

    - ``goodput_mbps``: application bytes received over the time the flow was active (``start_s``
      to ``stop_s``); ``throughput_mbps``: frame bytes that left the queue over the same time,
      including those still in the queue at ``stop_s`` that left within the experiment. Goodput also
      has what arrives just after the end of the experiment, unless the flow has a number of bytes:
      of a flow that is active for less than about ten RTTs, it can be the larger one. A web load
      is active from the client's first packet to the last byte, and its bytes are the client's.
    - ``loss_percent``: packets that did not arrive, from any cause, of those that the flow sent
      within the experiment. Packets of unknown fate (in the queue when the capture ended) do not
      count. ``queue_loss_percent`` and ``random_loss_percent`` are its parts by cause: dropped at
      a bottleneck, or lost at random after it; NaN if captures do not show the cause (imported and
      older runs). At a bottleneck its queue drops, and so do a policer or a router whose MTU is too
      small, in front of it: captures do not tell them apart, but ``policer_dropped_packets`` and
      ``too_big_packets`` of the run count them for all flows together. Packets with a
      wrong bit (``corrupt_percent``) arrive, although receivers drop them.
    - ``rtt_mean_ms``, ``rtt_std_ms``: the RTT of a packet is the flow's base RTT plus the packet's
      queueing delay, measured passively at the bottleneck. It excludes delay inside the hosts (ACK
      delay, pacing), so it is comparable between stacks; dropped packets have none. With reverse
      traffic it includes the queueing delay of the ACK
      (`qbkit.metrics.flows.lookup.ack_delays_ms`). The mean includes what the experiment's jitter
      adds, the deviation does not. That part is an estimate for bulk transfers
      (`qbkit.metrics.flows.jitter`), and too small for flows that send bursts, such as the frames
      of an app. Both are over packets whose ACK
      came before the end: fewer than all that left only where ACKs meet a queue or loss.
    - ``queue_delay_mean_ms``: mean over all packets that left, whether or not their ACK came. It
      differs from the mean over time, in which each bin counts once. On a link whose rate changes,
      packets that it delivers only after the run count neither here nor in the RTT.

    Further columns are there if a flow has a value. Tables that are printed leave out those of
    zeros, in which nothing happened; here they stay, so that 0 is not taken for unknown:

    - ``transport``: package and version of the transport, where the stack's version counts
      another one: quinn 0.11.12 may have quinn-proto 0.11.19.
    - ``complete_s``: time from the start of a transfer of a number of bytes to its last packet, or
      "unfinished".
    - ``mean_frame_bytes``: mean size of the data packets' frames.
    - ``ce_marked_packets``: data packets that a queue marked CE.
    - ``slow_start_lost_packets``: lost packets of those sent before the stack first left slow start
      (or startup), as it reports its state.
    - ``objects``: what the flow's application released (the frames of ``media``, say), and
      ``objects_missing`` of them that did not arrive; ``object_median_ms`` and ``object_p95_ms``:
      from the release to the arrival of those that did.
    - ``late_100ms_percent``, ``late_250ms_percent``: frames that did not arrive within this time.
      ``freezes``, and ``frozen_s`` in them (`qbkit.metrics.flows.frames.freezes`). Only flows with
      a constant frame rate have these.
    - ``spurious_losses``: packets that were declared lost and arrived, as the stack reports them;
      the kernel's TCP counts duplicate SACKs, and has NaN where the network duplicates packets
      (``duplicate_percent``), which cause them as well.
    - ``ended_s``: when the flow's connection ended before its time; ``stop_s`` is the same.

    Without a packet table, the means come from the binned series, weighted by throughput. Values
    that bins do not contain are NaN: losses, deviation, and with reverse traffic the RTT; so is
    what needs a series that was not published with the run.

    Raises TraceError for what is no run, and for a run whose time or packets were cut: all of this
    is of the whole run.
    """
    require_run(ds)
    rows = [_row(ds, i) for i in range(ds.sizes["flow"])]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.assign(**further_columns(ds))


def without_zeros(table: pd.DataFrame) -> pd.DataFrame:
    """A summary to be read: without those of the further columns in which nothing happened."""
    further = [name for name in table.columns if name not in COLUMNS]
    return table.drop(columns=[name for name in further if not any(map(is_news, table[name]))])


def flow_summaries(ds: xr.Dataset) -> list[dict[str, str | float | None]]:
    """`summary` ready for JSON, without stack and controller; unknown values are None."""
    rows = summary(ds).drop(columns=["stack", "controller"]).to_dict(orient="records")
    return plain_rows(rows)


def _row(ds: xr.Dataset, index: int) -> dict[str, str | float]:
    start_s, stop_s = lookup.active_span_s(ds, index)
    active_s = stop_s - start_s or math.nan  # an imported flow of one packet
    delay_ms, rtt_ms, rtt_std_ms = _delays_ms(ds, index)
    # Packets still in the queue when the sender stopped belong to the transfer. Packets that left
    # after the experiment do not count, or a deep queue would carry more than its rate. What leaves
    # before and after a web load belongs to another connection, or closes its own.
    during_s = lookup.load_span_s(ds) or (-math.inf, float(ds.attrs["duration_s"]))
    known = lookup.has_packets(ds) or "throughput_mbps" in ds
    left_bytes = lookup.delivered_bytes(ds, index, *during_s) if known else math.nan
    return {
        "label": str(ds["label"].values[index]),
        "stack": str(ds["stack"].values[index]),
        "controller": str(ds["controller"].values[index]),
        "goodput_mbps": _received_bytes(ds, index) * 8 / 1e6 / active_s,
        "throughput_mbps": left_bytes * 8 / 1e6 / active_s,
        **_loss_percent(ds, index),
        "rtt_mean_ms": rtt_ms,
        "rtt_std_ms": rtt_std_ms,
        "queue_delay_mean_ms": delay_ms,
    }


def _received_bytes(ds: xr.Dataset, index: int) -> float:
    """Application bytes that arrived: as the receiver reports, or the client of a web load."""
    if "client_report" in ds.attrs:
        return float(json.loads(ds.attrs["client_report"]).get("bytes", math.nan))
    return float(ds["receiver_bytes"].values[index]) if "receiver_bytes" in ds else math.nan


def _loss_percent(ds: xr.Dataset, index: int) -> dict[str, float]:
    """Losses in percent of the flow's packets of known fate: all, and by cause."""
    names = {"queue_loss_percent": Fate.QUEUE_DROP, "random_loss_percent": Fate.RANDOM_LOSS}
    nothing = dict.fromkeys(("loss_percent", *names), math.nan)
    if not lookup.has_packets(ds):
        return nothing
    mine = (ds["packet_flow"].values == index) & lookup.known_fate(ds)
    if not mine.any():
        return nothing
    lost = np.isnan(ds["packet_departure_s"].values[mine])
    found = {**nothing, "loss_percent": float(lost.mean() * 100)}
    if "random_loss_packets" in ds:
        fate = ds["packet_fate"].values[mine]
        found |= {name: float((fate == value).mean() * 100) for name, value in names.items()}
    return found


def _delays_ms(ds: xr.Dataset, index: int) -> tuple[float, float, float]:
    """Mean queueing delay, mean RTT and its standard deviation, of the packets that left."""
    base_ms = float(ds["base_rtt_ms"].values[index])
    if lookup.has_packets(ds):
        left_s, _, waited_ms = lookup.delivered_packets(ds, index)
        extra_ms = waited_ms + lookup.path_delays_ms(ds, index, left_s)
        extra_ms = extra_ms + lookup.ack_delays_ms(ds, index, left_s)
        jitter_ms = flow_jitter_ms(ds, index)
        extra_ms = extra_ms[np.isfinite(extra_ms)]
        if not len(extra_ms):
            return math.nan, math.nan, math.nan
        mean_ms = base_ms + jitter_ms + float(extra_ms.mean())
        return float(waited_ms.mean()), mean_ms, float(extra_ms.std())
    if not {"queue_delay_ms", "throughput_mbps"} <= set(ds):  # published without them
        return math.nan, math.nan, math.nan
    delay_ms = ds["queue_delay_ms"].values[index]
    seen = np.isfinite(delay_ms)
    weight = np.where(seen, np.nan_to_num(ds["throughput_mbps"].values[index]), 0.0)
    if not weight.sum():
        return math.nan, math.nan, math.nan
    mean_ms = float((weight * np.where(seen, delay_ms, 0.0)).sum() / weight.sum())
    if "reverse" in lookup.flow_directions(ds):
        return mean_ms, math.nan, math.nan
    middle_s = ds["time"].values + float(ds.attrs["bin_s"]) / 2
    changed_ms = float((weight * delay_changes_ms(ds, middle_s)).sum() / weight.sum())
    return mean_ms, base_ms + changed_ms + mean_ms, math.nan
