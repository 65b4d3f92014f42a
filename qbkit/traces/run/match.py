"""Match the packets after a queue with those before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qbkit.traces.arrays import BoolArray, ByteArray, IntArray, UintArray, pieces

NEVER = -1
PART_PACKETS, MOST_PARTS = 1 << 16, 64
"""Packets are matched in parts of about so many, or in so many parts (a power of two)."""

Match = Callable[[UintArray, IntArray, UintArray, IntArray], IntArray]
"""Arguments and result as of `match`."""


def match(
    before_key: UintArray, before_ns: IntArray, behind_key: UintArray, behind_ns: IntArray
) -> IntArray:
    """Index behind the queue of each packet that arrived; `NEVER` where it did not come out.

    All inputs are in order of time. Packets with equal keys (a stack sent the same bytes twice) are
    matched in order: a departure belongs to the first unmatched arrival, unless that is later. If
    it would have waited longer than all packets of which every copy came out, the queue dropped it:
    the departures of its key belong to the last arrivals before them. Returns an array as long as
    ``before_key``.
    """
    arrays = before_key, before_ns, behind_key, behind_ns
    return _after_drops(_in_parts(_first_match, *arrays), *arrays)


def match_last(
    before_key: UintArray, before_ns: IntArray, behind_key: UintArray, behind_ns: IntArray
) -> IntArray:
    """The same for random loss, which takes no time, in place of a queue.

    Of packets with equal keys, a departure belongs to the last unmatched arrival before it: an
    earlier one would have left earlier, so it was lost.
    """
    return _in_parts(_last_match, before_key, before_ns, behind_key, behind_ns)


def departures_ns(found: IntArray, behind_ns: IntArray) -> IntArray:
    """Departure time in ns of each packet by its index behind the queue; `NEVER` as there."""
    departure_ns = np.full(len(found), NEVER, np.int64)
    for piece in pieces(len(found)):
        out = found[piece] != NEVER
        departure_ns[piece][out] = behind_ns[found[piece][out]]
    return departure_ns


def _in_parts(
    match_few: Match,
    before_key: UintArray,
    before_ns: IntArray,
    behind_key: UintArray,
    behind_ns: IntArray,
) -> IntArray:
    """Match part by part: packets with equal keys are in the same part on both sides."""
    found = np.full(len(before_key), NEVER, np.int64)
    parts = min(MOST_PARTS, 1 << (len(before_key) // PART_PACKETS).bit_length())
    into_part, out_part = _parts(before_key, parts), _parts(behind_key, parts)
    for part in range(parts):
        into, out = np.flatnonzero(into_part == part), np.flatnonzero(out_part == part)
        few = match_few(before_key[into], before_ns[into], behind_key[out], behind_ns[out])
        matched = few != NEVER
        found[into[matched]] = out[few[matched]]
    return found


def _parts(keys: UintArray, parts: int) -> ByteArray:
    """The part of each packet, by the last bits of its key."""
    found = np.empty(len(keys), np.uint8)
    for piece in pieces(len(keys)):
        found[piece] = keys[piece] & np.uint64(parts - 1)
    return found


def _after_drops(
    found: IntArray,
    before_key: UintArray,
    before_ns: IntArray,
    behind_key: UintArray,
    behind_ns: IntArray,
) -> IntArray:
    """The matches of a queue, where some belong to a later copy of what the queue dropped."""
    dropped = np.unique(before_key[found == NEVER])
    if not len(dropped) or not len(behind_ns):
        return found
    longest_ns, unsure = -1, []
    for piece in pieces(len(found)):
        out = found[piece] != NEVER
        key, waited_ns = (
            before_key[piece][out],
            behind_ns[found[piece][out]] - before_ns[piece][out],
        )
        again = _among(key, dropped)
        longest_ns = max(longest_ns, int(waited_ns[~again].max(initial=-1)))
        unsure.append((key[again], waited_ns[again]))
    keys = np.unique(np.concatenate([key[waited > longest_ns] for key, waited in unsure]))
    if longest_ns < 0 or not len(keys):
        return found
    into, back = (np.flatnonzero(_among(each, keys)) for each in (before_key, behind_key))
    last = _last_match(before_key[into], before_ns[into], behind_key[back], behind_ns[back])
    found[into] = np.where(last == NEVER, NEVER, back[last])
    return found


def _among(keys: UintArray, few: UintArray) -> BoolArray:
    """Which keys are among a few, in order."""
    place = np.minimum(np.searchsorted(few, keys), len(few) - 1)
    return few[place] == keys


def _first_match(
    before_key: UintArray, before_ns: IntArray, behind_key: UintArray, behind_ns: IntArray
) -> IntArray:
    """Of few packets, each departure to the first unmatched arrival."""
    found = np.full(len(before_key), NEVER, np.int64)
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
    found[into[possible]] = out[possible]
    repeated = (arrivals > 0) & (departures > 0) & ~plain
    if repeated.any():
        into = np.flatnonzero(repeated[arriving])
        out = np.flatnonzero(repeated[leaving])
        pairs = _first_come(arriving[into], before_ns[into], leaving[out], behind_ns[out])
        found[into[pairs[0]]] = out[pairs[1]]
    return found


def _last_match(
    before_key: UintArray, before_ns: IntArray, behind_key: UintArray, behind_ns: IntArray
) -> IntArray:
    """`match_last` of few packets."""
    # With time turned round, this is `match` with its two sides exchanged.
    turned = _first_match(behind_key[::-1], -behind_ns[::-1], before_key[::-1], -before_ns[::-1])
    out = np.flatnonzero(turned != NEVER)
    found = np.full(len(before_key), NEVER, np.int64)
    found[len(before_key) - 1 - turned[out]] = len(behind_key) - 1 - out
    return found


def _first_come(
    arriving: IntArray, before_ns: IntArray, leaving: IntArray, behind_ns: IntArray
) -> tuple[IntArray, IntArray]:
    """Matching (arrivals, departures) of one queue per key; keys are small numbers.

    The events of a key, in order of time (arrivals first), move a count up and down. A departure
    that takes the count to a new minimum below zero has no arrival; the others match the arrivals
    in order.
    """
    inside = len(arriving)
    key = np.concatenate([arriving, leaving])
    leaves = np.arange(len(key)) >= inside
    order = np.lexsort((leaves, np.concatenate([before_ns, behind_ns]), key))
    key, leaves = key[order], leaves[order]
    start = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    group = np.cumsum(np.append(False, key[1:] != key[:-1]))
    matched = leaves & ~_too_many(leaves, start, group)
    # The k-th matched departure of a group takes its k-th arrival; both are in group order.
    taken = np.bincount(group[matched], minlength=len(start))
    takes = ~leaves & (_rank(~leaves, start, group) < taken[group])
    return order[takes], order[matched] - inside


def _too_many(leaves: BoolArray, start: IntArray, group: IntArray) -> BoolArray:
    """Mask of the departures without an arrival left in their group."""
    waiting = np.cumsum(np.where(leaves, -1, 1))
    waiting -= np.append(0, waiting)[start][group]
    # Each group is shifted below all groups before it, so one running minimum serves all.
    shifted = np.minimum(waiting, 0) - group * (len(leaves) + 1)
    low = np.minimum.accumulate(shifted)
    new_low = np.append(True, low[1:] < low[:-1])
    return leaves & new_low & (waiting < 0)


def _rank(chosen: BoolArray, start: IntArray, group: IntArray) -> IntArray:
    """How many chosen events precede each event in its group."""
    before: IntArray = np.cumsum(chosen) - chosen
    rank: IntArray = before - before[start][group]
    return rank
