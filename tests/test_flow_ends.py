"""When flows end: complete transfers, those that do not finish, and flows that stall."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic import synthetic_run

import qbkit as qb
from qbkit.metrics.flows.summary import without_zeros
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.traces.run.ends import end_warnings

LINK = Bottleneck(rate_mbps=10, rtt_ms=40)


def run(*flows: Flow, duration_s: float) -> xr.Dataset:
    return Experiment(bottleneck=LINK, flows=flows, duration_s=duration_s, seed=1).run()


@pytest.mark.guest
@pytest.mark.parametrize("name", ["tcp:cubic", "quic-go:cubic", "ngtcp2:cubic", "nginx:cubic"])
def test_a_transfer_that_does_not_finish_has_the_rate_of_its_whole_time(name: str):
    # 10 Mbit/s carry 3.75 MB in 3 s, so that 5 MB do not fit.
    found = run(Flow(name, bytes=5_000_000), duration_s=3)
    (row,) = found.qb.summary().to_dict("records")
    assert row["throughput_mbps"] < 10.01
    assert float(found.stop_s[0]) == 3
    assert row["complete_s"] == "unfinished"
    (warning,) = [text for text in found.qb.warnings if "delivered" in text]
    arrived = float(found.receiver_bytes[0])
    if np.isfinite(arrived):
        assert warning == f"{name} delivered {int(arrived / 1e3)} of 5000 kB"
    assert warning.endswith(" of 5000 kB")


@pytest.mark.guest
def test_a_transfer_that_finishes_ends_with_its_last_packet():
    found = run(Flow("tcp:cubic", bytes=1_000_000), Flow("tcp:cubic"), duration_s=6)
    sized, endless = found.qb.summary().to_dict("records")
    last_s = float(found.packet_time_s.values[found.packet_flow.values == 0].max())
    assert float(found.stop_s[0]) == pytest.approx(last_s)
    assert sized["complete_s"] == pytest.approx(last_s - float(found.start_s[0]))
    assert np.isnan(endless["complete_s"])
    assert not found.qb.warnings


@pytest.mark.guest
def test_a_flow_with_a_stop_that_does_not_finish_ends_there():
    found = run(Flow("quic-go:cubic", bytes=50_000_000, stop_s=2.0), duration_s=3)
    assert float(found.stop_s[0]) == 2
    assert found.qb.summary().complete_s[0] == "unfinished"


@pytest.mark.parametrize(
    ("dead_from_s", "rtt_ms", "stalled"),
    [(9.4, 20, True), (12.5, 20, True), (13.2, 20, False), (9.4, 500, False), (5.0, 500, True)],
)
def test_a_flow_that_delivers_nothing_at_its_end_has_stalled(dead_from_s, rtt_ms, stalled):
    """14 s long; the limit is 1 s or 10 RTTs, whichever is longer."""
    whole = synthetic_run(
        flows=["tcp:cubic"], duration_s=14, rate_mbps=10, rtt_ms=rtt_ms, buffer_bdp=0.1
    )
    dead = whole["packet_time_s"] > dead_from_s
    cut = whole.assign(packet_departure_s=whole["packet_departure_s"].where(~dead))
    experiment = Experiment(
        bottleneck=Bottleneck(rtt_ms=rtt_ms), flows=(Flow("tcp:cubic"),), duration_s=14
    )
    found = end_warnings(cut, experiment)
    assert bool(found) is stalled
    if stalled:
        assert found == [f"tcp:cubic delivered nothing from {dead_from_s:.1f} s to its end at 14 s"]


def test_a_controller_that_stops_on_purpose_has_not_stalled():
    whole = synthetic_run(flows=["tcp:cubic"], duration_s=14)
    dead = whole.assign(
        packet_departure_s=whole["packet_departure_s"].where(whole.packet_time_s < 2)
    )
    flow = Flow("qbkit:fq-detect", options={"only_detect": True})
    assert not end_warnings(dead, Experiment(flows=(flow,), duration_s=14))


@pytest.mark.guest
def test_the_charts_of_a_transfer_end_with_it():
    found = run(Flow("tcp:cubic", bytes=1_000_000), duration_s=5)
    from qbkit.metrics.flows.over_time import time_span_s

    assert time_span_s(found.qb.events(0))[1] == pytest.approx(float(found.stop_s[0]), abs=0.3)


@pytest.mark.guest
def test_columns_are_there_only_where_something_happened():
    quiet = run(Flow("tcp:bbr"), duration_s=2).qb.summary()
    for name in ("complete_s", "ce_marked_packets", "ended_s"):
        assert name not in quiet
    assert quiet.spurious_losses[0] == 0  # known, and so no NaN among other seeds'
    assert "spurious_losses" not in without_zeros(quiet)
    assert 1400 < quiet.mean_frame_bytes[0] <= 1514
    ecn = {"min": 30000, "max": 90000, "probability": 1, "ecn": True}
    link = Bottleneck(rate_mbps=20, rtt_ms=10, buffer_packets=200, qdisc="red", qdisc_options=ecn)
    marked = Experiment(bottleneck=link, flows=("tcp:dctcp",), duration_s=3).run()
    (row,) = marked.qb.summary().to_dict("records")
    assert row["ce_marked_packets"] == int(marked.packet_is_marked.sum()) > 50
    lost = run(Flow("tcp:reno"), duration_s=4)
    (row,) = lost.qb.summary().to_dict("records")
    # All losses of the first overflow lie before the first recovery.
    first_s = float(lost.sample_time_s.values[lost.sample_state.values == 2][0])
    gone = np.isnan(lost.packet_departure_s.values) & (lost.packet_time_s.values < first_s)
    assert row["slow_start_lost_packets"] == gone.sum() > 10
    compared = qb.compare(lost, marked).frame()
    assert {"ce_marked_packets", "slow_start_lost_packets"} <= set(compared.number)
