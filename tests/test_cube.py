"""The cube of a sweep and the figures of its runs: each can be computed from the other."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from qbkit.spec.sweep import Sweep
from qbkit.store.cube import cube, figures_of
from qbkit.store.figures import FIGURES

BBR = {"stack": "tcp", "controller": "bbr", "label": "a rival: the kernel's"}
SWEEP = Sweep(
    name="x",
    base={"bottleneck": {"rate_mbps": 10, "rtt_ms": 20}, "flows": ["tcp:cubic", BBR]},
    sweep={"flows.0": ["tcp:cubic", "quinn:bbr"], "seed": [1, 2, 3]},
)
NAMES = [f"run-{i}" for i in range(len(SWEEP))]
LABELS = [[name, BBR["label"]] for name in ("tcp:cubic", "quinn:bbr") for _ in range(3)]
VALUE = st.floats(0, 100, width=32)


@st.composite
def figures(draw):
    """Figures of some of the runs, of any length; a figure may be unknown."""
    there = draw(st.lists(st.sampled_from(range(len(SWEEP))), min_size=1, unique=True))
    return {NAMES[i]: _figures(draw, LABELS[i]) for i in there}


def _figures(draw, labels):
    two = {"min_size": 2, "max_size": 2}
    rows = st.lists(st.lists(VALUE, **two), max_size=4)
    versions = dict.fromkeys(["tcp", labels[0].partition(":")[0]], "1.0")
    return {
        "labels": labels,
        "figures": {f: draw(st.lists(VALUE | st.none(), **two)) for f in FIGURES},
        "series": draw(st.lists(st.lists(VALUE, max_size=4), **two)),
        "points": draw(st.lists(rows, **two)),
        "warnings": [],
        "cpu_s": draw(VALUE | st.none()),
        "stack_versions": json.dumps(versions, sort_keys=True),
        "kernel_version": "7.2.13",
    }


def plain_figures(mbps: float) -> dict[str, dict]:
    """Figures of each run, the same in all."""
    rest = {"points": [[], []], "warnings": [], "cpu_s": 1.0}
    versions = {"stack_versions": "{}", "kernel_version": ""}
    figures = {"figures": {f: [mbps, mbps] for f in FIGURES}, "series": [[mbps], [mbps]]}
    return {
        name: {"labels": labels, **figures, **rest, **versions}
        for name, labels in zip(NAMES, LABELS, strict=True)
    }


@settings(max_examples=30)
@given(figures())
def test_the_figures_of_a_cube_rebuild_it(found):
    made = cube(SWEEP, NAMES, found)
    again = figures_of(made)
    assert again.keys() == found.keys()
    for name, figures in found.items():
        for part in ("labels", "series", "points", "stack_versions", "kernel_version"):
            assert again[name][part] == figures[part]
    xr.testing.assert_identical(cube(SWEEP, NAMES, again), made)


def test_a_sweep_with_more_values_keeps_its_runs():
    more = SWEEP.model_copy(update={"sweep": {**SWEEP.sweep, "seed": [3, 4, 1]}})
    names = [f"run-{i}" for i in (2, 10, 0, 5, 11, 3)]  # of seeds 1 to 3: 0, 1, 2 and 3, 4, 5
    found = plain_figures(1)
    made = cube(more, names, figures_of(cube(SWEEP, NAMES, found)))
    assert made.run.values.ravel().tolist() == names
    np.testing.assert_array_equal(made.done.sel(seed=[1, 3]), True)
    np.testing.assert_array_equal(made.done.sel(seed=4), False)
    assert made.label.sel({"flows.0": "quinn:bbr", "seed": 3}).values.tolist() == LABELS[3]
