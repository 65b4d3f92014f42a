"""What happens on the path beside the bottleneck, against laws: order, copies, marks, policing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conservation import IN_GUEST, assert_conserved, conserved_run
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import qbkit as qb
from qbkit.errors import RunFailed
from qbkit.spec import QDISC_OPTIONS
from qbkit.traces.run.frames import Ecn
from qbkit.traces.run.journey import Fate

pytestmark = pytest.mark.guest


def test_the_share_and_the_distance_of_reordering():
    run = conserved_run("tcp:cubic", reorder_percent=2, reorder_ms=7, rate_mbps=50, duration_s=6)
    late_ms = (run.packet_departure_s - run.packet_left_s).values * 1e3
    arrived = np.isfinite(late_ms)
    late = late_ms[arrived] > 1e-3
    count, share = arrived.sum(), late.mean()
    assert abs(share - 0.02) < 4 * np.sqrt(0.02 * 0.98 / count)
    assert late_ms[arrived][late] == pytest.approx(7, abs=0.003)
    assert late_ms[arrived][~late] == pytest.approx(0, abs=0.003)
    assert "behind the path" in run.packet_departure_s.attrs["long_name"]
    # The queue itself keeps the order, and its delay leaves out what the path adds.
    left_s = run.packet_left_s.values[arrived]
    assert (np.diff(left_s) >= 0).all()
    assert float(run.qb.summary()["queue_delay_mean_ms"].iloc[0]) == pytest.approx(
        ((left_s - run.packet_time_s.values[arrived]) * 1e3).mean()
    )


@pytest.mark.parametrize("ip_version", [4, 6])
def test_only_packets_of_a_size_are_late(ip_version: int):
    spec = qb.Experiment(
        bottleneck={
            **{"rate_mbps": 30, "rtt_ms": 20, "reorder_percent": 5, "reorder_min_bytes": 1441},
            **{"loss_percent": 0.2, "loss_direction": "both", "corrupt_percent": 0.1},
        },
        flows=["tcp:reno", "ngtcp2:cubic", "msquic:cubic?start_s=1"],
        duration_s=8,
        ip_version=ip_version,
    )
    run = spec.run()
    assert_conserved(run)
    late_ms = (run.packet_departure_s - run.packet_left_s).values * 1e3
    arrived, large = np.isfinite(late_ms), run.packet_size_bytes.values - 14 >= 1441
    late = late_ms > 1e-3
    assert not late[arrived & ~large].any() and (arrived & ~large).sum() > 200
    count, share = (arrived & large).sum(), late[arrived & large].mean()
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / count)


def test_a_packet_back_that_is_too_big_is_not_lost_at_random():
    # picoquic's receiver, too, looks for a larger MTU.
    link = {"rate_mbps": 20, "rtt_ms": 40, "mtu_bytes": 1450, "mtu_icmp": False}
    bursts = {"loss_model": "bursts gap_s=0.4 length_s=0.03", "loss_direction": "both"}
    run = conserved_run("picoquic:prague", duration_s=2.2, seed=882, **link, **bursts)
    lost, big = run.ack_fate == Fate.RANDOM_LOSS, run.ack_size_bytes > 1450 + 14
    assert int(run.ack_too_big_packets.sum()) == int(big.sum()) > 0
    assert not (lost & big).any() and (run.ack_fate[big] == Fate.QUEUE_DROP).all()


def test_losses_before_and_beside_reordering_by_size_count_once():
    link = {"rate_mbps": 10, "rtt_ms": 40, "reorder_percent": 1, "reorder_min_bytes": 1000}
    run = conserved_run("tcp:bbr", "quic-go:cubic", loss_percent=1, **link)
    assert int(run.netem_lost_packets.sum()) > 10


def test_reordering_makes_a_stack_without_tolerance_lose_spuriously():
    link = {"rate_mbps": 20, "rtt_ms": 20, "reorder_percent": 2, "reorder_ms": 10}
    run = conserved_run("tcp:cubic", "picoquic:cubic", duration_s=6, **link)
    tcp, picoquic = run.qb.summary()["spurious_losses"]
    assert picoquic > 10 * tcp


def test_duplicates_arrive_and_are_counted():
    run = conserved_run("tcp:cubic", duplicate_percent=2, rate_mbps=50)
    extra, sent = int(run.balance_extra_packets.sum()), int(run.balance_in_packets.sum())
    assert abs(extra / sent - 0.02) < 4 * np.sqrt(0.02 / sent)
    assert float(run.qb.summary()["loss_percent"].iloc[0]) < 3


def test_a_corrupt_packet_is_a_loss_to_its_receiver():
    clean = conserved_run("tcp:cubic", rate_mbps=20, rtt_ms=20)
    corrupt = conserved_run("tcp:cubic", rate_mbps=20, rtt_ms=20, corrupt_percent=1)
    mbps = [float(run.qb.summary()["throughput_mbps"].iloc[0]) for run in (clean, corrupt)]
    assert mbps[1] < 0.7 * mbps[0]


@pytest.mark.parametrize("what", ["hold_data_ms", "hold_acks_ms"])
def test_held_packets_are_released_together(what: str):
    run = conserved_run("tcp:cubic", rate_mbps=20, rtt_ms=20, duration_s=3, **{what: 5})
    name = "packet_departure_s" if what == "hold_data_ms" else "ack_departure_s"
    at_s = np.sort(run[name].values)
    at_s = at_s[np.isfinite(at_s) & (at_s > 1) & (at_s < 2.5)]
    gaps_ms = np.diff(at_s) * 1e3
    apart = gaps_ms > 0.01
    # They wait for 5 ms from the first one on, which comes up to a frame or an ACK later.
    assert gaps_ms[apart].min() > 4.999
    assert gaps_ms[apart].max() < 6.5
    assert apart.mean() < 0.3


def test_the_way_back_has_a_rate_of_its_own():
    run = conserved_run("tcp:cubic", rate_mbps=50, rtt_ms=20, return_rate_mbps=0.4, duration_s=6)
    back = run.sel(time=slice(2, 5.9))
    size = float(run.ack_size_bytes.mean()) * 8
    left_s = run.ack_departure_s.values
    busy = (left_s > 2) & (left_s < 5.9)
    assert busy.sum() * size / 3.9e6 == pytest.approx(0.4, rel=0.02)
    assert float(back.throughput_mbps.mean()) < 35
    assert list(run.bottleneck_direction.values) == ["forward", "reverse"]


def test_dualpi2_can_be_on_the_way_back():
    link = {"rate_mbps": 20, "rtt_ms": 20, "return_rate_mbps": 0.2, "return_qdisc": "dualpi2"}
    alone = conserved_run("tcp:cubic", **link)
    assert json.loads(alone.attrs["qdisc_counters"])[1]["kind"] == "dualpi2"
    both = conserved_run("tcp:cubic", **link, qdisc="dualpi2", buffer_packets=100)
    assert [one["kind"] for one in json.loads(both.attrs["qdisc_counters"])] == ["dualpi2"] * 2


def test_cake_thins_acks_out():
    link = {"rate_mbps": 50, "rtt_ms": 20, "return_rate_mbps": 0.4, "return_qdisc": "cake"}
    plain = conserved_run("tcp:cubic", **link)
    thinned = conserved_run("tcp:cubic", return_qdisc_options={"ack-filter": True}, **link)
    mbps = [float(run.qb.summary()["throughput_mbps"].iloc[0]) for run in (plain, thinned)]
    assert mbps[1] > mbps[0]


def test_a_policer_passes_its_rate_and_burst():
    link = {"rate_mbps": 200, "rtt_ms": 20, "policer_mbps": 10, "policer_burst_bytes": 50_000}
    run = conserved_run(*["tcp:bbr"] * 3, duration_s=6, **link)
    out = run.packet_fate.values == Fate.ARRIVED
    size = run.packet_size_bytes.values[out].astype(float)
    at_s = run.packet_time_s.values[out]
    for from_s, to_s in ((0, 6), (1, 6), (3, 5)):
        inside = (at_s >= from_s) & (at_s < to_s)
        assert size[inside].sum() <= 10e6 / 8 * (to_s - from_s) + 50_000 + 1514
    passed = size[(at_s > 2) & (at_s < 6)].sum() * 8 / 4e6
    assert passed == pytest.approx(10, rel=0.01)
    assert int(run.qdisc_dropped_packets.sum()) == 0 < int(run.policer_dropped_packets.sum())


COUNTED = {
    "codel": {"drop_overlimit"},
    "fq_codel": {"drop_overlimit"},
    "pie": {"overlimit"},
    "fq_pie": {"overlimit"},
    "red": {"early", "pdrop"},
    "dualpi2": {"step_marks", "packets_in_c", "packets_in_l"},
}
"""What queues count of their own."""
MARKING = {
    **{name: {"ecn": True} for name in ("codel", "pie", "red", "fq_pie")},
    **{name: {} for name in ("fq_codel", "cake", "dualpi2")},
}


@pytest.mark.parametrize("qdisc", MARKING)
def test_marks_are_those_that_the_queue_counts(qdisc: str):
    # They stop before the end, after which the queue counts on.
    run = conserved_run(
        *("tcp:cubic?ecn=true&stop_s=3.5", "tcp:reno?ecn=accurate&stop_s=3.5"),
        **{"rate_mbps": 10, "rtt_ms": 20, "buffer_bdp": 8},
        qdisc=qdisc,
        qdisc_options=MARKING[qdisc],
    )
    assert set(np.unique(run.packet_ecn)) <= {Ecn.NOT_ECT, Ecn.ECT_0}
    marked = int(run.packet_is_marked.sum())
    assert marked > 0
    # RED counts a packet as marked that then finds the queue full.
    full = int(run.qdisc_dropped_packets.sum()) if qdisc == "red" else 0
    assert marked <= int(run.qdisc_marked_packets.sum()) <= marked + full
    (own,) = json.loads(run.attrs["qdisc_counters"])
    if qdisc != "cake":  # which counts in its tins
        assert own["marked" if qdisc == "red" else "ecn_mark"] == int(
            run.qdisc_marked_packets.sum()
        )
    assert own["kind"] == qdisc and COUNTED.get(qdisc, {"tins"}) <= own.keys()
    assert run.qb.summary()["ce_marked_packets"].sum() == marked


@pytest.mark.parametrize("step", ["1ms", "1s"])
def test_dualpi2_counts_twice_what_its_coupling_and_its_step_mark(step: str):
    run = conserved_run(
        *("picoquic:prague?stop_s=3.5", "tcp:cubic?stop_s=3.5"),
        **{"rate_mbps": 28, "rtt_ms": 42, "buffer_bdp": 3, "seed": 5},
        qdisc="dualpi2",
        qdisc_options={"step_thresh": step},
    )
    marked = run.packet_is_marked.values.astype(bool)
    waited_s = (run.packet_departure_s - run.packet_time_s).values
    twice = int(run.qdisc_marked_packets.sum()) - int(marked.sum())
    if step == "1s":  # no packet waits so long
        assert twice == 0 < marked.sum()
    else:
        assert 0 < twice <= int((marked & (waited_s > 1e-3)).sum())


def test_red_without_a_ramp_marks_from_a_step_on():
    step = {"min": 40_000, "max": 40_001, "probability": 1, "burst": 41, "ecn": True}
    run = conserved_run(
        *("tcp:dctcp?stop_s=2.5", "tcp:dctcp?stop_s=2.5"),
        **{"rate_mbps": 60, "rtt_ms": 4, "buffer_bytes": 600_000, "duration_s": 3},
        qdisc="red",
        qdisc_options=step,
    )
    marked = run.packet_is_marked.values.astype(bool)
    assert int(run.qdisc_marked_packets.sum()) == int(marked.sum()) > 100
    assert int(run.dropped_packets.sum()) == 0
    late = run.packet_time_s.values > 0.5
    queued_bytes = (run.packet_departure_s - run.packet_time_s).values * 60e6 / 8
    assert np.median(queued_bytes[late]) == pytest.approx(40_000, rel=0.1)


def test_the_l4s_queue_is_short_and_marks_at_its_step():
    link = {"rate_mbps": 40, "rtt_ms": 20, "buffer_bdp": 8, "qdisc": "dualpi2"}
    run = conserved_run(
        "tcp:cubic", "tcp:dctcp?ecn=accurate", duration_s=8, **link, qdisc_options={"any_ect": True}
    )
    late = run.packet_time_s > 2
    delay_ms = ((run.packet_departure_s - run.packet_time_s) * 1e3).where(late)
    classic, scalable = (delay_ms.where(run.packet_flow == i).median() for i in (0, 1))
    assert float(scalable) < 2 < float(classic) < 30
    assert int(run.packet_is_marked.sum()) > 100


@pytest.mark.parametrize("rtt_ms", [10, 20])
def test_dualpi2_does_what_rfc_9332_expects(rtt_ms: float):
    """Its sections 1, 2.1 and A; CUBIC is in its Reno mode (benchmarks/dualpi2.py has more)."""
    link = {"rate_mbps": 40, "rtt_ms": rtt_ms, "buffer_bdp": 16, "qdisc": "dualpi2"}
    run = conserved_run(
        *("tcp:dctcp?ecn=accurate", "tcp:cubic"),
        **{"duration_s": 25, **link, "qdisc_options": {"any_ect": True}},
    )
    late = run.isel(packet=run.packet_time_s.values > 8)
    delay_ms = (late.packet_departure_s - late.packet_time_s) * 1e3
    scalable, classic = (late.packet_flow == i for i in (0, 1))
    short_ms, long_ms = (float(delay_ms.where(flow).mean()) for flow in (scalable, classic))
    assert short_ms < 1 and float(delay_ms.where(scalable).quantile(0.99)) < 2
    assert long_ms == pytest.approx(15, rel=0.3)  # the target of PI2
    marked = float(late.packet_is_marked.values[scalable.values].mean())
    dropped = float((late.packet_fate.values[classic.values] == Fate.QUEUE_DROP).mean())
    assert marked == pytest.approx(2 * dropped**0.5, rel=0.5)  # k = 2
    mbps = run.throughput_mbps.sel(time=slice(8, None)).mean("time").values
    windows = mbps[0] * (rtt_ms + short_ms) / (mbps[1] * (rtt_ms + long_ms))
    assert 0.5 < windows < 1.25


@pytest.mark.parametrize("step", ["1ms", "5ms"])
def test_options_of_dualpi2_count(step: str):
    link = {"rate_mbps": 20, "rtt_ms": 20, "qdisc": "dualpi2"}
    run = conserved_run("picoquic:prague", **link, qdisc_options={"step_thresh": step})
    delay_ms = (run.packet_departure_s - run.packet_time_s) * 1e3
    limit_ms = float(step.removesuffix("ms"))
    assert limit_ms / 4 < float(delay_ms.where(run.packet_time_s > 1).quantile(0.9)) < 2 * limit_ms


def test_a_path_clears_ecn():
    link = {"rate_mbps": 10, "rtt_ms": 20, "qdisc": "fq_codel", "buffer_bdp": 8}
    run = conserved_run("tcp:cubic?ecn=true", bleach_ecn=True, **link)
    assert (run.packet_ecn == Ecn.ECT_0).any()  # before the queue
    assert "qdisc_marked_packets" not in run
    assert float(run.qb.summary()["loss_percent"].iloc[0]) > 0


def test_an_mtu_is_reported_or_packets_are_lost_in_silence():
    link = {"rate_mbps": 20, "rtt_ms": 20, "mtu_bytes": 1400}
    reported = conserved_run("tcp:cubic", "quic-go:cubic", **link)
    assert 0 < int(reported.too_big_packets.sum()) < 100
    assert int(reported.packet_size_bytes.where(reported.packet_fate == 0).max()) == 1414
    assert (reported.qb.summary()["throughput_mbps"] > 1).all()
    silent = conserved_run("tcp:cubic", **link, mtu_icmp=False)
    assert float(silent.qb.summary()["throughput_mbps"].iloc[0]) < 0.1
    assert float(conserved_run("quic-go:cubic", **link, mtu_icmp=False).throughput_mbps.mean()) > 10


def test_jitter_that_reorders():
    kept, reordered = (
        qb.Experiment(
            bottleneck={"rate_mbps": 50, "rtt_ms": 40},
            flows=["tcp:cubic"],
            duration_s=4,
            jitter_ms=3,
            jitter_reorders=reorders,
            jitter_shape="normal" if reorders else "uniform",
        ).run()
        for reorders in (False, True)
    )
    for run in (kept, reordered):
        assert_conserved(run)
    mbps = [float(run.qb.summary()["throughput_mbps"].iloc[0]) for run in (kept, reordered)]
    assert mbps[1] != mbps[0]


ANYTHING = st.fixed_dictionaries(
    {
        "rate_mbps": st.sampled_from([2, 10, 30]),
        "rtt_ms": st.sampled_from([10, 60]),
        "buffer_bdp": st.sampled_from([2, 8]),
        "qdisc": st.sampled_from(sorted(QDISC_OPTIONS)),
    },
    optional={
        "capacity": st.sampled_from(["0:10 0.5:2 1:20", "0:20 0.3:0 0.4:20 0.8:5 repeat"]),
        "delay": st.sampled_from(["0:10 0.7:60", "0:60 0.5:10 1:40 repeat"]),
        "outages": st.sampled_from(["0.4:0.2", "0.3:0.1 0.9:0.3 drop"]),
        "loss_percent": st.sampled_from([0.5, 5]),
        "loss_model": st.just("bursts gap_s=0.3 length_s=0.03"),
        "loss_direction": st.sampled_from(["to_receivers", "to_senders", "both"]),
        "reorder_percent": st.sampled_from([0.5, 20]),
        "duplicate_percent": st.sampled_from([0.5, 20]),
        "corrupt_percent": st.sampled_from([0.5, 3]),
        "hold_data_ms": st.sampled_from([1, 10]),
        "hold_acks_ms": st.sampled_from([1, 10]),
        "return_rate_mbps": st.sampled_from([0.5, 2]),
        "return_qdisc": st.just("fifo"),
        "policer_mbps": st.sampled_from([1, 8]),
        "bleach_ecn": st.booleans(),
        "mtu_bytes": st.just(1300),
    },
)
FLOWS = st.lists(
    st.builds(
        qb.Flow,
        st.sampled_from(["tcp:cubic", "tcp:bbr?ecn=true", "quinn:cubic", "tcp:reno"]),
        start_s=st.sampled_from([0, 0.3]),
        bytes=st.sampled_from([None, 20_000]),
        extra_rtt_ms=st.sampled_from([0, 25]),
        direction=st.sampled_from(["forward", "forward", "reverse"]),
    ),
    min_size=1,
    max_size=3,
)


@settings(IN_GUEST, max_examples=12)
@given(link=ANYTHING, flows=FLOWS, seed=st.integers(1, 1000))
def test_packets_are_conserved_whatever_happens_on_the_path(link, flows, seed):
    if "loss_model" in link:
        link = {name: value for name, value in link.items() if name != "loss_percent"}
    link = {"loss_percent": 0, **link}  # which a direction needs
    in_a_row = len(flows) == 3 and "mtu_bytes" not in link
    topology = "parking_lot" if in_a_row else "dumbbell"
    spec = qb.Experiment(bottleneck=link, flows=flows, duration_s=1.5, seed=seed, topology=topology)
    try:
        run = spec.run()
    except RunFailed as error:  # some draws let no handshake through in time
        assert "cannot connect" in str(error)
        assume(False)
    assert_conserved(run)


def test_random_loss_may_take_the_messages_of_a_router():
    link = {"rtt_ms": 40, "mtu_bytes": 1300, "loss_model": "bursts gap_s=0.2 length_s=0.05"}
    flows = ["quinn:cubic", "quinn:cubic"]
    said = []
    for icmp in (True, False):  # receivers probe for the MTU, too
        run = conserved_run(*flows, duration_s=1.5, seed=14, mtu_icmp=icmp, **link)
        lost = run.balance_random_loss_packets.sum("bottleneck")
        said.append(int((run.netem_lost_packets - lost).sum()))
    assert said[0] > 0 and said[1] == 0
