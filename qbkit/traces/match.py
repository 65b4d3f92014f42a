"""Which packet behind the queue is which packet before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
UintArray = npt.NDArray[np.uint64]

NEVER = -1


def match(
    before_key: UintArray, before_ns: IntArray, behind_key: UintArray, behind_ns: IntArray
) -> IntArray:
    """Departure time in ns of each packet that arrived, `NEVER` where it did not come out.

    All inputs are in the order of time. Packets with equal keys (a stack that sends the same bytes
    twice) are matched in their order: the k-th departure belongs to the k-th arrival that has no
    departure yet and is not later than it. Returns an array as long as ``before_key``.
    """
    departure = np.full(len(before_key), NEVER, np.int64)
    order_in = np.argsort(before_key, kind="stable")
    order_out = np.argsort(behind_key, kind="stable")
    keys_in, keys_out = before_key[order_in], behind_key[order_out]
    left = np.searchsorted(keys_in, keys_out, "left")
    count = np.searchsorted(keys_in, keys_out, "right") - left
    times_out = keys_out[1:] == keys_out[:-1]
    repeated = np.zeros(len(keys_out), bool)
    repeated[1:] |= times_out
    repeated[:-1] |= times_out
    plain = (count == 1) & ~repeated
    arrivals = order_in[left[plain]]
    leaving = behind_ns[order_out[plain]]
    possible = leaving >= before_ns[arrivals]
    departure[arrivals[possible]] = leaving[possible]
    for key in np.unique(keys_out[(count > 1) | (repeated & (count > 0))]):
        _match_equal(
            order_in[
                np.searchsorted(keys_in, key, "left") : np.searchsorted(keys_in, key, "right")
            ],
            order_out[
                np.searchsorted(keys_out, key, "left") : np.searchsorted(keys_out, key, "right")
            ],
            before_ns,
            behind_ns,
            departure,
        )
    return departure


def _match_equal(
    arrivals: IntArray,
    departures: IntArray,
    before_ns: IntArray,
    behind_ns: IntArray,
    departure: IntArray,
) -> None:
    """Packets of one key: each departure takes the first arrival that is left and not later."""
    waiting = list(arrivals)
    for out in departures:
        if waiting and before_ns[waiting[0]] <= behind_ns[out]:
            departure[waiting.pop(0)] = behind_ns[out]
