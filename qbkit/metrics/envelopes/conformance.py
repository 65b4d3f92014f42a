"""Agreement of two Performance Envelopes: conformance and deviation (IMC'22 §2.1)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qbkit.errors import MetricError
from qbkit.metrics.envelopes.envelope import Envelope, definition_of
from qbkit.metrics.envelopes.hulls import inside_moved, pick
from qbkit.traces.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import shapely

GRID_STEPS = 21
"""Coarse shifts per axis; odd, so that the middle of the range is one of them."""
REFINEMENTS = 10
REFINED_SHIFTS = 3
SHRINK_STEPS = 32


class Translated(NamedTuple):
    """Conformance-T, and the distance of the test from the reference (test minus reference)."""

    conformance: float
    delta_throughput_mbps: float
    """Positive if the test has more throughput."""
    delta_delay_ms: float
    """Positive if the test has more queueing delay."""


def conformance(test: Envelope, reference: Envelope) -> float:
    """Share of the points of both envelopes that lie in the overlap of the two PEs; in [0, 1].

    Only kept points count. The paper calls 1 a complete overlap; if the rejected 5 % counted, an
    implementation would not conform to itself. QUICbench's code does the same. A kept point lies in
    its own PE, so it lies in the overlap if and only if it lies in the other PE (a union of hulls
    under ``refined``); the boundary counts as inside. Raises MetricError if the definitions differ.
    """
    _same_definition(test, reference)
    total = int(test.kept.sum() + reference.kept.sum())
    return int(_shared(test, reference, np.zeros((1, 2)))[0]) / total


def pairwise_conformance(envelopes: Sequence[Envelope]) -> FloatArray:
    """(n, n): `conformance` of each of n envelopes with each other; 1 on the diagonal.

    The points of all are compared with one envelope at once, ten times as fast as pair by pair.
    """
    kept = [pick(each.points, each.kept) for each in envelopes]
    counts = np.array([len(points) for points in kept])
    ends = np.cumsum(counts)
    points, stay = np.concatenate(kept), np.zeros((1, 2))
    within = np.zeros((len(kept), len(points) + 1), dtype=np.int64)
    for row, each in zip(within, envelopes, strict=True):
        row[1:] = inside_moved(points, each.hulls, stay)[0].cumsum()
    shared = within[:, ends] - within[:, ends - counts]
    pairs: FloatArray = (shared + shared.T) / (counts[:, None] + counts)
    np.fill_diagonal(pairs, 1.0)
    return pairs


def overlap(test: Envelope, reference: Envelope) -> shapely.Geometry:
    """The intersection of two PEs as a shapely geometry; empty if they are apart."""
    import shapely

    return shapely.intersection(test.geometry, reference.geometry)


def deviation(test: Envelope, reference: Envelope) -> float:
    """Distance of the centroids, each axis divided by its maximum over both sets of points.

    At most √2 (IMC'22 §2.1). Under ``quicbench`` the axes are not divided, as in its code; the
    number then mixes ms and Mbit/s and has no bound. Raises MetricError if the definitions differ.
    """
    _same_definition(test, reference)
    scale = np.ones(2)
    if definition_of(test.definition).normalises:
        scale = _maxima(test, reference)
    return float(np.hypot(*((test.centroid - reference.centroid) / scale)))


def conformance_t(test: Envelope, reference: Envelope) -> Translated:
    """Conformance after the best translation of the test's points and hulls ("Conformance-T").

    The name, Δ-throughput and Δ-delay are from the follow-up of IMC'22 (IMC'23, doi
    10.1145/3618257.3624811), to which we have no access; the search is ours. Δ-throughput is by
    how much the test's envelope lies above the reference's (the opposite of the translation), not
    the difference of the mean throughputs: the two differ by up to 3.0 Mbit/s in the published
    maps, which have both.

    The search is deterministic. It tries no shift, the alignments of centroids, medians and
    bounding boxes, and a 21 by 21 grid over all shifts that let the bounding boxes touch. Ten
    rounds of ever finer steps around the three best follow, and finally a search for a smaller
    shift of equal value. Among equal values the smallest shift wins (axes divided by their maxima).
    The result is never below `conformance` and is a lower bound of the true optimum. Raises
    MetricError if the definitions differ.
    """
    _same_definition(test, reference)
    search = _Search(test, reference)
    low, high = _touching_shifts(test, reference)
    search.offer(np.zeros((1, 2)))
    total = int(test.kept.sum() + reference.kept.sum())
    if search.count(np.zeros(2)) == total:
        return Translated(1.0, 0.0, 0.0)
    search.offer(_alignments(test, reference))
    axes = np.linspace(low, high, GRID_STEPS)
    search.offer(np.stack(np.meshgrid(axes[:, 0], axes[:, 1]), axis=-1).reshape(-1, 2))
    step = (high - low) / (GRID_STEPS - 1)
    around = np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y])
    for _ in range(REFINEMENTS):
        step = step / 2
        for best in search.best(REFINED_SHIFTS):
            search.offer(best + around * step)
    for _ in range(2):
        search.offer(_smaller_shifts(search.best(1)[0]))
    shift = search.best(1)[0]
    # The test moves by `shift` to meet the reference, so the test minus the reference is -shift.
    # Adding 0 turns -0 into 0.
    delta = 0.0 - shift + 0.0
    return Translated(search.count(shift) / total, float(delta[1]), float(delta[0]))


def pooled_numbers(test: Envelope, reference: Envelope) -> dict[str, float]:
    """What compares the envelopes of all trials of both sides, by its name in tables."""
    moved = conformance_t(test, reference)
    return {
        "conformance_pooled": conformance(test, reference),
        "conformance_t": moved.conformance,
        "delta_throughput_mbps": moved.delta_throughput_mbps,
        "delta_delay_ms": moved.delta_delay_ms,
        "deviation": deviation(test, reference),
    }


class _Search:
    """Shifts tried so far, each with the number of points in the overlap after it."""

    def __init__(self, test: Envelope, reference: Envelope) -> None:
        self._test = test
        self._reference = reference
        self._scale = _maxima(test, reference)
        self._counts: dict[tuple[float, float], int] = {}
        self._ranks: list[tuple[float, ...]] = []

    def offer(self, shifts: FloatArray) -> None:
        new = dict.fromkeys((float(x), float(y)) for x, y in shifts)
        keys = [key for key in new if key not in self._counts]
        if not keys:
            return
        counts = _shared(self._test, self._reference, np.array(keys))
        for (x, y), count in zip(keys, counts.tolist(), strict=True):
            self._counts[x, y] = count
            size = float(np.hypot(x / self._scale[0], y / self._scale[1]))
            self._ranks.append((-count, size, x, y))

    def count(self, shift: FloatArray) -> int:
        return self._counts[float(shift[0]), float(shift[1])]

    def best(self, number: int) -> list[FloatArray]:
        """Best shifts: most points first, and the smaller shift first among equals."""
        return [np.array(rank[2:]) for rank in heapq.nsmallest(number, self._ranks)]


def _shared(test: Envelope, reference: Envelope, shifts: FloatArray) -> IntArray:
    """Number (m,) of kept points in the overlap after each shift (m, 2) of the test."""
    moved = inside_moved(pick(test.points, test.kept), reference.hulls, shifts)
    met = inside_moved(pick(reference.points, reference.kept), test.hulls, -shifts)
    return moved.sum(axis=1) + met.sum(axis=1)


def _touching_shifts(test: Envelope, reference: Envelope) -> tuple[FloatArray, FloatArray]:
    mine = np.concatenate(test.hulls)
    theirs = np.concatenate(reference.hulls)
    return theirs.min(axis=0) - mine.max(axis=0), theirs.max(axis=0) - mine.min(axis=0)


def _alignments(test: Envelope, reference: Envelope) -> FloatArray:
    """Shifts that align the middles, by several definitions of the middle, or two corners."""
    mine, theirs = test.points[test.kept], reference.points[reference.kept]
    return np.array(
        [
            reference.centroid - test.centroid,
            theirs.mean(axis=0) - mine.mean(axis=0),
            np.median(theirs, axis=0) - np.median(mine, axis=0),
            theirs.min(axis=0) - mine.min(axis=0),
            theirs.max(axis=0) - mine.max(axis=0),
            (theirs.min(axis=0) + theirs.max(axis=0) - mine.min(axis=0) - mine.max(axis=0)) / 2,
        ]
    )


def _smaller_shifts(shift: FloatArray) -> FloatArray:
    """Fractions of a shift along its own direction and along either axis."""
    parts = np.arange(SHRINK_STEPS) / SHRINK_STEPS
    along = parts[:, None] * shift
    across = np.column_stack([parts * shift[0], np.full(SHRINK_STEPS, shift[1])])
    upward = np.column_stack([np.full(SHRINK_STEPS, shift[0]), parts * shift[1]])
    return np.concatenate([along, across, upward])


def _maxima(test: Envelope, reference: Envelope) -> FloatArray:
    largest = np.maximum(*(np.abs(e.points).max(axis=0) for e in (test, reference)))
    return np.where(largest > 0, largest, 1.0)


def _same_definition(test: Envelope, reference: Envelope) -> None:
    if test.definition != reference.definition:
        raise MetricError(
            f"the envelopes follow different definitions, {test.definition!r} and "
            f"{reference.definition!r}; use the same for both"
        )
