"""Whether flows settle: the drift by hand, and how often chance looks like one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chart_words import said
from synthetic_cubes import settings_cube

import qbkit as qb
from qbkit.metrics import assess, drift_mbps, settles, settling


def trial(*mbps: float) -> np.ndarray:
    """Operating points with this throughput, one after the other."""
    return np.column_stack([np.full(len(mbps), 30.0), mbps])


def test_the_drift_by_hand():
    # Second halves minus first: (5 + 7) / 2 - (8 + 10) / 2 = -3, -1 and -2; of five points the
    # middle one counts with the second half: (6 + 6 + 6) / 3 - (8 + 8) / 2 = -2.
    trials = [trial(8, 10, 5, 7), trial(8, 8, 7, 7), trial(8, 8, 6, 6, 6)]
    found = drift_mbps(trials)
    assert found.value == pytest.approx(-2)
    assert found.error == pytest.approx(1 / math.sqrt(3))
    # t(0.975; 2) = 4.3027, so the interval -2 ± 2.484 holds zero.
    assert found.interval(0.95, -math.inf, math.inf) == pytest.approx((-4.484, 0.484), abs=1e-3)
    assert settles(trials)


def test_a_certain_drift_of_more_than_a_tenth_does_not_settle():
    far = [trial(8, 8, 6, 6), trial(8, 8, 6.1, 6.1), trial(8, 8, 5.9, 5.9)]
    assert not settles(far)
    near = [trial(8, 8, 7.5, 7.5), trial(8, 8, 7.6, 7.6), trial(8, 8, 7.4, 7.4)]  # 6 % less
    assert settles(near)
    assert settles(far[:1])  # one trial has no interval


def test_a_steady_flow_settles_about_as_often_as_the_interval_says():
    rng = np.random.default_rng(0)
    drawn = [[trial(*rng.normal(10, 4, 40)) for _ in range(5)] for _ in range(400)]
    wrong = sum(not settles(trials) for trials in drawn)
    assert 0 < wrong <= 0.05 * 400 + 3 * math.sqrt(0.05 * 0.95 * 400)


def test_every_cell_of_a_cube():
    cube = settings_cube(["tcp:cubic", "a:cubic"], seeds=3)
    mbps = cube.point_throughput_mbps.copy()
    late = cube["point"].size // 2
    place = {"flows.0": 1, "bottleneck.rtt_ms": 1, "bottleneck.buffer_bdp": 0}
    mbps[{**place, "point": slice(late, None)}] -= 3
    cube["point_throughput_mbps"] = mbps
    cube["done"][{"flows.0": 0, "bottleneck.rtt_ms": 0}] = False
    cube["point_throughput_mbps"][{"flows.0": 0, "bottleneck.rtt_ms": 0}] = np.nan
    cube["point_delay_ms"][{"flows.0": 0, "bottleneck.rtt_ms": 0}] = np.nan
    found = settling(cube)
    assert int((~found.settles).sum()) == 1
    cell = found.isel(place)
    assert not cell.settles
    assert float(cell.drift_mbps) == pytest.approx(-3, abs=0.7)
    assert float(cell.drift_low_mbps) < float(cell.drift_mbps) < float(cell.drift_high_mbps) < 0
    assert found.drift_mbps.isel({"flows.0": 0, "bottleneck.rtt_ms": 0}).isnull().all()
    chart = qb.plots.conformance_map_chart({"tcp:cubic": cube})
    assert "In brackets: the implementation does not settle" in said(chart)
    steady = qb.plots.conformance_map_chart({"tcp:cubic": settings_cube(["tcp:cubic", "a:cubic"])})
    assert "brackets" not in said(steady)


def test_the_verdict_warns_of_a_side_that_does_not_settle():
    rng = np.random.default_rng(1)
    steady = [np.column_stack([rng.normal(30, 3, 120), rng.normal(10, 1, 120)]) for _ in range(5)]
    drifting = [points - [0, 3] * (np.arange(120) >= 60)[:, None] for points in steady]
    (warning,) = assess(drifting, steady, bootstrap=1).warnings
    assert warning.startswith(
        "the test does not settle: its throughput in the second half of a trial is -3."
    )
    assert assess(steady, steady[::-1], bootstrap=1).warnings == ()
    (warning,) = assess(steady, drifting, bootstrap=1).warnings
    assert warning.startswith("the reference does not settle")
