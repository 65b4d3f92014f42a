"""The published points of a file or folder: what was run, and what its run gave."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import StoreError
from qbkit.measurement import version_of
from qbkit.metrics.flows.jitter import flow_jitter_ms
from qbkit.spec import Experiment
from qbkit.spec.sweep import Sweep
from qbkit.spec.web import WebLoad
from qbkit.store.datasets import load_run
from qbkit.store.figures import FIGURES, run_figures
from qbkit.store.index import INDEX, read_index
from qbkit.store.published import SPEC_ENDINGS, STEP, load_published

Values = dict[str, float]
Measure = Callable[[xr.Dataset], Values]
MAKE = "make.py"
TABLES = "REPRODUCIBLE"
"""The program of a folder of tables, and its list of those whose rows are runs. Its function
``again(table, row)`` gives the experiment of a row, and a function of a run that gives the row."""
RTT_HAS_JITTER = 2
"""The measurement version from which on ``rtt_mean_ms`` includes the jitter."""
DIGITS = 1e-5
"""Relative precision of a table's numbers, which have six digits."""


@dataclass(frozen=True)
class Point:
    """One published point."""

    source: Path
    """The file or folder that holds it."""
    spec: Experiment | WebLoad
    published: Callable[[], Values]
    """Its numbers by name."""
    measure: Measure
    """The same numbers of a run."""
    step: float = 0.0
    """To what the numbers are rounded; 0: to `DIGITS`."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What it was made with, as far as it is published: stacks, kernel and measurement version."""

    @property
    def name(self) -> str:
        """Where it is, and what was run."""
        link = self.spec.bottleneck
        what = " + ".join(self.flows) if isinstance(self.spec, Experiment) else self.spec.name
        words = [f"{link.rate_mbps:g} Mbit/s", f"{link.rtt_ms:g} ms", f"seed {self.spec.seed}"]
        buffer = next(
            f"{value:g} {unit}"
            for unit in ("bdp", "bytes", "packets")
            if (value := getattr(link, f"buffer_{unit}")) is not None
        )
        return f"{self.source}: {what}, {', '.join([*words[:2], buffer, words[2]])}"

    @property
    def flows(self) -> list[str]:
        """Its flows, or its server."""
        if isinstance(self.spec, WebLoad):
            return [self.spec.server]
        return [flow.name for flow in self.spec.flows]

    def has(self, wanted: Mapping[str, str]) -> bool:
        """Whether every wanted field has its value: a field of the experiment or of its link.

        ``flow`` is the first flow, which a sweep over implementations changes, or a load's server;
        ``against`` is one of the others.
        Raises StoreError for a field that the experiment does not have.
        """
        return all(self._is(name, value) for name, value in wanted.items())

    def _is(self, name: str, value: str) -> bool:
        if name == "flow":
            return value in (self.flows[0], self.flows[0].partition("?")[0])
        if name == "against":
            return value in self.flows[1:]
        for holder in (self.spec, self.spec.bottleneck):
            if name in type(holder).model_fields:
                found = getattr(holder, name)
                return str(found) == value or _number(str(found)) == _number(value)
        raise StoreError(f"an experiment has no field {name!r}; choose by flow, seed, rtt_ms, …")


def published_points(path: str | Path) -> Iterator[Point]:
    """All published points of a sweep's YAML, a folder of runs or tables, or a tree of these.

    Raises StoreError where there is none, and for a file that was changed.
    """
    place = Path(path)
    found = False
    for source in [place] if place.is_file() else _sources(place):
        for point in _points(source):
            found = True
            yield point
    if not found:
        raise StoreError(
            f"{path} has no published point; give data, a folder in it, or a sweep's YAML"
        )


def _sources(folder: Path) -> Iterator[Path]:
    """The published files and folders of a tree, in order."""
    for place in sorted([folder, *folder.rglob("*")]):
        is_sweep = place.suffix in SPEC_ENDINGS and place.with_suffix(".json").exists()
        if is_sweep or place.name in (INDEX, MAKE):
            yield place


def _points(source: Path) -> Iterator[Point]:
    if source.suffix in SPEC_ENDINGS:
        return _of_sweep(source)
    if source.name == INDEX:
        return _of_runs(source.parent)
    if source.name == MAKE:
        return _of_tables(source)
    if source.suffix == ".csv":
        return (point for point in _of_tables(_make_of(source)) if point.source == source)
    raise StoreError(f"{source} is no sweep's YAML, table or folder of published data")


def _of_sweep(path: Path) -> Iterator[Point]:
    """The runs of a published sweep."""
    facts = json.loads(path.with_suffix(".json").read_text())
    inputs = _inputs(facts, facts["stack_versions"])
    cube = load_published(path)
    sweep = Sweep(**json.loads(cube.attrs["sweep"]))
    measure = partial(_figures, version=version_of(facts))
    done = cube["done"].transpose(*sweep.sweep).values
    for point in sweep.points():
        if done[point.index]:
            row = dict(zip(sweep.sweep, point.index, strict=True))
            published = partial(_of_cube, cube, row)
            yield Point(path, point.experiment, published, measure, STEP, inputs)


def _of_cube(cube: xr.Dataset, place: Mapping[str, int]) -> Values:
    """The figures of one run in a cube, and its throughput over time."""
    row = cube.isel(place)
    labels = [str(label) for label in row["label"].values if label]
    figures = {
        f"{name} of {label}": float(row[name].values[i])
        for name in FIGURES
        for i, label in enumerate(labels)
    }
    series = row["series_throughput_mbps"].values
    return figures | _over_time({label: series[i] for i, label in enumerate(labels)})


def _figures(run: xr.Dataset, version: int) -> Values:
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
        f"throughput_mbps of {label} in second {i}": float(value)
        for label, values in series.items()
        for i, value in enumerate(values)
        if np.isfinite(value)
    }


def _of_runs(folder: Path) -> Iterator[Point]:
    """The runs of a folder with an index, but imported captures and tables."""
    for name, facts in read_index(folder, "runs")["files"].items():
        provenance = facts.get("provenance") or {}
        if not provenance.get("spec"):
            continue
        path = folder / name
        attrs = load_run(path).attrs
        spec: Experiment | WebLoad = (
            WebLoad.from_json(attrs["web_load"])
            if "web_load" in attrs
            else Experiment.from_json(attrs["spec"])
        )
        inputs = _inputs(provenance, json.loads(provenance.get("stack_versions") or "{}"))
        yield Point(path, spec, partial(_of_file, path), _variables, inputs=inputs)


def _of_file(path: Path) -> Values:
    return _variables(load_run(path))


def _variables(run: xr.Dataset) -> Values:
    """Sum and largest value of each numeric variable, which move if any of its values does."""
    numeric = {str(name): v.values for name, v in run.data_vars.items() if v.dtype.kind in "iuf"}
    known = {name: v[np.isfinite(v)] for name, v in numeric.items()}
    return {
        f"{what} of {name}": float(of(values))
        for name, values in known.items()
        if len(values)
        for what, of in (("sum", np.sum), ("maximum", np.max))
    }


def _of_tables(make: Path) -> Iterator[Point]:
    """The rows of a folder's tables."""
    if TABLES not in make.read_text():  # it makes no tables whose rows are runs
        return
    program = _loaded(make)
    for name in getattr(program, TABLES):
        path = make.parent / name
        for row in pd.read_csv(path, keep_default_na=False, na_values=["nan", ""]).to_dict(
            "records"
        ):
            spec, measure = program.again(path.stem, row)
            published = {
                str(key): float(value)
                for key, value in row.items()
                if isinstance(value, int | float) and key not in ("cpu_s", "run")
            }
            yield Point(path, spec, partial(dict, published), measure)


def _make_of(table: Path) -> Path:
    """The program that makes a table: beside it, or in the folder above."""
    for folder in table.parents[:2]:
        if (folder / MAKE).exists():
            return folder / MAKE
    raise StoreError(f"no {MAKE} beside {table} says how it was made")


def _loaded(make: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"make_{make.parent.name}", make)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _inputs(facts: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, str]:
    found = {str(stack): str(text) for stack, text in versions.items()}
    found["kernel"] = str(facts["kernel_version"])
    found["measurement version"] = str(version_of(facts))
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
