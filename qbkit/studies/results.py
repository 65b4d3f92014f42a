"""Results of any kind by their place on disk, and the figures and tables that each kind has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from qbkit import metrics, plots, store
from qbkit.arguments import as_path
from qbkit.errors import MetricError, StoreError
from qbkit.metrics.flows.frames import flow_frames
from qbkit.metrics.flows.summary import without_zeros
from qbkit.metrics.maps.interactions import FIRST, SECOND
from qbkit.spec.spec_file import YAML
from qbkit.spec.sweep import named_flow
from qbkit.store.index import INDEX
from qbkit.store.published import load_sweep, published_index
from qbkit.studies.conformance import Study, load_study
from qbkit.studies.explain import load_explanation
from qbkit.studies.explanation import Explanation

if TYPE_CHECKING:
    import altair as alt

Results = xr.Dataset | Study | Explanation
"""A run or the cube of a sweep (both datasets), a study, or an explanation."""


def open_results(place: str | Path) -> Results:
    """The run, study, explanation or sweep at a place on disk.

    A run is a ``.nc`` file or the name of a stored run; a study or an explanation is the folder
    that `qbkit.publish_study` or `qbkit.publish_explanation` wrote; a sweep is its folder, or the
    SPEC.yaml that it is published beside. Raises StoreError if there is nothing of the kind.
    """
    path = as_path(place)
    if path.suffix in YAML or (path / "cube.zarr").exists():
        return load_sweep(path)
    if (path / INDEX).exists():
        index = published_index(path)
        if "parameters" in index:
            return load_explanation(path)
        if "test" in index:
            return load_study(path)
        raise StoreError(
            f"{path} holds runs, not a study; name one of them: {', '.join(index['files'])}",
            refused=True,
        )
    if path.is_file():
        return store.load_run(path)
    stored = store.path_of(str(place))
    if stored.exists():
        return store.load_run(stored)
    raise StoreError(
        f"there are no results at {place}; give a run (FILE.nc, or a name of `qbkit runs`), "
        "the folder of a study, or SPEC.yaml or the folder of a sweep",
        refused=True,
    )


def require_results(results: Any) -> None:
    """Raise MetricError for anything but a run, a sweep, a study or an explanation."""
    if not isinstance(results, xr.Dataset | Study | Explanation):
        raise MetricError(
            f"{results!r} is no result; give a run, a study or an explanation, as qb.open_results "
            "opens them",
            refused=True,
        )


def kinds_of(results: Results) -> tuple[str, ...]:
    """The kinds of figure that these results have, the most telling first."""
    return tuple(_figures(results))


def figure(results: Results, kind: str | None = None) -> alt.TopLevelMixin:
    """A chart of results, by default the first of `kinds_of`; MetricError for another kind."""
    found = _figures(results)
    if kind is None:
        kind = next(iter(found))
    if kind not in found:
        raise MetricError(
            f"these results have no figure {kind!r}; choose from {', '.join(found)}", refused=True
        )
    return found[kind]()


def _figures(results: Results) -> dict[str, Callable[[], Any]]:
    if isinstance(results, Explanation):
        results = results.study
    if isinstance(results, Study):
        return {"envelope": results.plot.envelope, "linked": results.plot.linked}
    if not is_cube(results):
        own = results.qb.plot
        names: tuple[str, ...] = (
            "timeline",
            "envelope",
            "linked",
            "distribution",
            "cwnd",
            "bytes_acked",
            "bandwidth",
            "loss",
        )
        if any(flow_frames(results, i) for i in range(results.sizes["flow"])):
            names += ("frames",)
        return {name.replace("_", "-"): getattr(own, name) for name in names}
    cube = results
    if SECOND in cube.dims:
        return {
            "matrix": lambda: plots.interaction_chart(one_setting(cube)),
            "expected": lambda: plots.expectation_chart(one_setting(cube)),
        }
    return {"map": lambda: plots.conformance_map_chart({reference_of(cube): cube})}


def is_cube(results: xr.Dataset) -> bool:
    """Whether a dataset is the cube of a sweep rather than a run."""
    return isinstance(results, xr.Dataset) and "done" in results


def reference_of(cube: xr.Dataset) -> str:
    """The implementation that a sweep compares all others with: its second flow.

    Raises MetricError for a sweep of lone flows.
    """
    flows = json.loads(cube.attrs["sweep"])["base"]["flows"]
    if len(flows) < 2:
        raise MetricError(
            "the sweep has lone flows, and a map compares with the implementation of the second "
            "flow; take numbers from the cube, or run it beside another flow",
            refused=True,
        )
    return named_flow(flows[1])


def one_setting(cube: xr.Dataset) -> xr.Dataset:
    """The cube at the first value of every field but the flows and the seed."""
    fields = [d for d in cube["done"].dims if d not in (FIRST, SECOND, "seed")]
    return cube.isel(dict.fromkeys(fields, 0))


def table(results: Results) -> pd.DataFrame:
    """The numbers of results, one row each: flows of a run, metrics of a study, cells of a sweep.

    Names of columns end in their unit, and intervals are pairs of columns, as
    `qbkit.save_table` takes them.
    """
    if isinstance(results, Explanation):
        return results.frame().drop(columns=["parameter", "score"])
    if isinstance(results, Study):
        return results.assess().frame()
    if not is_cube(results):
        flows = without_zeros(metrics.summary(results)).drop(columns=["stack", "controller"])
        return flows.dropna(axis="columns", how="all")
    if SECOND in results.dims:
        found = metrics.interactions(results).to_dataframe().reset_index()
        return found[found.trials > 0].dropna(axis="columns", how="all")
    return _map_table(metrics.conformance_map(results, reference_of(results)))


def _map_table(found: xr.Dataset) -> pd.DataFrame:
    names = ["conformance", "conformance_low", "conformance_high", "noise_floor", "deviation"]
    names += ["delta_throughput_mbps", "delta_delay_ms", "p_value", "q_value"]
    rows = found[names].to_dataframe().dropna(how="all").reset_index()
    order = [FIRST, *(d for d in found.conformance.dims if d != FIRST)]
    return rows[[*order, *names]].sort_values(order).rename(columns={FIRST: "implementation"})
