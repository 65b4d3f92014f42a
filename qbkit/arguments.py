"""Arguments of public functions that are of another kind than a type says."""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Any

from qbkit.errors import SpecError


def as_path(value: Any) -> Path:
    """The path that a text or a path names; SpecError for anything else."""
    if isinstance(value, str | os.PathLike) and "\0" not in str(value) and str(value):
        return Path(value)
    raise SpecError(f"{value!r} is no path; give the name of a file or folder")


def whole(value: Any, name: str) -> int:
    """The whole number that an argument is, of Python or NumPy; SpecError for anything else."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise SpecError(f"{name} = {value!r}: give a whole number")
    return number
