"""Flows in the reverse direction, as physics: their link, and what they cost the forward ACKs."""

from __future__ import annotations

import numpy as np
import pytest
from conservation import assert_conserved, busy_rate_mbps

from qbkit import metrics
from qbkit.spec import Bottleneck, Experiment, Flow

pytestmark = pytest.mark.guest
LINK = Bottleneck(rate_mbps=10, rtt_ms=20, buffer_bdp=3)
BACK = Flow("tcp", "cubic", direction="reverse")


def run(flows, folder, **words):
    words = {"bottleneck": LINK, "duration_s": 6, "jitter_ms": 0.0, **words}
    found = Experiment(flows=flows, **words).run(engine="virtual", out=folder / "run.nc")
    assert_conserved(found)
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Reno forward, CUBIC in reverse."""
    return run(["tcp:reno", BACK], tmp_path_factory.mktemp("both"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same Reno without reverse traffic."""
    return run(["tcp:reno"], tmp_path_factory.mktemp("alone"))


def test_a_reverse_flow_fills_the_reverse_link(tmp_path):
    forth, back = (
        metrics.summary(run([flow], tmp_path / name, duration_s=4)).iloc[0]
        for name, flow in (("forth", "tcp:cubic"), ("back", BACK))
    )
    assert back.throughput_mbps == pytest.approx(forth.throughput_mbps, rel=0.01)
    assert back.throughput_mbps > 9
    assert back.label == "tcp:cubic (reverse)"


@pytest.mark.parametrize(("data", "acks"), [(0, 1), (1, 0)])
def test_data_and_acks_share_the_rate_of_a_link(both, data, acks):
    columns = []
    for kind, flow in (("packet", data), ("ack", acks)):
        mine = both[f"{kind}_flow"].values == flow
        names = [f"{kind}_{word}" for word in ("time_s", "departure_s", "size_bytes")]
        columns.append([both[name].values[mine].astype(float) for name in names])
    arrival, departure, size = np.concatenate(columns, axis=1)
    order = np.argsort(departure)[: np.isfinite(departure).sum()]
    rate_mbps = busy_rate_mbps(arrival[order], departure[order], size[order])
    assert rate_mbps == pytest.approx(10, rel=2e-3)


def test_acks_wait_behind_reverse_data(both, alone):
    row, before = (metrics.summary(ds).iloc[0] for ds in (both, alone))
    delay_ms = row.rtt_mean_ms - 20 - row.queue_delay_mean_ms
    assert delay_ms > 10
    assert before.rtt_mean_ms == pytest.approx(20 + before.queue_delay_mean_ms)
    # The kernel sees the same RTT as the captures, less the delay of its ACKs in the host.
    for i in range(2):
        mine = both.sample_flow.values == i
        measured_ms = float(np.nanmean(both.sample_srtt_ms.values[mine]))
        assert metrics.summary(both).rtt_mean_ms[i] == pytest.approx(measured_ms, rel=0.1)


def test_acks_do_not_wait_without_reverse_traffic(alone):
    assert not {"ack_departure_s", "ack_fate", "direction"} & set(alone.variables)
    assert alone.sizes["bottleneck"] == 1


def test_two_runs_with_reverse_traffic_are_identical(both, tmp_path):
    again = run(["tcp:reno", BACK], tmp_path)
    assert again.identical(both.assign_attrs(again.attrs))


def test_reverse_flows_of_a_parking_lot_pass_their_links_backwards(tmp_path):
    # Flow 0 crosses both links from right to left, flow 1 the first and flow 2 the second.
    flows = [BACK, Flow("tcp", "reno", direction="reverse"), "tcp:reno"]
    ds = run(flows, tmp_path, topology="parking_lot", duration_s=3)
    assert ds.bottleneck_direction.values.tolist() == ["forward"] * 2 + ["reverse"] * 2
    entered = ds.balance_in_packets.values > 0
    assert entered.tolist() == [
        [True, True, True, True],  # data leftwards, ACKs rightwards
        [True, False, False, True],
        [False, True, True, False],
    ]


def test_a_quic_stack_sends_in_reverse(tmp_path):
    flows = ["tcp:reno", Flow("qbkit", "cubic", direction="reverse")]
    ds = run(flows, tmp_path, duration_s=2)
    assert (metrics.summary(ds).goodput_mbps > 2).all()
