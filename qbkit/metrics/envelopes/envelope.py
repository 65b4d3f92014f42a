"""The Performance Envelope (PE) of a flow, by three definitions.

``imc22``
    IMC'22 §2.1: the convex hull of the 95 % of operating points nearest their centroid, by
    Euclidean distance in unscaled ms and Mbit/s. The paper has one trial; pooling several is ours.
``refined``
    One hull per cluster of points, as in the authors' follow-up (IMC'23, doi
    10.1145/3618257.3624811), to which we have no access. So the rule is ours: the pooled points are
    divided into k-means clusters (`qbkit.metrics.envelopes.clusters` chooses how many), each
    cluster keeps the 95 % of its points nearest its centroid (same distance), and the PE is the
    union of the hulls. With one cluster it equals ``imc22``.
``quicbench``
    What QUICbench's released code computes (`qbkit.metrics.envelopes.quicbench` lists how its
    sampling differs): only the first of several trials counts, exactly ``int(0.95 n)`` points are
    kept (``imc22`` keeps at least 95 %, and all points as far as the last one kept, so that order
    does not matter), and the deviation is not normalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.envelopes.clusters import cluster_points
from qbkit.metrics.envelopes.hulls import BOUNDARY_TOLERANCE, convex_hull, inside, pick, to_geometry
from qbkit.metrics.envelopes.points import (
    MIN_POINTS,
    OperatingPoints,
    operating_points,
    require_long_enough,
)
from qbkit.metrics.envelopes.quicbench import quicbench_points, require_long_trace
from qbkit.traces.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import shapely

KEEP = 0.95

Trial = xr.Dataset | OperatingPoints | npt.NDArray[np.floating]
"""One run of a flow: a run dataset, its operating points, or an array (n, 2) of
[delay_ms, throughput_mbps]."""


@dataclass(frozen=True)
class Definition:
    """Rules for computing a Performance Envelope from runs."""

    name: str
    title: str
    """Title in charts and tables, one line."""
    sample: Callable[[xr.Dataset, str | int], OperatingPoints]
    """Operating points of one run."""
    nearest: Callable[[FloatArray], BoolArray]
    """Which points (n, 2) are kept."""
    cluster: Callable[[FloatArray], IntArray]
    """Cluster number of each point; each cluster has its own hull."""
    require: Callable[[float, float], None] = require_long_enough
    """Raises SpecError for runs that are too short: of a length in s and an RTT in ms."""
    pools: bool = True
    """Whether several trials are pooled; otherwise only the first counts."""
    normalises: bool = True
    """Whether the deviation divides both axes by their maxima."""


def _nearest_or_tied(points: FloatArray) -> BoolArray:
    distance = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1))
    kept = math.ceil(KEEP * len(points) - 1e-9)
    farthest = np.partition(distance, kept - 1)[kept - 1]
    return distance <= farthest + BOUNDARY_TOLERANCE


def _nearest_exactly(points: FloatArray) -> BoolArray:
    distance = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    kept = np.zeros(len(points), dtype=bool)
    kept[np.argsort(distance, kind="stable")[: int(len(points) * KEEP)]] = True
    return kept


def _one_cluster(points: FloatArray) -> IntArray:
    return np.zeros(len(points), dtype=np.int64)


DEFINITIONS: dict[str, Definition] = {
    d.name: d
    for d in (
        Definition(
            "imc22",
            "IMC'22: hull of the 95 % of points nearest the centroid",
            operating_points,
            _nearest_or_tied,
            _one_cluster,
        ),
        Definition(
            "refined",
            "refined: one 95 % hull per k-means cluster",
            operating_points,
            _nearest_or_tied,
            cluster_points,
        ),
        Definition(
            "quicbench",
            "QUICbench's code: first trial, moving windows",
            quicbench_points,
            _nearest_exactly,
            _one_cluster,
            require_long_trace,
            pools=False,
            normalises=False,
        ),
    )
}
"""Definitions by name; add an entry to add a definition."""


def definition_of(name: str) -> Definition:
    """The definition of that name; MetricError lists the valid names."""
    if name not in DEFINITIONS:
        raise MetricError(
            f"there is no envelope definition {name!r}; choose one of {', '.join(DEFINITIONS)}"
        )
    return DEFINITIONS[name]


def require_hull(definition: str, duration_s: float, rtt_ms: float) -> None:
    """Raise SpecError for flows too short for the definition's hull, as far as that is known.

    Raises MetricError for an unknown definition.
    """
    definition_of(definition).require(duration_s, rtt_ms)


@dataclass(frozen=True, eq=False)
class Envelope:
    """A Performance Envelope: the points of all trials, and the hulls of the kept points."""

    definition: str
    points: FloatArray
    """(n, 2): [delay_ms, throughput_mbps] of every sampled point."""
    trial: IntArray
    """(n,): which trial each point comes from."""
    time_s: FloatArray
    """(n,): time of each point in its run; NaN if unknown."""
    cluster: IntArray
    """(n,): the cluster of each point."""
    kept: BoolArray
    """(n,): False for the outliers."""
    hulls: tuple[FloatArray, ...]
    """Vertices (v, 2) of one hull per cluster, counter-clockwise; v is 1 or 2 for a flat hull."""
    centroid: FloatArray
    """(2,): mean of all points including outliers, as in QUICbench: [delay_ms, mbps]."""
    parameters: Mapping[str, float | int] = field(default_factory=dict)
    """Numbers for the chart's subtitle: keep, clusters, trials, interval_s and the cuts."""

    def contains(self, points: FloatArray) -> BoolArray:
        """Which points (m, 2) lie in the envelope; the boundary counts as inside."""
        return inside(points, self.hulls)

    @property
    def geometry(self) -> shapely.Geometry:
        """The envelope as one shapely geometry (the union of its hulls)."""
        return to_geometry(self.hulls)


def envelope(
    trials: Trial | Sequence[Trial],
    flow: str | int = 0,
    *,
    definition: str = "imc22",
) -> Envelope:
    """Performance Envelope of one or several trials of a flow.

    ``flow`` selects the flow of a run dataset; it does not apply to points and arrays. Raises
    MetricError for an unknown definition or flow, without a trial, and for a trial with fewer than
    3 points.
    """
    rule = definition_of(definition)
    sampled = sample_trials(trials, flow, definition=definition)
    if not rule.pools:
        sampled = sampled[:1]
    points = join([t.xy for t in sampled])
    cluster = rule.cluster(points)
    kept, hulls = region(points, cluster, rule)
    return Envelope(
        definition=definition,
        points=points,
        trial=np.repeat(np.arange(len(sampled)), [len(t) for t in sampled]),
        time_s=np.concatenate([t.time_s for t in sampled]),
        cluster=cluster,
        kept=kept,
        hulls=hulls,
        centroid=points.mean(axis=0),
        parameters={
            "keep": KEEP,
            "clusters": len(hulls),
            "trials": len(sampled),
            "interval_s": sampled[0].interval_s,
            "skip_start_s": sampled[0].skip_start_s,
            "skip_end_s": sampled[0].skip_end_s,
        },
    )


def sample_trials(
    trials: Trial | Sequence[Trial], flow: str | int = 0, *, definition: str = "imc22"
) -> list[OperatingPoints]:
    """Operating points of each trial, sampled according to the definition; see `envelope`."""
    rule = definition_of(definition)
    if isinstance(trials, xr.Dataset | OperatingPoints | np.ndarray):
        trials = [trials]
    if not len(trials):
        raise MetricError("there is no trial; give at least one run or set of points")
    sampled = []
    for trial in trials:
        if isinstance(trial, xr.Dataset):
            sampled.append(rule.sample(trial, flow))
        elif isinstance(trial, OperatingPoints):
            if len(trial) < MIN_POINTS:
                raise MetricError(f"a trial has {len(trial)} points, but a hull needs {MIN_POINTS}")
            sampled.append(trial)
        else:
            sampled.append(OperatingPoints.from_array(trial))
    return sampled


def join(points: Sequence[FloatArray]) -> FloatArray:
    """All points (n, 2) of several trials; contiguous columns halve the cost of means."""
    return np.concatenate([p.T for p in points], axis=1).T


def region(
    points: FloatArray, cluster: IntArray, rule: Definition
) -> tuple[BoolArray, tuple[FloatArray, ...]]:
    """Which points (n, 2) are kept, and one hull per cluster."""
    kept = np.zeros(len(points), dtype=bool)
    hulls = []
    for number in range(int(cluster.max()) + 1):
        mine = cluster == number
        if mine.any():
            members = pick(points, mine)
            near = rule.nearest(members)
            kept[mine] = near
            hulls.append(convex_hull(pick(members, near)))
    return kept, tuple(hulls)
