"""Types of arrays, and how to work on large ones piece by piece."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
UintArray = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]
Chosen = BoolArray | IntArray | slice
"""How some elements of an array are chosen: a mask, indices or a slice."""

PIECE = 1 << 16
"""Elements whose intermediate results fit in a processor's cache."""


def pieces(count: int) -> Iterator[slice]:
    """Slices that cover ``count`` elements in order: no array of intermediate results is long."""
    return (slice(low, low + PIECE) for low in range(0, count, PIECE))


def as_slice(chosen: Chosen) -> Chosen:
    """A slice where all that a mask chooses lies together, so that the choice copies nothing."""
    if isinstance(chosen, slice) or chosen.dtype != bool:
        return chosen
    count, first = int(np.count_nonzero(chosen)), int(chosen.argmax()) if len(chosen) else 0
    together = count == 0 or chosen[first : first + count].all()
    return slice(first, first + count) if together else chosen


def small(index: IntArray, count: int) -> IntArray:
    """Indices from -1 to ``count`` - 1 in the smallest type."""
    return index.astype(np.min_scalar_type(-max(count, 1)))
