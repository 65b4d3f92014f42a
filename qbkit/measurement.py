"""The measurement version: it names how this package turns an experiment into a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

VERSION = 3
"""Raise it when results change on purpose; the golden runs (tests/test_golden.py) guard it.

Version 1 named runs by the contents of source files; every sweep published before version 2 is of
version 1.
"""
PUBLISHED_BEFORE = 1
"""The version of stored runs and published sweeps that name none."""


MEASURED_ANEW: Mapping[int, tuple[str, ...]] = {3: ("goodput_mbps",)}
"""Version → variables over time of which older runs have other values than runs of today."""


def measured_anew(facts: Mapping[Any, Any]) -> list[str]:
    """The variables over time of a run, by its attributes, that are measured otherwise today."""
    then = version_of(facts)
    return [name for since, names in MEASURED_ANEW.items() if since > then for name in names]


def version_of(facts: Mapping[Any, Any]) -> int:
    """The version that the attributes of a run or the metadata of a sweep name.

    Raises ValueError if that is no whole number from 1 on.
    """
    found = facts.get("measurement_version", PUBLISHED_BEFORE)
    if isinstance(found, bool) or not isinstance(found, Integral) or found < 1:
        raise ValueError(f"measurement_version is {found!r}, and must be a whole number from 1 on")
    return int(found)
