"""Distributions of what a run's packets and bins have."""

from __future__ import annotations

import numpy as np
import pytest
from chart_words import tables_of
from synthetic import synthetic_run

from qbkit.errors import MetricError


def test_the_distribution_is_that_of_the_packets():
    ds = synthetic_run(duration_s=12)
    rows = tables_of(ds.qb.plot.distribution())[0]
    left = np.isfinite(ds.packet_departure_s.values) & (ds.packet_flow.values == 1)
    delay_ms = (ds.packet_departure_s - ds.packet_time_s).values[left] * 1e3
    at = {float(r["percent"]): float(r["value"]) for r in rows if r["label"] == "tcp:cubic"}
    for percent in (0, 50, 95, 99.9, 100):
        assert at[percent] == pytest.approx(np.percentile(delay_ms, percent), abs=1e-3)
    bins = tables_of(ds.qb.plot.distribution("throughput_mbps"))[0]
    median = next(r for r in bins if r["label"] == "tcp:cubic" and float(r["percent"]) == 50)
    assert float(median["value"]) == pytest.approx(np.median(ds.throughput_mbps[1]), abs=1e-3)
    with pytest.raises(MetricError, match="the run has no 'speed'; choose from"):
        ds.qb.plot.distribution("speed")
