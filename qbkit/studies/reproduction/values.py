"""The numbers and words of what is published, and of what comes out again, by the same names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from qbkit.errors import SpecError
from qbkit.metrics.flows.jitter import flow_jitter_ms
from qbkit.store.figures import FIGURES, run_figures

Values = dict[str, float | str]
Ranges = dict[str, tuple[float, float]]
RTT_HAS_JITTER = 2
"""The measurement version from which on ``rtt_mean_ms`` includes the jitter."""
IN_SECOND = " in second "
"""In the name of a value that is one of many over time."""
COSTS = ("cpu_s", "run")
"""Columns that say what a row cost and the name of its run, which are no results."""


@dataclass(frozen=True)
class Precision:
    """How exactly numbers are published."""

    digits: int = 6
    """Significant digits."""
    step: float = 0.0
    """To what the numbers are rounded besides."""

    def __post_init__(self) -> None:
        if not (self.digits >= 1 and 0 <= self.step < math.inf):
            raise SpecError(
                f"digits = {self.digits}, step = {self.step}: give 1 digit or more, and a step of "
                "0 or more"
            )

    def agrees(self, then: float | str, now: float | str) -> bool:
        """Whether a published value and one that came out again are the same."""
        if isinstance(then, str) or isinstance(now, str):
            return then == now
        if not (math.isfinite(then) and math.isfinite(now)):
            return then == now or (math.isnan(then) and math.isnan(now))
        return abs(then - now) <= max(0.51 * self.step, 0.51 * 10 ** (1 - self.digits) * abs(then))


def values_of(made: dict[str, Any] | list[dict[str, Any]] | xr.Dataset) -> Values:
    """The values of a row, of several rows, or of a dataset."""
    if isinstance(made, xr.Dataset):
        return of_variables(made)
    if isinstance(made, dict):
        return dict(_of_row(made))
    names = _row_names(made)
    found: Values = {"rows": len(made)}
    for name, row in zip(names, made, strict=True):
        found |= {f"{column} of {name}": value for column, value in _of_row(row)}
    return found


def _of_row(row: Mapping[str, Any]) -> Iterator[tuple[str, float | str]]:
    for name, value in row.items():
        if name in COSTS or value is None or isinstance(value, list):
            continue
        try:
            # An empty field of a published table is read as NaN.
            yield str(name), math.nan if value == "" else float(value)
        except ValueError:
            yield str(name), str(value)


def _row_names(rows: list[dict[str, Any]]) -> list[str]:
    """What distinguishes the rows: the first column of different words, or else their numbers."""
    for column in rows[0] if len(rows) > 1 else ():
        words = [row[column] for row in rows]
        if len({*map(str, words)}) == len(words) and all(isinstance(word, str) for word in words):
            return words
    return [f"row {i}" for i in range(1, len(rows) + 1)]


def of_cube(cube: xr.Dataset, place: Mapping[str, int]) -> Values:
    """The figures of one run in a sweep's cube, and its throughput over time."""
    row = cube.isel(place)
    labels = [str(label) for label in row["label"].values if label]
    series = row["series_throughput_mbps"].values
    return {
        f"{name} of {label}": float(row[name].values[i])
        for name in FIGURES
        for i, label in enumerate(labels)
    } | _over_time({label: series[i] for i, label in enumerate(labels)})


def ranges_of(cube: xr.Dataset, places: Sequence[Mapping[str, int]]) -> Ranges:
    """Least and greatest value of several runs in a sweep's cube; empty for one run."""
    if len(places) < 2:
        return {}
    found: dict[str, list[float]] = {}
    for place in places:
        for name, value in of_cube(cube, place).items():
            if math.isfinite(number := float(value)):
                found.setdefault(name, []).append(number)
    return {name: (min(values), max(values)) for name, values in found.items()}


def of_run(run: xr.Dataset, version: int) -> Values:
    """The same of a run, as that measurement version defines it: 1 left the jitter out of RTTs."""
    found = run_figures(run)
    figures = {
        f"{name} of {label}": math.nan if value is None else float(value)
        for name, values in found["figures"].items()
        for label, value in zip(found["labels"], values, strict=True)
    }
    if version < RTT_HAS_JITTER:
        for i, label in enumerate(found["labels"]):
            figures[f"rtt_mean_ms of {label}"] -= flow_jitter_ms(run, i)
    series = dict(zip(found["labels"], found["series"], strict=True))
    return figures | _over_time({label: np.array(values) for label, values in series.items()})


def _over_time(series: Mapping[str, np.ndarray]) -> Values:
    """Throughput of each second by name."""
    return {
        f"throughput_mbps of {label}{IN_SECOND}{i}": float(value)
        for label, values in series.items()
        for i, value in enumerate(values)
        if np.isfinite(value)
    }


def of_variables(dataset: xr.Dataset) -> Values:
    """Sum and largest value of each numeric variable, which move if any of its values does."""
    numeric = {
        str(name): v.values for name, v in dataset.data_vars.items() if v.dtype.kind in "iuf"
    }
    known = {name: v[np.isfinite(v)] for name, v in numeric.items()}
    return {
        f"{what} of {name}": float(of(values))
        for name, values in known.items()
        if len(values)
        for what, of in (("sum", np.sum), ("maximum", np.max))
    }
