"""Arguments of public functions that are of another kind than a type says."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean


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


def require_settings(
    given: Iterable[str], function: Callable[..., Any], to: Callable[..., Any]
) -> None:
    """Raise SpecError for what a function does not take, and cannot hand on to another one."""
    several = [p for each in (function, to) for p in inspect.signature(each).parameters.values()]
    known = [p.name for p in several if p.kind is p.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            near = did_you_mean(name, known)
            raise SpecError(
                f"{function.__name__} has no setting {name}{near}; it has {', '.join(known)}"
            )
