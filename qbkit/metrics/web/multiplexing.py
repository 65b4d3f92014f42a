"""How a server divides a connection among the resources that it sends at the same time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from qbkit.errors import MetricError, StoreError
from qbkit.metrics.arrays import row
from qbkit.traces.web.times import base_rtt_ms

Strategy = Literal["sequential", "by priority", "round-robin", "weighted", "undecided"]
ALONE, RANKED = 0.9, 0.8
"""Shares from which a server counts as sending one resource at a time, and as obeying urgencies."""
EVEN = 0.75
"""Evenness from which interleaved resources count as served alike."""
LEAST_BYTES = 50_000
"""Fewer bytes that several resources waited for, or that tell urgency from order, say nothing."""
MOST_REFILLED = 0.02
"""Share of bytes that fill gaps above which losses hide in which order the server sent."""


@dataclass(frozen=True)
class Multiplexing:
    """The strategy that the order of a page's data shows, and the numbers behind it."""

    strategy: Strategy
    contended_bytes: int
    """Bytes that came while at least two resources had data left."""
    in_a_row: float
    """Share of those bytes that did not interrupt another resource. 1: one resource at a time."""
    telling_bytes: int
    """Of the contended bytes, those that came while a resource that was requested later than
    another was more urgent. Only these tell priorities from the order of the requests."""
    by_priority: float
    """Share of the telling bytes that went to the highest urgency; NaN without any."""
    evenness: float
    """How equal the shares of waiting resources of one urgency were: 0 if one got everything, 1 if
    all got the same; NaN without any."""


def multiplexing(
    resource: ArrayLike, size_bytes: ArrayLike, urgency: ArrayLike, start: ArrayLike
) -> Multiplexing:
    """Infer the strategy from data in the order of their arrival.

    ``resource`` (index) and ``size_bytes`` are by chunk; ``urgency`` (0 is the most urgent, RFC
    9218) and ``start`` (index of the first chunk that was sent after the request had arrived) are
    by resource, in the order of the requests. A resource waits from its start to its last chunk.
    """
    which, sizes = row("resource", resource).astype(int), row("size_bytes", size_bytes)
    rank, sent = row("urgency", urgency).astype(int), row("start", start).astype(int)
    fit = len(which) == len(sizes) and len(rank) == len(sent)
    if not fit or not np.isin(which, np.arange(len(rank))).all():
        raise MetricError(
            "give size_bytes for each chunk, urgency and start for each resource, and in resource "
            "the index of one for each chunk"
        )
    waiting = _waiting(which, sent)
    contended = waiting.sum(axis=1) >= 2
    rows = np.arange(len(which))

    after = np.append(-1, which[:-1])
    unfinished = np.append(False, waiting[rows[1:], which[:-1]])
    interrupts = contended & (after != which) & unfinished

    ranks = np.where(waiting, rank, rank.max(initial=0) + 1)
    best = ranks.min(axis=1, initial=99)
    first = rank[waiting.argmax(axis=1)] if len(rows) else best
    telling = contended & (first > best)

    total, told = float(sizes[contended].sum()), float(sizes[telling].sum())
    obeyed = sizes[telling & (rank[which] == best)].sum() / told if told else np.nan
    in_a_row = 1 - sizes[interrupts].sum() / total if total else np.nan
    evenness = _evenness(which, sizes, waiting & (rank == rank[which][:, None]))
    strategy = _strategy(total, in_a_row, told, obeyed, evenness)
    return Multiplexing(
        strategy, int(total), float(in_a_row), int(told), float(obeyed), float(evenness)
    )


def page_multiplexing(run: xr.Dataset) -> Multiplexing:
    """The strategy that a page load shows; raises StoreError for a run that is none.

    It is that of the connection with most data. What arrives the longest round trip and queueing
    delay after a request was sent after it had come. Data of QUIC that fill a gap are left out,
    because the server had sent them before. With more than a few of them the strategy is undecided:
    a lost end looks as if it had not been sent.
    """
    if "chunk_resource" not in run:
        raise StoreError("this run is no page load with a net log, so it has no streams")
    rtt_ms = base_rtt_ms(run, run.chunk_time_s.values).max(initial=run.attrs["rtt_ms"])
    late_s = (rtt_ms + float(run.queue_delay_ms.max())) / 1e3
    # Runs of qbkit 1.2 and before say neither of which connection data are, nor for how long
    # Chromium held a request back.
    connection = run.get("chunk_connection", 0 * run.chunk_resource).values
    sent_s = run.get("resource_sent_s", run.resource_start_s).values
    data = run.chunk_new_bytes.values
    most = max(np.unique(connection), key=lambda n: data[connection == n].sum(), default=0)
    names = ("chunk_time_s", "chunk_bytes", "chunk_new_bytes", "chunk_resource")
    chunks = run[[*names]].isel(chunk=connection == most)
    refilled = 1 - float(chunks.chunk_new_bytes.sum() / chunks.chunk_bytes.sum())
    chunks = chunks.isel(chunk=chunks.chunk_new_bytes.values > 0)
    order = np.argsort(sent_s, kind="stable")
    found = multiplexing(
        np.argsort(order)[chunks.chunk_resource.values],
        chunks.chunk_new_bytes,
        run.resource_urgency[order],
        np.searchsorted(chunks.chunk_time_s, sent_s[order] + late_s),
    )
    return replace(found, strategy="undecided") if refilled > MOST_REFILLED else found


def _waiting(which: NDArray[np.int_], start: NDArray[np.int_]) -> NDArray[np.bool_]:
    """By chunk and resource: whether the resource had data left to send."""
    rows = np.arange(len(which))[:, None]
    last = np.full(len(start), -1)
    last[which] = np.arange(len(which))  # the last assignment of each resource counts
    first = np.full(len(start), len(which))
    np.minimum.at(first, which, np.arange(len(which)))
    return (rows >= np.minimum(start, first)) & (rows <= last)


def _evenness(
    which: NDArray[np.int_], sizes: NDArray[np.float64], peers: NDArray[np.bool_]
) -> float:
    """1 - deviation from equal shares among the peers of each chunk, over the largest possible."""
    count = peers.sum(axis=1)
    shared = count >= 2
    if not shared.any():
        return float("nan")
    fair = (peers[shared] * (sizes[shared] / count[shared])[:, None]).sum(axis=0)
    got = np.bincount(which[shared], sizes[shared], minlength=peers.shape[1])
    worst = (sizes[shared] * (1 - 1 / count[shared])).sum()
    return float(1 - np.abs(got - fair).sum() / 2 / worst)


def _strategy(
    total: float, in_a_row: float, told: float, obeyed: float, evenness: float
) -> Strategy:
    if total < LEAST_BYTES:
        return "undecided"
    if told >= LEAST_BYTES and obeyed >= RANKED:
        return "by priority"
    if in_a_row >= ALONE:
        return "sequential"
    if np.isnan(evenness):
        return "undecided"
    return "round-robin" if evenness >= EVEN else "weighted"
