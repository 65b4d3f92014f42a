"""QUICbench's sampling, against a plain loop over packets written from its description."""

from __future__ import annotations

import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run
from test_metrics_points import steady_run, without_packets

from qbkit.errors import MetricError
from qbkit.metrics import conformance, deviation, envelope, quicbench_points
from qbkit.metrics.envelopes.quicbench import moving_window_points


def slow_throughput_trace(packets, window_s):
    """Rows (time, Mbit/s): grow by every packet, shrink by one where the window is too long."""
    rows, held, oldest = [], 0.0, 0
    opened = packets[0][0]
    for time, size, _ in packets:
        held += size
        if time - opened > window_s:
            rows.append((time, round(held / (time - opened) * 8 / 1000000, 5)))
            held -= packets[oldest][1]
            oldest += 1
            opened = packets[oldest][0]
    return rows


def slow_delay_trace(packets, window_s, end_s):
    """Rows (time, ms): the first window opens at time zero, not at the first packet."""
    rows, delays, held, oldest = [], [], 0.0, 0
    opened = 0.0
    for time, _, delay in packets:
        if time >= end_s:
            break
        delays.append((time, round(delay, 5)))
        held += delays[-1][1]
        if time - opened > window_s and len(delays) > 1:
            rows.append((time, round(held / (len(delays) - oldest), 5)))
            held -= delays[oldest][1]
            oldest += 1
            opened = delays[oldest][0]
    return rows


def slow_points(packets, window_s, duration_s):
    end_s = duration_s * 0.95
    rates = [row for row in slow_throughput_trace(packets, window_s) if row[0] < end_s]
    delays = slow_delay_trace(packets, window_s, end_s)
    points, epoch = [], delays[0][0]
    for time, delay in delays:
        if time >= epoch:
            epoch += window_s
            at = bisect.bisect_left([r[0] for r in rates], time)
            points.append((time, delay, rates[min(at, len(rates) - 1)][1]))
    return points


@st.composite
def packet_series(draw):
    """Bursts, gaps, equal times and steady parts; 0.5 s windows; about 12 s long."""
    scale = draw(st.sampled_from([0.002, 0.02, 0.08]))
    kind = st.sampled_from([0.0, 0.25, 1.0, 1.0, 1.0, 3.0, 20.0])
    pattern = draw(st.lists(kind, min_size=5, max_size=40).filter(lambda p: sum(p) > 3))
    count = int(12 / scale / (sum(pattern) / len(pattern)))
    gaps = np.resize(np.array(pattern), count) * scale
    first_s = draw(st.sampled_from([0.0, 0.013, 0.7]))
    time_s = np.round(first_s + np.cumsum(gaps), 9)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return time_s, rng.integers(60, 1515, count).astype(float), rng.uniform(0, 60, count)


@settings(max_examples=50, deadline=None)
@given(packet_series())
def test_equals_the_plain_loop(series):
    time_s, size_bytes, delay_ms = series
    duration_s = float(time_s[-1])
    packets = list(zip(time_s.tolist(), size_bytes.tolist(), delay_ms.tolist(), strict=True))
    try:
        got = moving_window_points(
            time_s, size_bytes, delay_ms, interval_s=0.5, flow_duration_s=duration_s
        )
    except MetricError:
        return  # refused as too short, which the plain loop does not check
    want = np.array(slow_points(packets, 0.5, duration_s))
    assert len(got[0]) == len(want)
    assert np.array_equal(got[0], want[:, 0])
    # Both are rounded to 1e-5; the loop's running sum may fall on the other side of a half.
    assert got[1] == pytest.approx(want[:, 1], abs=1.1e-5)
    assert np.array_equal(got[2], want[:, 2])


def test_steady_flow_by_hand() -> None:
    # Packets of 10 kbit leave every 10 ms; time zero is the first departure. A row comes when a
    # packet finds the window open for more than 0.5 s: then it holds 52 packets over 0.51 s, so
    # the rate is 0.52 / 0.51 Mbit/s, 2 % above the true 1 Mbit/s: the end packets count both.
    points = quicbench_points(steady_run(), 0)
    assert points.throughput_mbps == pytest.approx(np.full(len(points), 0.52 / 0.51), abs=1e-5)
    assert points.delay_ms == pytest.approx(np.full(len(points), 3.0))
    # Rows from 0.51 s to below 0.95 x 20 s = 19 s, one every 0.5 s: 37 of them.
    assert len(points) == 37


def test_the_window_stretches_by_one_packet_a_row() -> None:
    # Ten packets a second for 5 s, silence for 5 s, then ten a second again for 10 s; 1 s window.
    # After the gap each packet drops only one old packet, so the window still reaches back
    # over the gap: the first row after it covers more than 5 s.
    time_s = np.concatenate([np.arange(50) / 10, 10 + np.arange(100) / 10])
    size = np.full(150, 12500.0)
    times, _, mbps = moving_window_points(
        time_s, size, np.zeros(150), interval_s=1.0, flow_duration_s=20.0
    )
    after = mbps[np.searchsorted(times, 10.0)]
    # The packet at 10.0 s is number 50 (from 0); its window began one packet after that of the
    # packet at 4.9 s, whose window began at 3.8 s: so 3.9 s; 12 packets of 0.1 Mbit in 6.1 s.
    assert after == pytest.approx(12 * 0.1 / 6.1, abs=1e-5)


def test_only_the_first_trial_counts_and_five_percent_go_exactly() -> None:
    runs = [synthetic_run(seed=s) for s in (1, 2)]
    both = envelope(runs, definition="quicbench")
    alone = envelope(runs[0], definition="quicbench")
    assert np.array_equal(both.points, alone.points)
    assert int(alone.kept.sum()) == int(0.95 * len(alone.points))


def test_conformance_counts_kept_points_inside_the_other_hull() -> None:
    # 20 points a set, 19 kept: a 3 x 6 lattice of step 1 and its centre twice; the outlier goes.
    lattice = np.array([(x, y) for x in range(6) for y in range(3)], dtype=float)
    test = np.vstack([lattice, [[2.5, 1.0]], [[2.5, 90.0]]])
    reference = test + np.array([3.0, 0.0])
    # Overlap: x in [3, 5]: of the test x = 3, 4, 5 (9 points), of the reference likewise 9, and
    # neither middle (2.5, 5.5): 18 of 38.
    a, b = envelope(test, definition="quicbench"), envelope(reference, definition="quicbench")
    assert conformance(a, b) == pytest.approx(18 / 38)
    assert deviation(a, b) == pytest.approx(3.0)  # raw, not divided


def test_refusals() -> None:
    with pytest.raises(MetricError, match="packet table"):
        quicbench_points(without_packets(synthetic_run()), 0)
    ds = steady_run()
    ds["packet_departure_s"] = ds["packet_departure_s"].where(ds["packet_departure_s"] < 15)
    with pytest.raises(MetricError, match="ended too early"):
        quicbench_points(ds, 0)
