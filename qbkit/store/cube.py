"""The results of a sweep as one xarray cube: its dimensions are the swept fields."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from qbkit import measurement
from qbkit.metrics.maps.shares import STEP_S
from qbkit.spec.sweep import Sweep
from qbkit.store.figures import FIGURES
from qbkit.traces.run.early_end import EARLY_END
from qbkit.traces.run.schema import variable

SAME_IN_ALL = ("kernel_build", "tool_versions")
"""Facts that a cube has if they are the same in all runs."""


def cube(sweep: Sweep, names: Sequence[str], figures: Mapping[str, dict[str, Any]]) -> xr.Dataset:
    """The cube of a sweep from the ``names`` of its runs, in its order, and their figures by name.

    Dimensions are the swept fields, in order, then ``flow``, and ``point`` for operating points or
    ``time`` (s, start of a step) for the throughput series. Variables: those of `FIGURES`,
    ``label``, ``point_delay_ms``, ``point_throughput_mbps`` and ``series_throughput_mbps`` (NaN
    after a run's last value), ``ended_s`` (of connections that ended before their flow did; only
    if there are some), ``cpu_s``, ``run`` (its name) and ``done``. Where the sweep leaves a
    run out, ``run`` is empty and ``done`` False.
    """
    found = [figures[name] for name in names if name in figures]
    flows = max((len(d["labels"]) for d in found), default=0)
    points = max((len(p) for d in found for p in d["points"]), default=0)
    steps = max((len(s) for d in found for s in d["series"]), default=0)
    flat = _Flat(math.prod(sweep.shape), flows, points, steps)
    for point, name in zip(sweep.points(), names, strict=True):
        flat.put(int(np.ravel_multi_index(point.index, sweep.shape)), name, figures.get(name))
    time_s = variable("time", np.arange(steps) * STEP_S, "s", "time")
    ds = xr.Dataset(flat.variables(sweep), coords={**_coordinates(sweep), "time": time_s})
    versions = {n: text for d in found for n, text in json.loads(d["stack_versions"]).items()}
    ds.attrs = {
        "sweep": sweep.model_dump_json(),
        "stack_versions": json.dumps(versions, sort_keys=True),
        "kernel_version": next((d["kernel_version"] for d in found), ""),
        **{name: _common(found, name) for name in SAME_IN_ALL},
        "measurement_version": max(map(measurement.version_of, found), default=measurement.VERSION),
        "warnings": json.dumps(sorted({w for d in found for w in d["warnings"]})),
    }
    return ds


def figures_of(cube: xr.Dataset) -> dict[str, dict[str, Any]]:
    """The inverse of `cube`: the figures of each completed run, by name.

    Each run gets the warnings of all runs, and the versions of its own stacks: a cube does not
    store warnings and versions by run.
    """
    sweep = Sweep(**json.loads(cube.attrs["sweep"]))
    stacks = {p.index: {flow.stack for flow in p.experiment.flows} for p in sweep.points()}
    versions = json.loads(cube.attrs["stack_versions"])
    found = {}
    for index in np.argwhere(cube["done"].transpose(*sweep.sweep).values):
        row = cube.isel(dict(zip(sweep.sweep, index, strict=True)))
        labels = [str(label) for label in row["label"].values if label]
        flows = range(len(labels))
        taken = {n: text for n, text in versions.items() if n in stacks[tuple(index.tolist())]}
        points = np.stack([row["point_delay_ms"], row["point_throughput_mbps"]], axis=-1)
        early = row[EARLY_END].values[: len(labels)] if EARLY_END in row else np.array([])
        found[str(row["run"].item())] = {
            **({EARLY_END: early.tolist()} if np.isfinite(early).any() else {}),
            "labels": labels,
            "figures": {name: row[name].values[: len(labels)].tolist() for name in FIGURES},
            "series": [_known(row["series_throughput_mbps"].values[i]).tolist() for i in flows],
            "points": [_known(points[i]).tolist() for i in flows],
            "warnings": json.loads(cube.attrs["warnings"]),
            "cpu_s": row["cpu_s"].item(),
            "stack_versions": json.dumps(taken, sort_keys=True),
            "kernel_version": cube.attrs["kernel_version"],
            **{name: cube.attrs.get(name, "") for name in SAME_IN_ALL},
            "measurement_version": measurement.version_of(cube.attrs),
        }
    return found


def runs_of(cube: xr.Dataset) -> dict[str, str]:
    """The name of each completed run of a `cube`, by its experiment as JSON."""
    sweep = Sweep(**json.loads(cube.attrs["sweep"]))
    names = cube["run"].where(cube["done"], "").transpose(*sweep.sweep).values
    runs = {p.experiment.to_json(): str(names[p.index]) for p in sweep.points()}
    return {experiment: name for experiment, name in runs.items() if name}


def _common(figures: Sequence[Mapping[str, Any]], name: str) -> str:
    """What the figures of all runs say; "" if they differ, or do not say it."""
    found = {str(each.get(name, "")) for each in figures}
    return found.pop() if len(found) == 1 else ""


def _known(values: np.ndarray) -> np.ndarray:
    """The rows up to the last one with a known value."""
    rows = np.isfinite(values).nonzero()[0]
    return values[: int(rows.max(initial=-1)) + 1]


class _Flat:
    """The arrays, with one row per run."""

    def __init__(self, runs: int, flows: int, points: int, steps: int) -> None:
        self.labels = np.full((runs, flows), "", dtype=object)
        self.figures = {name: np.full((runs, flows), np.nan) for name in FIGURES}
        self.ended_s = np.full((runs, flows), np.nan)
        self.points = np.full((runs, flows, points, 2), np.nan, dtype=np.float32)
        self.series = np.full((runs, flows, steps), np.nan, dtype=np.float32)
        self.cpu_s = np.full(runs, np.nan)
        self.names = np.full(runs, "", dtype=object)
        self.done = np.zeros(runs, dtype=bool)

    def put(self, run: int, name: str, run_figures: dict[str, Any] | None) -> None:
        self.names[run] = name
        if run_figures is None:
            return
        count = len(run_figures["labels"])
        self.labels[run, :count] = run_figures["labels"]
        for name, values in self.figures.items():
            values[run, :count] = np.array(run_figures["figures"][name], dtype=float)
        if EARLY_END in run_figures:
            self.ended_s[run, :count] = np.array(run_figures[EARLY_END], dtype=float)
        for flow, points in enumerate(run_figures["points"]):
            if points:
                self.points[run, flow, : len(points)] = points
        for flow, series in enumerate(run_figures["series"]):
            self.series[run, flow, : len(series)] = series
        self.cpu_s[run] = np.nan if run_figures["cpu_s"] is None else run_figures["cpu_s"]
        self.done[run] = True

    def variables(self, sweep: Sweep) -> dict[str, Any]:
        runs, each = list(sweep.sweep), [*sweep.sweep, "flow"]
        fold = lambda values: values.reshape(*sweep.shape, *values.shape[1:])  # noqa: E731
        found: dict[str, Any] = {
            name: (each, fold(values), FIGURES[name]) for name, values in self.figures.items()
        }
        if np.isfinite(self.ended_s).any():
            text = "end of a connection that ended before its flow"
            found[EARLY_END] = variable(each, fold(self.ended_s), "s", text)
        found["label"] = (each, fold(self.labels.astype(str)))
        delays_ms, mbps = (fold(self.points[..., axis]) for axis in (0, 1))
        points, steps = [*each, "point"], [*each, "time"]
        text = "queueing delay of the operating points"
        found["point_delay_ms"] = variable(points, delays_ms, "ms", text)
        text = "throughput of the operating points"
        found["point_throughput_mbps"] = variable(points, mbps, "Mbit/s", text)
        text = "throughput of each step of time"
        found["series_throughput_mbps"] = variable(steps, fold(self.series), "Mbit/s", text)
        found["cpu_s"] = variable(runs, fold(self.cpu_s), "s", "processor time")
        found["run"] = (runs, fold(self.names.astype(str)), {"long_name": "name of the run"})
        found["done"] = variable(runs, fold(self.done), "1", "whether it ran")
        return found


def _coordinates(sweep: Sweep) -> dict[str, Any]:
    return {
        field: (field, values if _uniform(values) else [str(v) for v in values])
        for field, values in sweep.sweep.items()
    }


def _uniform(values: list[Any]) -> bool:
    """Whether all values are numbers, or all are texts, so that one array can hold them."""
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in values]
    return all(numbers) or all(isinstance(v, str) for v in values)
