"""Which packet after the queue is which packet before it."""

from __future__ import annotations

import numpy as np

from qbkit.traces.arrays import BoolArray, IntArray, UintArray

NEVER = -1


def match(
    before_key: UintArray, before_ns: IntArray, behind_key: UintArray, behind_ns: IntArray
) -> IntArray:
    """Departure time in ns of each packet that arrived, `NEVER` where it did not come out.

    All inputs are in the order of time. Packets with equal keys (a stack that sends the same bytes
    twice) are matched in their order: a departure belongs to the first arrival that has none yet,
    if that is not later. Returns an array as long as ``before_key``.
    """
    departure = np.full(len(before_key), NEVER, np.int64)
    keys, number = np.unique(np.concatenate([before_key, behind_key]), return_inverse=True)
    arriving, leaving = number[: len(before_key)], number[len(before_key) :]
    arrivals = np.bincount(arriving, minlength=len(keys))
    departures = np.bincount(leaving, minlength=len(keys))
    plain = (arrivals == 1) & (departures == 1)
    place = np.zeros(len(keys), np.int64)
    place[arriving] = np.arange(len(arriving))
    out = np.flatnonzero(plain[leaving])
    into = place[leaving[out]]
    possible = behind_ns[out] >= before_ns[into]
    departure[into[possible]] = behind_ns[out[possible]]
    repeated = (arrivals > 0) & (departures > 0) & ~plain
    if repeated.any():
        into = np.flatnonzero(repeated[arriving])
        out = np.flatnonzero(repeated[leaving])
        pairs = _first_come(arriving[into], before_ns[into], leaving[out], behind_ns[out])
        departure[into[pairs[0]]] = behind_ns[out[pairs[1]]]
    return departure


def _first_come(
    arriving: IntArray, before_ns: IntArray, leaving: IntArray, behind_ns: IntArray
) -> tuple[IntArray, IntArray]:
    """(arrivals, departures) that belong together, one queue for each key; keys are small numbers.

    Events of a key in the order of time (arrivals first) step a count up and down. A departure
    that takes the count to a new low below zero has no arrival; the others, in order, take the
    arrivals in order.
    """
    inside = len(arriving)
    key = np.concatenate([arriving, leaving])
    leaves = np.arange(len(key)) >= inside
    order = np.lexsort((leaves, np.concatenate([before_ns, behind_ns]), key))
    key, leaves = key[order], leaves[order]
    start = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    group = np.cumsum(np.append(False, key[1:] != key[:-1]))
    matched = leaves & ~_too_many(leaves, start, group)
    # The k-th matched departure of a group takes its k-th arrival; both stand in group order.
    taken = np.bincount(group[matched], minlength=len(start))
    takes = ~leaves & (_rank(~leaves, start, group) < taken[group])
    return order[takes], order[matched] - inside


def _too_many(leaves: BoolArray, start: IntArray, group: IntArray) -> BoolArray:
    """Departures for which no arrival of their group is left."""
    waiting = np.cumsum(np.where(leaves, -1, 1))
    waiting -= np.append(0, waiting)[start][group]
    # Each group lies below all that came before it, so one running minimum serves them all.
    shifted = np.minimum(waiting, 0) - group * (len(leaves) + 1)
    low = np.minimum.accumulate(shifted)
    new_low = np.append(True, low[1:] < low[:-1])
    return leaves & new_low & (waiting < 0)


def _rank(chosen: BoolArray, start: IntArray, group: IntArray) -> IntArray:
    """How many of the chosen stand before each place in its group."""
    before: IntArray = np.cumsum(chosen) - chosen
    rank: IntArray = before - before[start][group]
    return rank
