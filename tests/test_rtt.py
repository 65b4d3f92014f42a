"""The passive RTT agrees with the kernel's own, on any link."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from qbkit.metrics.flows.jitter import ordered_jitter_ms
from qbkit.spec import Bottleneck, Experiment, Flow

MOST_LOSS_PERCENT = 20.0
"""With more, most of TCP's samples are ambiguous and not taken (Karn's algorithm)."""


def kernel_rtt_ms(run: xr.Dataset, index: int) -> float:
    """Mean over the packets of tcp_info's smoothed RTT when their ACKs arrive."""
    left_s = run.packet_departure_s.values
    mine = (run.packet_flow.values == index) & np.isfinite(left_s)
    back_s = left_s[mine] + float(run.base_rtt_ms[index]) / 2e3
    reported = (run.sample_flow.values == index) & np.isfinite(run.sample_srtt_ms.values)
    time_s, srtt_ms = run.sample_time_s.values[reported], run.sample_srtt_ms.values[reported]
    row = np.searchsorted(time_s, back_s)
    return float(srtt_ms[row[row < len(time_s)]].mean())


def random_experiment(seed: int) -> Experiment:
    """A random link with jitter, extra RTTs and reverse traffic."""
    rng = np.random.default_rng(seed)
    rtt_ms = float(np.round(math.exp(rng.uniform(math.log(5), math.log(200)))))
    rate_mbps = float(np.round(math.exp(rng.uniform(math.log(2), math.log(40))), 1))
    jitter_ms = float(np.round(rng.uniform(0, rtt_ms / 2), 1)) if rng.random() < 0.7 else None
    extra_ms = float(rng.choice([0, 0, 40]))
    flows = [Flow(f"tcp:{rng.choice(['cubic', 'reno', 'bbr'])}", extra_rtt_ms=extra_ms)]
    if rng.random() < 0.4:
        flows.append(Flow("tcp:cubic", direction="reverse"))
    link = Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=float(rng.choice([0.5, 1, 3])))
    return Experiment(bottleneck=link, flows=flows, duration_s=10, seed=seed, jitter_ms=jitter_ms)


def assert_agrees(run: xr.Dataset) -> None:
    for i, row in enumerate(run.qb.summary().to_dict("records")):
        if row["loss_percent"] <= MOST_LOSS_PERCENT:
            kernel_ms = kernel_rtt_ms(run, i)
            assert row["rtt_mean_ms"] == pytest.approx(kernel_ms, rel=0.02, abs=1), run.spec


@pytest.mark.guest
@pytest.mark.parametrize("seed", range(12))
def test_the_passive_rtt_is_the_kernels_own(seed: int):
    assert_agrees(random_experiment(seed).run())


@pytest.mark.guest
def test_the_jitter_that_a_user_sets_is_part_of_the_rtt():
    link = Bottleneck(rate_mbps=20, rtt_ms=100)
    assert_agrees(
        Experiment(bottleneck=link, flows=["tcp:cubic"], jitter_ms=45, duration_s=10).run()
    )


@settings(max_examples=20, deadline=None)
@given(st.floats(0.02, 2.0), st.floats(1, 100), st.integers(0, 2**32))
def test_order_adds_what_a_simulation_finds(step: float, half_width_ms: float, seed: int):
    """Packets at equal distances of ``step`` jitter widths, each held back by all before it."""
    sent_s = np.arange(20_000) * step * 2 * half_width_ms / 1e3
    drawn_ms = np.random.default_rng(seed).uniform(-half_width_ms, half_width_ms, len(sent_s))
    left_s = np.maximum.accumulate(sent_s + drawn_ms / 1e3)
    simulated_ms = float(((left_s - sent_s) * 1e3).mean())
    assert ordered_jitter_ms(left_s, half_width_ms).mean() == pytest.approx(
        simulated_ms, abs=0.06 * half_width_ms
    )
