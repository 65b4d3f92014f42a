"""Arrays of numbers that a user gives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qbkit.errors import MetricError
from qbkit.traces.arrays import FloatArray


def numbers(name: str, value: npt.ArrayLike) -> FloatArray:
    """The numbers as an array of any shape; MetricError for anything else."""
    try:
        given = np.asarray(value)
        if given.dtype.kind in "SU":  # NumPy would read "12" as 12
            raise TypeError
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise MetricError(f"{name} must be a number or an array of numbers") from None


def row(name: str, value: npt.ArrayLike) -> FloatArray:
    """The numbers as an array of one dimension; MetricError for anything else."""
    if (found := numbers(name, value)).ndim != 1:
        raise MetricError(f"{name} must be a list of numbers, or an array of one dimension")
    return found
