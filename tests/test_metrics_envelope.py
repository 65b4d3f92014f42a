"""Hulls, clusters and the three definitions of the Performance Envelope."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic import synthetic_run

from qbkit.errors import MetricError
from qbkit.metrics import DEFINITIONS, envelope, operating_points
from qbkit.metrics.envelopes.clusters import cluster_points, silhouette
from qbkit.metrics.envelopes.hulls import convex_hull, inside

clouds = st.builds(
    lambda seed, n: np.random.default_rng(seed).uniform(0, 100, (n, 2)),
    st.integers(0, 2**32 - 1),
    st.integers(3, 300),
)
lattices = arrays(np.float64, st.tuples(st.integers(1, 30), st.just(2)), elements=st.integers(0, 3))


def blob(centre: tuple[float, float], n: int, seed: int, sigma: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(centre, sigma, (n, 2))


def test_imc22_by_hand() -> None:
    # 18 points on the square of side 2 around (10, 10), one far away, one in the middle: 20
    # points, ceil(0.95 x 20) = 19 kept, so the far one goes. The hull is the square; the
    # centroid, of all points, is 10 + (30 - 10) / 20 = 11 on either axis.
    corners = np.array([(9, 9), (11, 9), (11, 11), (9, 11)], dtype=float)
    edges = np.array([(10, 9), (11, 10), (10, 11), (9, 10)], dtype=float)
    points = np.vstack([corners] * 2 + [edges] * 2 + [[[10, 10]], [[10, 10]], [[10, 10]]])
    points = np.vstack([points, [[30.0, 30.0]]])
    assert len(points) == 20
    e = envelope(points)
    assert e.kept.tolist() == [True] * 19 + [False]
    assert e.centroid == pytest.approx([11, 11])
    assert len(e.hulls) == 1
    assert sorted(map(tuple, e.hulls[0].tolist())) == [(9, 9), (9, 11), (11, 9), (11, 11)]
    assert e.geometry.area == pytest.approx(4.0)
    assert e.parameters["keep"] == 0.95
    assert e.contains(np.array([[9, 9], [10, 9], [10, 10.5], [11.001, 10]])).tolist() == [
        True,
        True,
        True,
        False,
    ]


def test_at_least_95_percent_are_kept() -> None:
    # 30 points: 28.5, so 29; QUICbench rounds down to 28.
    points = blob((50, 10), 30, seed=1)
    assert envelope(points, definition="imc22").kept.sum() == 29
    assert envelope(points, definition="quicbench").kept.sum() == 28


def test_trials_are_pooled_and_told_apart() -> None:
    trials = [blob((5, 5), 40, 1), blob((6, 5), 60, 2)]
    e = envelope(trials)
    assert np.bincount(e.trial).tolist() == [40, 60]
    assert np.array_equal(e.points, np.vstack(trials))
    assert e.parameters["trials"] == 2


def test_datasets_are_sampled_as_the_definition_says() -> None:
    runs = [synthetic_run(seed=s) for s in (1, 2)]
    e = envelope(runs, flow="tcp:cubic")
    assert np.array_equal(e.points[e.trial == 1], operating_points(runs[1], 1).xy)
    assert e.time_s[0] == pytest.approx(5.0)
    assert e.parameters["skip_start_s"] == 5.0
    assert e.parameters["interval_s"] == pytest.approx(0.2)


def test_refined_gives_separate_clouds_hulls_of_their_own() -> None:
    points = np.vstack([blob((10, 5), 200, 1), blob((60, 15), 100, 2)])
    e = envelope(points, definition="refined")
    assert len(e.hulls) == 2
    assert e.parameters["clusters"] == 2
    assert len(set(e.cluster[:200])) == len(set(e.cluster[200:])) == 1
    middle = np.array([[35.0, 10.0]])
    assert not e.contains(middle)[0]
    assert envelope(points, definition="imc22").contains(middle)[0]
    assert e.kept[:200].sum() == 190
    assert e.kept[200:].sum() == 95


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_number_of_clusters(k: int) -> None:
    centres = [(10, 5), (60, 15), (15, 18), (70, 3)]
    points = np.vstack([blob(c, 80, i) for i, c in enumerate(centres[:k])])
    assert cluster_points(points).max() + 1 == k


def test_a_line_and_a_few_outliers_are_no_clusters() -> None:
    line = np.linspace(0, 1, 300)[:, None] * (50.0, 10.0)
    assert cluster_points(line).max() == 0
    outliers = np.vstack([blob((10, 5), 300, 1), blob((90, 20), 9, 2)])  # 9 of 309: below 5 %
    assert cluster_points(outliers).max() == 0


def test_silhouette_by_hand() -> None:
    # On a line 0, 1 | 10, 11. Point 0: own 1, other (10 + 11) / 2 = 10.5: 1 - 1 / 10.5; point 1:
    # other 9.5: 1 - 1 / 9.5; the other side mirrors them.
    points = np.array([[0.0, 0], [1, 0], [10, 0], [11, 0]])
    want = ((1 - 1 / 10.5) + (1 - 1 / 9.5)) / 2
    assert silhouette(points, np.array([0, 0, 1, 1])) == pytest.approx(want)


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize(
    "points",
    [np.full((25, 2), 7.0), np.arange(25.0)[:, None] * (1.0, 2.0), np.eye(3)[:, :2] * (0.0, 9.0)],
    ids=["identical", "collinear", "vertical"],
)
def test_flat_sets_contain_their_own_points(definition: str, points: np.ndarray) -> None:
    e = envelope(points, definition=definition)
    assert e.contains(points[e.kept]).all()
    assert not e.contains(np.array([[-5.0, 33.0]]))[0]
    assert e.geometry.area == 0


@given(st.one_of(clouds, lattices))
@settings(deadline=None, max_examples=80)
def test_a_hull_holds_its_points_and_agrees_with_geos(points: np.ndarray) -> None:
    hull = convex_hull(points)
    assert inside(points, [hull]).all()
    geometry = shapely.convex_hull(shapely.multipoints(points))
    assert envelope_area(hull) == pytest.approx(geometry.area, abs=1e-6)
    probes = np.random.default_rng(0).uniform(-5, 105, (200, 2))
    near = shapely.distance(shapely.points(probes), geometry) < 1e-6
    assert np.array_equal(inside(probes, [hull]), near)


def envelope_area(hull: np.ndarray) -> float:
    """Shoelace; positive only for counter-clockwise vertices."""
    x, y = hull[:, 0], hull[:, 1]
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


@pytest.mark.parametrize("definition", ["imc22", "refined"])
@given(points=clouds, seed=st.integers(0, 999))
@settings(deadline=None, max_examples=12)
def test_order_does_not_matter(definition: str, points: np.ndarray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(points))
    e, shuffled = (
        envelope(points, definition=definition),
        envelope(points[order], definition=definition),
    )
    assert np.array_equal(e.kept[order], shuffled.kept)
    assert np.array_equal(e.cluster[order], shuffled.cluster)
    assert e.geometry.equals_exact(shuffled.geometry, 1e-9) or e.geometry.equals(shuffled.geometry)


def test_refusals() -> None:
    with pytest.raises(MetricError, match="no envelope definition 'imc23'; choose one of imc22"):
        envelope(np.zeros((3, 2)), definition="imc23")
    with pytest.raises(MetricError, match="no trial"):
        envelope([])
    with pytest.raises(MetricError, match="a hull needs 3"):
        envelope(np.zeros((2, 2)))
    with pytest.raises(MetricError, match="finite"):
        envelope(np.full((3, 2), np.nan))
    with pytest.raises(MetricError, match=r"shape \(n, 2\)"):
        envelope(np.zeros((3, 3)))
