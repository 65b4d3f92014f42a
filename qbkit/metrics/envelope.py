"""The Performance Envelope (PE) of a flow, by three definitions.

``imc22``
    IMC'22 §2.1: the convex hull of the 95 % of operating points nearest their centroid, by
    Euclidean distance in ms and Mbit/s as they are. The paper has one trial; that several trials
    are pooled is ours.
``refined``
    One hull per cluster of points, as in the authors' follow-up (IMC'23, doi
    10.1145/3618257.3624811), which we do not hold. The rule is therefore our own: the pooled points
    are divided into k-means clusters (`qbkit.metrics.clusters` says how many), each cluster keeps
    the 95 % of its points nearest its own centroid (same distance), and the PE is the union of the
    hulls. With one cluster it equals ``imc22``.
``quicbench``
    What QUICbench's released code computes (`qbkit.metrics.quicbench` lists how it samples
    differently): of several trials the first alone counts, ``int(0.95 n)`` points are kept
    exactly (``imc22`` keeps at least 95 %, and points as far as the last one kept, so that order
    cannot matter), and the deviation is not normalised.
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
from qbkit.metrics.clusters import cluster_points
from qbkit.metrics.hulls import BOUNDARY_TOLERANCE, convex_hull, inside, pick, to_geometry
from qbkit.metrics.points import MIN_POINTS, OperatingPoints, operating_points
from qbkit.metrics.quicbench import quicbench_points
from qbkit.traces.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import shapely

KEEP = 0.95

Trial = xr.Dataset | OperatingPoints | npt.NDArray[np.floating]
"""One run of a flow: a run dataset, its operating points, or an array (n, 2) of
[delay_ms, throughput_mbps]."""


@dataclass(frozen=True)
class Definition:
    """How a Performance Envelope is made of runs."""

    name: str
    title: str
    """One line for charts and tables."""
    sample: Callable[[xr.Dataset, str | int], OperatingPoints]
    """Operating points of one run."""
    nearest: Callable[[FloatArray], BoolArray]
    """Which points (n, 2) are kept."""
    cluster: Callable[[FloatArray], IntArray]
    """Cluster number of each point; each cluster has a hull of its own."""
    pools: bool = True
    """Several trials are pooled; otherwise the first alone counts."""
    normalises: bool = True
    """Deviation divides both axes by their maxima."""


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
            pools=False,
            normalises=False,
        ),
    )
}
"""The definitions by name; a third party adds one by adding an entry."""


def definition_of(name: str) -> Definition:
    """The definition of that name; MetricError tells which there are."""
    if name not in DEFINITIONS:
        raise MetricError(
            f"there is no envelope definition {name!r}; choose one of {', '.join(DEFINITIONS)}"
        )
    return DEFINITIONS[name]


@dataclass(frozen=True, eq=False)
class Envelope:
    """A Performance Envelope: points of all its trials, and the hulls of the kept ones."""

    definition: str
    points: FloatArray
    """(n, 2): [delay_ms, throughput_mbps] of every sampled point."""
    trial: IntArray
    """(n,): which trial each point comes from."""
    time_s: FloatArray
    """(n,): when in its run each point was; NaN where unknown."""
    cluster: IntArray
    """(n,): the cluster of each point."""
    kept: BoolArray
    """(n,): False for the outliers."""
    hulls: tuple[FloatArray, ...]
    """One (v, 2) of vertices per cluster, counter-clockwise; v is 1 or 2 where it is flat."""
    centroid: FloatArray
    """(2,): mean of all points, outliers too, as QUICbench takes it: [delay_ms, mbps]."""
    parameters: Mapping[str, float | int] = field(default_factory=dict)
    """Numbers to print beside the chart: keep, clusters, trials, interval_s and the cuts."""

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

    ``flow`` says which flow of a run dataset; points and arrays are taken as they are. Raises
    MetricError for an unknown definition or flow, no trial, or fewer than 3 points in one.
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
    """Operating points of each trial, sampled as the definition says; see `envelope`."""
    rule = definition_of(definition)
    if isinstance(trials, xr.Dataset | OperatingPoints | np.ndarray):
        trials = [trials]
    if not len(trials):
        raise MetricError("there is no trial; give at least one run or one set of points")
    sampled = []
    for trial in trials:
        if isinstance(trial, xr.Dataset):
            sampled.append(rule.sample(trial, flow))
        elif isinstance(trial, OperatingPoints):
            if len(trial) < MIN_POINTS:
                raise MetricError(f"a trial has {len(trial)} points and a hull needs {MIN_POINTS}")
            sampled.append(trial)
        else:
            sampled.append(OperatingPoints.from_array(trial))
    return sampled


def join(points: Sequence[FloatArray]) -> FloatArray:
    """All points (n, 2) of several trials, columns contiguous, which halves the cost of means."""
    return np.concatenate([p.T for p in points], axis=1).T


def region(
    points: FloatArray, cluster: IntArray, rule: Definition
) -> tuple[BoolArray, tuple[FloatArray, ...]]:
    """Kept points and one hull per cluster, of points (n, 2) whose clusters are known."""
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
