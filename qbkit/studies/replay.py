"""Run a stored or published run again, and look at a second of it, packet by packet.

Runs are deterministic, so nothing needs to be stored to look inside: the run is made again with its
captures, and compared with what was stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from qbkit import extras, store
from qbkit.chosen_flows import chosen_flows
from qbkit.errors import SpecError, StoreError, TraceError
from qbkit.execution.runner import kept_folder, namer, run, with_kept
from qbkit.measurement import measured_anew
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing.render import chart_fragment
from qbkit.plots.flows.sequence import sequence_chart
from qbkit.spec import Experiment
from qbkit.studies.reproduction.check import SAME, Reproduced, compared
from qbkit.studies.reproduction.inputs import published_inputs, way_back
from qbkit.studies.reproduction.points import Point, one_run
from qbkit.studies.reproduction.values import of_variables
from qbkit.traces.run.attributes import require_whole
from qbkit.traces.run.dissected import packets_within, require_within

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

HALF_S = 0.5
MOST_PACKETS = 4000
"""Of more packets, those nearest to the time are shown."""


@dataclass(frozen=True, repr=False)
class Replay:
    """A run that was made again, and the packets around a time of it."""

    run: xr.Dataset
    """The run of today, with its captures (and logs, if the run had them) beside it."""
    around_s: float
    span_s: tuple[float, float]
    """The time that is shown: a second, or less where there are many packets."""
    packets: pd.DataFrame
    """What reached the bottleneck in that time, or was in it: `RunAccessor.packets`."""
    found: Reproduced
    """Whether the run gives the same numbers as before, and which inputs differ."""
    is_same: bool | None
    """Whether it has the same bytes as the stored run; None of a point in a published table."""

    @property
    def verdict(self) -> str:
        """Whether this is what was stored, or what differs."""
        if self.is_same:
            return "The same bytes as the stored run."
        if self.found.verdict != SAME:
            return f"It differs from the stored run: {self.found.reason}."
        if self.is_same is None:
            return "The same numbers as published."
        return "Not the same bytes as the stored run, but the same sums of each variable."

    @property
    def inputs(self) -> str:
        """The inputs that differ."""
        differ = self.found.inputs_text
        return f"Inputs: {differ}." if differ else "No input differs."

    @property
    def way_back(self) -> str:
        """How to have the inputs of then, if others gave another run; else empty."""
        if self.is_same or (self.is_same is None and self.found.verdict == SAME):
            return ""
        point = self.found.point
        return way_back(point.inputs, point.source, self.found.inputs)

    @property
    def counts(self) -> str:
        """How many packets are shown."""
        start_s, stop_s = self.span_s
        to_receiver = self.packets[self.packets.direction == "to receiver"]
        fate = to_receiver.get("fate")
        lost = 0 if fate is None else int(fate.str.contains("dropped|lost").sum())
        acks = len(self.packets) - len(to_receiver)
        return (
            f"{start_s:.6g} to {stop_s:.6g} s: {len(to_receiver)} packets at the queue, "
            f"{lost} of them lost; {acks} ACKs."
        )

    def chart(self) -> alt.VConcatChart:
        """Sequence diagram: see `qbkit.plots.sequence_chart`."""
        title = f"{' + '.join(flow_labels(self.run))} around {self.around_s:g} s"
        sentences = self._sentences
        kept = kept_folder(Path(self.run.encoding["source"]))
        return sequence_chart(
            self.run, self.packets, self.span_s, kept=kept, title=title, sentences=sentences
        )

    def __repr__(self) -> str:
        return "\n".join(self._sentences)

    @property
    def _sentences(self) -> list[str]:
        found = [self.verdict, self.inputs, self.way_back, self.counts]
        return [sentence for sentence in found if sentence]

    def _repr_html_(self) -> str:
        return chart_fragment(self.chart().to_dict())


def replay(of: xr.Dataset | Point, around_s: float, *, progress: bool = False) -> Replay:
    """Make a run again with its captures, compare it with what was stored, and open a second of it.

    ``of`` is a run, stored or published, or a published point that is one run
    (`qbkit.studies.reproduction.published_points`). The new run is stored in ``replays`` beside the
    other runs; another time of it needs no further run. Logs are kept where the run had them:
    writing a qlog takes time, and moves packets.

    Raises TraceError for a time outside of the run or without packets, and for a run whose time or
    packets were cut, StoreError for what cannot
    be run again (imported captures, runs in real time, loads of pages, points of several runs), and
    else as `qbkit.run` does; MissingExtra without scapy.
    """
    if not isinstance(of, xr.Dataset | Point):
        raise SpecError(f"{of!r} is no run; open one by qb.load_run or qb.open_results")
    extras.require("scapy", to="dissect packets")
    if isinstance(of, xr.Dataset):  # as `qbkit reproduce` compares
        of = of.drop_vars(measured_anew(of.attrs), errors="ignore")
    point = of if isinstance(of, Point) else _point_of(of)
    experiment = _only_run(point)
    require_within(around_s, experiment.duration_s)
    again = _again(experiment, progress)
    span_s = _span_s(again, around_s)
    return Replay(
        again,
        around_s,
        span_s,
        packets_within(again, kept_folder(Path(again.encoding["source"])), span_s),
        compared(point, [again if isinstance(of, Point) else _of_its_flows(of, again)]),
        None if isinstance(of, Point) else same_bytes(of, again),
    )


def _point_of(ds: xr.Dataset) -> Point:
    """A stored run as what is compared with the run of today."""
    if "web_load" in ds.attrs:
        raise StoreError(
            "the run is the load of a page; only runs of flows are replayed", refused=True
        )
    if not ds.attrs.get("spec"):
        raise StoreError(
            "the run was imported, so it cannot be run again; look at its captures", refused=True
        )
    if ds.attrs["engine"] in ("physical", "host"):
        raise StoreError(
            f"the run was made in real time (engine {ds.attrs['engine']}), which does not repeat; "
            "run it with engine virtual",
            refused=True,
        )
    require_whole(ds)
    inputs = published_inputs(ds.attrs, json.loads(ds.attrs["stack_versions"]))
    recipe = one_run(Experiment.from_json(ds.attrs["spec"]), of_variables)
    source = Path(ds.encoding.get("source", "the run"))
    return Point(source, recipe, partial(of_variables, chosen_flows(ds)), inputs=inputs)


def _only_run(point: Point) -> Experiment:
    """The experiment of a point; StoreError if it has several, or a load of a page."""
    specs = point.recipe.specs
    if len(specs) != 1:
        raise StoreError(f"{point.name} is made of {len(specs)} runs; replay one run", refused=True)
    if not isinstance(specs[0], Experiment):
        raise StoreError(
            f"{point.name} is the load of a page; only runs of flows are replayed", refused=True
        )
    return specs[0]


def _again(experiment: Experiment, progress: bool) -> xr.Dataset:
    """The run of today, with captures; with logs if they change nothing in the experiment."""
    keep = ["pcap"]
    if with_kept(experiment, ("qlog",)).hash == experiment.hash:
        keep.append("qlog")
    out = store.default_folder() / "replays" / f"{namer()(experiment)}.nc"
    return run(experiment, out=out, keep=keep, progress=progress)


def _span_s(ds: xr.Dataset, around_s: float) -> tuple[float, float]:
    """The second around a time, or less of it; TraceError where there is no packet."""
    times_s = np.concatenate([ds["packet_time_s"].values, ds["ack_time_s"].values])
    away_s = np.sort(np.abs(times_s - around_s))
    if away_s[0] > HALF_S:
        nearest_s = times_s[np.argmin(np.abs(times_s - around_s))]
        raise TraceError(f"no packet is around {around_s:g} s; the nearest is at {nearest_s:.3f} s")
    half_s = HALF_S if len(away_s) <= MOST_PACKETS else min(HALF_S, float(away_s[MOST_PACKETS]))
    return max(0.0, around_s - half_s), min(float(ds.attrs["duration_s"]), around_s + half_s)


def same_bytes(stored: xr.Dataset, again: xr.Dataset) -> bool:
    """Whether all variables of a stored run, of all or some flows, are the same in another run."""
    stored, again = chosen_flows(stored), _of_its_flows(stored, again)
    return all(
        name in again.variables and _is_same(stored[name].values, again[name].values)
        for name in stored.variables
    )


def _of_its_flows(stored: xr.Dataset, again: xr.Dataset) -> xr.Dataset:
    """The new run with the flows of the stored one, by label: a run of chosen flows counts anew."""
    labels = again["label"].values.tolist()
    wanted = np.atleast_1d(stored["label"].values).tolist()
    if wanted == labels or not {*wanted} <= {*labels}:
        return again
    return chosen_flows(again.isel(flow=[labels.index(label) for label in wanted]))


def _is_same(stored: np.ndarray, again: np.ndarray) -> bool:
    if stored.dtype.kind in "OSUT":
        return bool(np.array_equal(stored.astype(str), again.astype(str)))
    return stored.dtype == again.dtype and stored.tobytes() == again.tobytes()
