"""HTTP/3 against HTTP/2 from many loads, after Yu and Benson, "Dissecting Performance of Production
QUIC", WWW '21, sections 5 and 7."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.spec import Bottleneck
from qbkit.traces.arrays import BoolArray, FloatArray
from qbkit.traces.run.early_end import early_end_sentences
from qbkit.traces.run.journey import Fate
from qbkit.traces.web.times import client_sent_s

SETTING = ("server", "object_bytes", "loss_percent", "rtt_ms")
"""Columns of `web_table` that make a cell of a heat map, with the clients."""
TIME = "time_to_last_byte_s"
KERNEL_INITIAL_WINDOW_PACKETS = 10
RESAMPLES, LEVEL = 2000, 0.95


def is_complete_load(run: xr.Dataset) -> bool:
    """Whether a load did not end before it was complete."""
    return TIME not in run or bool(np.isfinite(run[TIME]))


def complete_loads(loads: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The loads without those that ended before they were complete, of which a warning has the
    number and the first."""
    dead = [run for run in loads if not is_complete_load(run)]
    if dead:
        first = f"{'; '.join(early_end_sentences(dead[0]))} (seed {dead[0].attrs['seed']})"
        warnings.warn(
            f"{len(dead)} of {len(loads)} loads ended before they were complete and are left out, "
            f"first {first}",
            stacklevel=3,
        )
    return [run for run in loads if is_complete_load(run)]


def web_table(loads: Sequence[xr.Dataset]) -> pd.DataFrame:
    """One row per complete load: its setting, seed, times, and first retransmission.

    Columns: ``server``, ``client``, ``protocol``, ``object_bytes``, ``loss_percent`` (the link's
    setting, of a model with bursts its mean; `qbkit.metrics.summary` has what was lost under this
    name), ``rtt_ms``, ``link`` (see `link_text`), ``zero_rtt``, ``tcp_initial_window_packets`` (of
    TCP, also in rows of h3),
    ``seed``, ``handshake_s``, ``first_byte_s``, ``time_to_last_byte_s``, ``lost_packets`` and
    ``first_retransmission_offset_bytes`` (see `first_lost_offset_bytes`). Raises MetricError for a
    run that is no load of an object.
    """
    return pd.DataFrame([_row(run) for run in complete_loads(loads)])


def _row(run: xr.Dataset) -> dict[str, Any]:
    spec = json.loads(run.attrs.get("web_load", "{}"))
    if spec.get("object_bytes") is None:
        raise MetricError("this run is no load of an object; pages are for page_table")
    names = ("server", "client", "protocol", "object_bytes")
    bottleneck = Bottleneck(**spec["bottleneck"])
    link = {
        "loss_percent": bottleneck.mean_loss_percent,
        "rtt_ms": bottleneck.rtt_ms,
        "link": link_text(spec["bottleneck"]),
    }
    times = {name: float(run[name]) for name in ("handshake_s", "first_byte_s", TIME)}
    return {
        **{name: spec[name] for name in names},
        **link,
        "zero_rtt": spec["zero_rtt"],
        "tcp_initial_window_packets": initial_window_packets(spec),
        "seed": spec["seed"],
        **times,
        "lost_packets": int(lost_packets(measured_packets(run)).sum()),
        "first_retransmission_offset_bytes": first_lost_offset_bytes(run),
    }


def initial_window_packets(spec: Mapping[str, Any]) -> int:
    """TCP's initial window in a load (its JSON)."""
    return spec.get("tcp_initial_window_packets") or KERNEL_INITIAL_WINDOW_PACKETS


def link_text(link: Mapping[str, Any]) -> str:
    """What is set of a link (the JSON of a bottleneck) beside its RTT and loss, in one text."""
    more = {name: value for name, value in link.items() if name not in ("rtt_ms", "loss_percent")}
    known = {name: value for name, value in more.items() if value not in (None, {}, [])}
    return ", ".join(f"{name} {json.dumps(known[name])}" for name in sorted(known))


def measured_packets(load: xr.Dataset) -> xr.Dataset:
    """The load without the connection before it, which with ``zero_rtt`` fetches a session."""
    if not json.loads(load.attrs.get("web_load", "{}")).get("zero_rtt"):
        return load
    begin_s = load.attrs["first_packet_s"]
    return load.isel(
        packet=load["packet_time_s"].values >= begin_s, ack=load["ack_time_s"].values >= begin_s
    )


def lost_packets(run: xr.Dataset) -> BoolArray:
    """Which packets were lost; those that were in a queue at the end are not among them."""
    return np.isin(run["packet_fate"].values, (Fate.QUEUE_DROP, Fate.RANDOM_LOSS))


def first_lost_offset_bytes(run: xr.Dataset) -> float:
    """Bytes of the frames that the server sent before the first one that was lost; NaN: none was.

    The data of that frame are the first to be retransmitted, and this is their offset, but for
    headers: TCP's and QUIC's captures give it alike, although QUIC's data are encrypted.
    """
    run = measured_packets(run)
    lost = np.flatnonzero(lost_packets(run))
    if not len(lost):
        return math.nan
    return float(run["packet_size_bytes"].values[: lost[0]].sum(dtype=np.int64))


def acked_table(run: xr.Dataset, points: int | None = None) -> pd.DataFrame:
    """What the client had received when it sent each packet: ``time_s`` and ``bytes``.

    Time starts with the client's first packet; the bytes are those of frames. ``points`` keeps that
    many rows, spread evenly, with the last one.
    """
    run = measured_packets(run)
    arrived = run["packet_fate"].values == 0
    order = np.argsort(run["packet_departure_s"].values[arrived], kind="stable")
    arrival_s = run["packet_departure_s"].values[arrived][order]
    total = np.cumsum(run["packet_size_bytes"].values[arrived][order], dtype=np.int64)
    # Half an RTT passes between the client and the bottleneck, where the capture is.
    sent_s = client_sent_s(run)
    had = np.searchsorted(arrival_s, sent_s, side="right")
    table = pd.DataFrame({"time_s": sent_s - sent_s[0], "bytes": np.concatenate([[0], total])[had]})
    if points is None or len(table) <= points:
        return table
    return table.iloc[np.unique(np.linspace(0, len(table) - 1, points).round().astype(int))]


def median_difference(test: FloatArray, reference: FloatArray) -> tuple[float, float, float]:
    """Difference of the medians in percent of the reference's, with its 95 % bootstrap interval.

    Returns (difference, low, high). Seeds of the two sides are not paired. With fewer than six
    values on a side the interval is too narrow for its name: three hold their median in 75 % of
    cases. Raises MetricError for a side with fewer than two values.
    """
    from scipy.stats import bootstrap

    if min(len(test), len(reference)) < 2:
        raise MetricError("a difference of medians needs two or more loads on either side")

    def percent(x: FloatArray, y: FloatArray, axis: int = -1) -> FloatArray:
        found: FloatArray = 100 * (np.median(x, axis=axis) / np.median(y, axis=axis) - 1)
        return found

    found = bootstrap(
        (test, reference),
        percent,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(1),
    ).confidence_interval
    return float(percent(test, reference)), float(found.low), float(found.high)


def require_table(table: pd.DataFrame, columns: Sequence[str], source: str) -> None:
    """Raise MetricError for a table that lacks columns of the one that ``source`` gives."""
    if lacking := [name for name in columns if name not in table]:
        raise MetricError(f"the table lacks {', '.join(lacking)}; give that of qb.metrics.{source}")


def require_alike(table: pd.DataFrame, setting: Sequence[str], *more: str) -> None:
    """Raise MetricError where loads of one setting are no repetitions of each other.

    All have one link. Early data, TCP's window and the client are one for each protocol, and for
    each value of the columns ``more``. Tables of before may lack some of these columns.
    """
    for name in ("link", "client", "zero_rtt", "tcp_initial_window_packets"):
        keys = [*setting, *(["protocol", *more] if name != "link" else [])]
        if name not in table or name in keys:
            continue
        for found in table.groupby(keys)[name].unique():
            if len(found) > 1:
                raise MetricError(
                    f"loads of one setting differ in their {name} ({'; '.join(map(str, found))}); "
                    "choose those of one value by this column"
                )


def web_differences(table: pd.DataFrame) -> pd.DataFrame:
    """H3 against H2 in each setting (figure 4): medians, and the difference in percent of H2's.

    One row per `SETTING`: ``h2_median_s``, ``h3_median_s``, ``difference_percent`` with its
    bootstrap interval ``low_percent`` and ``high_percent``, and the number of loads ``h2_loads``
    and ``h3_loads``. A negative difference means that H3 is faster. A setting without two loads of
    each protocol is left out. Raises MetricError for another table than `web_table`'s, and where
    loads of one setting and protocol differ in link, client, early data or TCP's initial window.
    """
    require_table(table, [*SETTING, "protocol", TIME], "web_table")
    require_alike(table, SETTING)
    rows = []
    for setting, cell in table.groupby(list(SETTING)):
        h2, h3 = (cell.loc[cell.protocol == p, TIME].to_numpy(float) for p in ("h2", "h3"))
        if min(len(h2), len(h3)) < 2:
            continue
        rows.append({**dict(zip(SETTING, setting, strict=True)), **difference_row(h2, h3)})
    return pd.DataFrame(rows)


def difference_row(h2: FloatArray, h3: FloatArray) -> dict[str, float]:
    """Medians of the times of each protocol (s), and the difference with its interval.

    NaN where a protocol has no time, or, for the difference, fewer than two.
    """
    few = min(len(h2), len(h3)) < 2
    difference, low, high = (math.nan,) * 3 if few else median_difference(h3, h2)
    return {
        "h2_median_s": float(np.median(h2)) if len(h2) else math.nan,
        "h3_median_s": float(np.median(h3)) if len(h3) else math.nan,
        "difference_percent": difference,
        "low_percent": low,
        "high_percent": high,
        "h2_loads": len(h2),
        "h3_loads": len(h3),
    }


def client_consistency(table: pd.DataFrame) -> pd.DataFrame:
    """How much slower each client is than the best client of its setting (figure 8).

    One row per `SETTING`, ``protocol`` and ``client``: ``median_s`` and ``difference_percent``, the
    difference of the median to the lowest median of any client with that protocol. Raises
    MetricError as `web_differences`, but for several clients.
    """
    require_table(table, [*SETTING, "protocol", "client", TIME], "web_table")
    require_alike(table, SETTING, "client")
    keys = [*SETTING, "protocol"]
    medians = table.groupby([*keys, "client"], as_index=False).agg(
        median_s=(TIME, "median"), loads=(TIME, "size")
    )
    best = medians.groupby(keys)["median_s"].transform("min")
    return medians.assign(difference_percent=100 * (medians["median_s"] / best - 1))


def median_loads(table: pd.DataFrame) -> pd.DataFrame:
    """The row of each setting, client and protocol whose time is (next to) the median.

    Raises MetricError as `client_consistency`.
    """
    keys = [*SETTING, "client", "protocol"]
    require_table(table, [*keys, TIME, "seed"], "web_table")
    require_alike(table, SETTING, "client")
    ranked = table.sort_values([*keys, TIME, "seed"])
    chosen = [rows.index[(len(rows) - 1) // 2] for _, rows in ranked.groupby(keys)]
    return table.loc[chosen]


def url_differences(loads: xr.Dataset) -> pd.DataFrame:
    """One row per URL of the dataset of `qbkit.measure_urls`: medians, and their difference.

    Columns: ``url``, ``h2_median_s`` and ``h3_median_s`` of the time to last byte,
    ``difference_percent`` of H3's median to H2's with its 95 % bootstrap interval ``low_percent``
    and ``high_percent``, and ``h2_loads`` and ``h3_loads`` (counted ones). NaN where a protocol has
    no load, or, for the difference, fewer than two.
    """
    rows = []
    for url in dict.fromkeys(loads["url"].values.tolist()):
        mine = loads.isel(load=loads["url"].values == url)
        h2, h3 = (mine[TIME].values[mine["protocol"].values == p] for p in ("h2", "h3"))
        rows.append({"url": url, **difference_row(h2, h3)})
    return pd.DataFrame(rows)
