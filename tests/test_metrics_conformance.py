"""Conformance, deviation and Conformance-T: golden numbers and properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbkit.errors import MetricError
from qbkit.metrics import DEFINITIONS, conformance, conformance_t, deviation, envelope, overlap
from qbkit.metrics.envelopes.conformance import pairwise_conformance

DEFINITION = pytest.mark.parametrize("definition", DEFINITIONS)
QUICK = settings(deadline=None, max_examples=12)


def _cloud(seed: int, n: int, x: float, y: float, two: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.normal((x, y), (4, 1), (n, 2))
    points[: n // 3 if two else 0] += (50, 8)
    return np.abs(points)


clouds = st.builds(
    _cloud,
    st.integers(0, 2**32 - 1),
    st.integers(10, 120),
    st.floats(20, 40),
    st.floats(5, 9),
    st.booleans(),
)


def lattice(left: float, bottom: float) -> np.ndarray:
    """A 5 x 4 lattice of step 1 with its middle once more: 21 points, of which 20 are kept."""
    points = [(left + x, bottom + y) for x in range(5) for y in range(4)]
    return np.array([*points, (left + 2, bottom + 1.5)], dtype=float)


def test_conformance_by_hand() -> None:
    # All four corners of a lattice are equally far from its middle, hence tied at the cut (20 of
    # 21): all 21 are kept. The test spans x 0..4, y 0..3, the reference x 2..6, y 1..4; they
    # overlap in x 2..4, y 1..3. Of each lattice 3 x 3 = 9 points lie there, and the middles,
    # (2, 1.5) and (4, 2.5), both on the overlap's edge: 20 of 42.
    test, reference = envelope(lattice(0, 0)), envelope(lattice(2, 1))
    assert conformance(test, reference) == pytest.approx(20 / 42)
    assert overlap(test, reference).area == pytest.approx(4.0)
    # Centroids differ by (2, 1); the largest delay is 6, the largest throughput 4.
    assert deviation(test, reference) == pytest.approx(math.hypot(2 / 6, 1 / 4))
    # Moved by (2, 1) the sets are one; so the test lies 2 ms and 1 Mbit/s below.
    assert conformance_t(test, reference) == pytest.approx((1.0, -1.0, -2.0))


def test_union_of_hulls_by_hand() -> None:
    # Two clouds against the first of them alone. Test: 42 points in two hulls; the reference's
    # 21 all lie in the first. The test's first 21 lie in the reference: 42 of 63.
    two = np.vstack([lattice(0, 0), lattice(60, 40)])
    test, reference = (
        envelope(two, definition="refined"),
        envelope(lattice(0, 0), definition="refined"),
    )
    assert len(test.hulls) == 2
    assert conformance(test, reference) == pytest.approx(42 / 63)


@DEFINITION
@given(points=clouds)
@QUICK
def test_identical_sets_conform_fully(definition: str, points: np.ndarray) -> None:
    a, b = envelope(points, definition=definition), envelope(points.copy(), definition=definition)
    assert conformance(a, b) == 1.0
    assert deviation(a, b) == 0.0
    assert conformance_t(a, b) == (1.0, 0.0, 0.0)


@DEFINITION
@given(a=clouds, b=clouds)
@QUICK
def test_disjoint_sets_have_no_conformance(definition: str, a: np.ndarray, b: np.ndarray) -> None:
    far = envelope(b + np.array([500.0, 0.0]), definition=definition)
    assert conformance(envelope(a, definition=definition), far) == 0.0


@DEFINITION
@given(a=clouds, b=clouds)
@QUICK
def test_symmetry_and_bounds(definition: str, a: np.ndarray, b: np.ndarray) -> None:
    x, y = envelope(a, definition=definition), envelope(b, definition=definition)
    assert conformance(x, y) == conformance(y, x)
    assert deviation(x, y) == deviation(y, x)
    assert 0 <= conformance(x, y) <= 1
    if definition != "quicbench":
        assert deviation(x, y) <= math.sqrt(2)


@DEFINITION
@given(many=st.lists(clouds, min_size=1, max_size=5))
@QUICK
def test_many_at_once_are_as_pair_by_pair(definition: str, many: list[np.ndarray]) -> None:
    envelopes = [envelope(points, definition=definition) for points in many]
    by_pair = [[conformance(one, other) for other in envelopes] for one in envelopes]
    assert np.array_equal(pairwise_conformance(envelopes), by_pair)


@pytest.mark.parametrize("definition", ["imc22", "refined"])
@given(a=clouds, b=clouds, seed=st.integers(0, 99))
@QUICK
def test_order_does_not_matter(definition: str, a: np.ndarray, b: np.ndarray, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(a)
    y = envelope(b, definition=definition)
    assert conformance(envelope(shuffled, definition=definition), y) == conformance(
        envelope(a, definition=definition), y
    )


@DEFINITION
@given(a=clouds, b=clouds, shift=st.tuples(st.integers(0, 64), st.integers(0, 64)))
@QUICK
def test_a_common_shift_does_not_matter(
    definition: str, a: np.ndarray, b: np.ndarray, shift: tuple[int, int]
) -> None:
    # On a dyadic grid the shifted numbers are exact, so no tie breaks otherwise.
    a, b = np.round(a * 1024) / 1024, np.round(b * 1024) / 1024
    moved = [envelope(p + np.array(shift, float), definition=definition) for p in (a, b)]
    still = [envelope(p, definition=definition) for p in (a, b)]
    assume(all(np.array_equal(m.kept, s.kept) for m, s in zip(moved, still, strict=True)))
    assert conformance(*moved) == conformance(*still)


@pytest.mark.parametrize("definition", ["imc22", "refined"])
@given(a=clouds, b=clouds)
@QUICK
def test_counting_equals_the_intersection_drawn(
    definition: str, a: np.ndarray, b: np.ndarray
) -> None:
    x, y = envelope(a, definition=definition), envelope(b, definition=definition)
    kept = shapely.points(np.vstack([x.points[x.kept], y.points[y.kept]]))
    # Distance, not contains: the hulls' own vertices are on the edge.
    within = shapely.distance(kept, overlap(x, y)) < 1e-7 if overlap(x, y) else np.zeros(1)
    assert conformance(x, y) == pytest.approx(within.sum() / len(kept))


@pytest.mark.parametrize("definition", ["imc22", "refined"])
@given(points=clouds, dx=st.floats(-15, 60), dy=st.floats(-4, 12))
@QUICK
def test_conformance_t_recovers_a_translation(
    definition: str, points: np.ndarray, dx: float, dy: float
) -> None:
    points = points + np.array([15.0, 4.0])
    test = envelope(points + np.array([dx, dy]), definition=definition)
    reference = envelope(points, definition=definition)
    assume(np.array_equal(test.kept, reference.kept))
    best = conformance_t(test, reference)
    assert best.conformance == 1.0
    assert best.delta_delay_ms == pytest.approx(dx, abs=1e-6)
    assert best.delta_throughput_mbps == pytest.approx(dy, abs=1e-6)


@DEFINITION
@given(a=clouds, b=clouds)
@settings(deadline=None, max_examples=8)
def test_conformance_t_is_never_below_conformance(
    definition: str, a: np.ndarray, b: np.ndarray
) -> None:
    x, y = envelope(a, definition=definition), envelope(b, definition=definition)
    best = conformance_t(x, y)
    assert conformance(x, y) <= best.conformance <= 1
    moved = envelope(
        a - np.array([best.delta_delay_ms, best.delta_throughput_mbps]), definition=definition
    )
    assume(np.array_equal(moved.kept, x.kept) and len(moved.hulls) == len(x.hulls))
    assert conformance(moved, y) == pytest.approx(best.conformance, abs=0.05)


def test_conformance_t_prefers_the_smallest_shift() -> None:
    # A square of side 2 around the middle of a large one, which has a point on each corner and
    # nine in the middle: 13 + 9 of 26 are shared as long as the middle stays in the small one.
    corners = np.array([(0, 0), (30, 0), (30, 30), (0, 30)], dtype=float)
    large = np.vstack([corners, np.full((9, 2), 15.0)])
    small = np.vstack([[14.0, 14.0] + corners / 15, np.full((9, 2), 15.0)])
    best = conformance_t(envelope(small), envelope(large))
    assert best == (22 / 26, 0.0, 0.0)
    # Moved by 20 ms, it need only come back by 19.
    apart = conformance_t(envelope(small + np.array([20.0, 0.0])), envelope(large))
    assert apart.conformance == 22 / 26
    assert apart.delta_throughput_mbps == pytest.approx(0.0, abs=0.01)
    assert apart.delta_delay_ms == pytest.approx(19.0, abs=0.1)


def test_definitions_must_agree() -> None:
    a, b = (
        envelope(lattice(0, 0), definition="imc22"),
        envelope(lattice(0, 0), definition="refined"),
    )
    for metric in (conformance, deviation, conformance_t):
        with pytest.raises(MetricError, match="different definitions"):
            metric(a, b)
