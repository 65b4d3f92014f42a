"""Links that change, against what an ideal link would do: rates, opportunities, outages, delays."""

from __future__ import annotations

import numpy as np
import pytest
from conservation import IN_GUEST, assert_conserved, conserved_run
from hypothesis import given, settings
from hypothesis import strategies as st
from ideal_link import by_opportunities_s, capacity_bits, departures, served_s

import qbkit as qb
from qbkit.errors import EngineError
from qbkit.metrics.parameters import infer, observe

pytestmark = pytest.mark.guest
FRAME_BITS = 1514 * 8


def errors_us(run, times_s: list, mbps: list) -> np.ndarray:
    at_s, left_s, sizes = departures(run)
    return np.abs(left_s - served_s(at_s, sizes, times_s, mbps)) * 1e6


STEPS = st.lists(
    st.tuples(st.integers(1, 400), st.floats(0, 40).map(lambda r: round(r, 2))),
    min_size=1,
    max_size=8,
)


@settings(IN_GUEST, max_examples=4)
@given(first=st.floats(2, 40), steps=STEPS, seed=st.integers(1, 99))
def test_every_frame_leaves_when_an_ideal_link_would_send_it(first, steps, seed):
    times_s, mbps = [0.0], [first]
    for gap, rate in steps:
        times_s.append(times_s[-1] + gap * 0.005)
        mbps.append(rate)
    times_s.append(times_s[-1] + 0.1)
    mbps.append(20.0)
    run = conserved_run(
        *("tcp:cubic", "picoquic:cubic"),
        capacity=list(zip(times_s, mbps, strict=True)),
        rtt_ms=10,
        seed=seed,
        duration_s=max(3.0, times_s[-1] + 0.5),
    )
    assert errors_us(run, times_s, mbps).max() < 12
    assert np.percentile(errors_us(run, times_s, mbps), 99) < 3
    _, left_s, sizes = departures(run)
    delivered = np.cumsum(sizes) * 8
    assert (delivered <= capacity_bits(times_s, mbps, left_s) + FRAME_BITS + 100).all()


def test_a_link_that_is_never_idle_carries_its_whole_capacity():
    times_s, mbps = [0.0, 1.0, 1.5, 2.5], [20, 4, 40, 10]
    steps = list(zip(times_s, mbps, strict=True))
    run = conserved_run("tcp:cubic", capacity=steps, rate_mbps=40, rtt_ms=20, buffer_bdp=8)
    _, left_s, sizes = departures(run)
    busy = (left_s > 1) & (left_s < 4)
    carried = np.cumsum(sizes[busy])[:-1] * 8
    since = capacity_bits(times_s, mbps, left_s[busy])
    assert np.abs(carried - (since[1:] - since[0])).max() <= FRAME_BITS
    mean_mbps = capacity_bits(times_s, mbps, np.array([4.0]))[0] / 4e6
    assert float(run.capacity_mbps.mean()) == pytest.approx(mean_mbps)


def test_steps_of_a_millisecond_are_as_exact():
    draw = np.random.default_rng(1)
    times_s, mbps = np.arange(0, 3, 0.001), draw.uniform(5, 35, 3000).round(2)
    steps = list(zip(times_s.tolist(), mbps.tolist(), strict=True))
    run = conserved_run("tcp:bbr", capacity=steps, rtt_ms=20, duration_s=3)
    assert np.percentile(errors_us(run, times_s, mbps), 99) < 3


def test_a_constant_schedule_is_the_shaper_of_a_constant_link():
    options = {"rate_mbps": 20, "rtt_ms": 20, "buffer_bdp": 0.5}
    run = conserved_run("tcp:cubic", capacity=[(0, 20)], **options)
    constant = conserved_run("tcp:cubic", **options)
    # Another kernel draws other random numbers: each run is compared with the ideal link.
    assert errors_us(run, [0], [20]).max() < 7
    assert errors_us(constant, [0], [20]).max() < 7
    assert run.attrs["kernel_build"] != constant.attrs["kernel_build"]


def test_opportunities_are_used_as_in_mahimahi():
    draw = np.random.default_rng(2)
    gaps_ms = draw.choice([0, 0, 1, 1, 1, 2, 7, 40], 400)
    once_ms = np.cumsum([1, *gaps_ms])
    capacity = {"opportunities_ms": once_ms.tolist()}
    run = conserved_run("tcp:cubic", "quic-go:cubic", capacity=capacity, rtt_ms=30, duration_s=5)
    times_s = np.concatenate([n * once_ms[-1] + once_ms for n in range(9)]) / 1e3
    at_s, left_s, sizes = departures(run)
    difference_us = np.abs(left_s - by_opportunities_s(at_s, sizes, times_s)) * 1e6
    assert difference_us.max() < 10


@pytest.mark.parametrize("drops", [False, True])
def test_nothing_passes_in_an_outage(drops: bool):
    outages = {"times": [(1.0, 0.4), (2.5, 0.25)], "drops": drops}
    run = conserved_run("tcp:cubic", "quinn:cubic", outages=outages, rtt_ms=20)
    at_s, left_s, _ = departures(run)
    for start_s, length_s in outages["times"]:
        end_s = start_s + length_s
        assert not ((left_s > start_s + 1e-5) & (left_s < end_s)).any()
        waited = (at_s < start_s) & (left_s >= end_s)
        assert waited.any() != drops
        during = (run.packet_time_s > start_s) & (run.packet_time_s < end_s)
        assert during.any()
        assert bool(np.isnan(run.packet_departure_s.values[during]).all()) == drops


def test_a_schedule_that_is_cut_ends_the_link():
    run = conserved_run(
        "tcp:cubic", capacity={"steps": [(0, 20), (1, 10)], "at_end": "cut"}, rtt_ms=20
    )
    _, left_s, _ = departures(run)
    assert left_s.max() == pytest.approx(2.0, abs=0.01)
    assert "delivered nothing" in run.attrs["warnings"]


def test_a_schedule_repeats():
    steps = {"steps": [(0, 20), (0.5, 5)], "at_end": "repeat"}
    run = conserved_run("tcp:cubic", capacity=steps, rtt_ms=10)
    times_s, mbps = np.arange(0, 8, 0.5), [20, 5] * 8
    assert errors_us(run, times_s, mbps).max() < 7


def test_a_link_that_changes_is_not_taken_for_a_sender_that_probes():
    steps = {"steps": [(0, 20), (0.5, 5), (1, 12)], "at_end": "repeat"}
    found = infer(conserved_run("tcp:cubic", capacity=steps, rtt_ms=10))
    assert found["growth"].word != "probing" and found["initial_window_packets"].value == 10
    assert not found["probe_up_gain"].known and not found["limited_percent"].known


def test_the_delay_changes_when_it_should():
    run = conserved_run(
        "tcp:cubic", delay=[(0, 40), (1.5, 100), (3, 20)], rtt_ms=40, duration_s=4.5
    )
    left_s, ack_s = run.packet_departure_s.values, np.sort(run.ack_time_s.values)
    for begin_s, end_s, rtt_ms in ((0.3, 1.5, 40), (1.7, 3, 100), (3.3, 4.4, 20)):
        there = left_s[(left_s > begin_s) & (left_s < end_s - 0.1)]
        back_ms = (ack_s[np.searchsorted(ack_s, there + rtt_ms / 2e3 - 1e-5)] - there) * 1e3
        assert back_ms.min() == pytest.approx(rtt_ms / 2, abs=0.01)
    for change_s, before_ms, after_ms in ((1.5, 20, 50), (3, 50, 10)):
        # The first ACK of the new delay leaves its receiver at the change; none overtakes another.
        sent = left_s[(left_s > change_s) & (left_s < change_s + 0.02)]
        arrives = ack_s[np.searchsorted(ack_s, max(sent[0] + after_ms / 1e3, change_s) - 1e-5)]
        assert arrives >= change_s + min(before_ms, after_ms) / 1e3 - 1e-5


def test_the_passive_rtt_follows_the_delay():
    run = conserved_run(
        "tcp:cubic", delay=[(0, 40), (3, 120)], rtt_ms=40, buffer_bdp=0.5, duration_s=9
    )
    mine = float(run.qb.summary()["rtt_mean_ms"].iloc[0])
    srtt_ms = run.srtt_ms.values[0]
    weight = np.nan_to_num(run.throughput_mbps.values[0]) * np.isfinite(srtt_ms)
    kernels = float((np.nan_to_num(srtt_ms) * weight).sum() / weight.sum())
    assert mine == pytest.approx(kernels, rel=0.04, abs=1)
    assert qb.metrics.loss_response(run, 0, skip_start_s=0).rtt_ms == pytest.approx(mine, abs=0.1)
    events = qb.flow_events(run, 0)
    back_s = np.sort(events.acked_time_s.values)
    sent_s = events.sent_time_s.values[np.sort(events.acked_number.values)]
    assert (back_s - np.sort(sent_s)).mean() * 1e3 == pytest.approx(mine, abs=0.1)
    published = run.drop_dims("packet").qb.summary()  # without its packets, as these are
    assert published["rtt_mean_ms"].item() == pytest.approx(mine, rel=0.02)
    seen = observe(run)
    waits_s = (seen.acked_or_lost_s - seen.sent_s)[~seen.lost]
    assert waits_s.mean() * 1e3 == pytest.approx(mine, rel=0.05)


def test_what_an_outage_holds_beyond_the_end_is_in_no_mean():
    """It leaves the queue 1.5 s after the run."""
    run = conserved_run("tcp:cubic", outages="2.5:3", rtt_ms=40, duration_s=4)
    left_s = run.packet_departure_s.values
    arrived, in_time = np.isfinite(left_s), left_s < 4
    waited_ms = (left_s - run.packet_time_s.values) * 1e3
    assert waited_ms[arrived].max() > 2000 > 100 > waited_ms[in_time].max()
    row = run.qb.summary().iloc[0]
    assert row.queue_delay_mean_ms == pytest.approx(waited_ms[in_time].mean())
    assert row.rtt_mean_ms == pytest.approx(40 + row.queue_delay_mean_ms, abs=0.01)
    response = qb.metrics.loss_response(run, 0, skip_start_s=0)
    assert response.rtt_ms == pytest.approx(row.rtt_mean_ms, abs=0.1)
    events = run.qb.events()
    assert events.sizes["acked"] == in_time.sum()
    assert events.acked_time_s.max() < 4 and events.sizes["lost"] == np.isnan(left_s).sum()
    assert run.qb.warnings == ["tcp:cubic delivered nothing from 2.5 s to its end at 4 s"]


def test_a_preset_runs_the_same_twice():
    link = qb.Bottleneck(preset="leo seed=3 mean_mbps=30")
    spec = qb.Experiment(bottleneck=link, flows=["tcp:bbr", "quinn:cubic"], duration_s=17)
    one, two = spec.run(), spec.run(rerun=True)
    assert one.equals(two)
    assert_conserved(one)


@pytest.mark.parametrize("link", [{"outages": "1:1"}, {"capacity": "0:5 1:10"}])
def test_a_link_that_changes_makes_no_bursts(link):
    spec = qb.Experiment(bottleneck={**link, "burst_packets": 8}, flows=["tcp:cubic"], duration_s=3)
    assert qb.Experiment.from_json(spec.to_json()) == spec  # what was stored opens
    with pytest.raises(qb.SpecError, match="burst_packets does nothing on a link with"):
        spec.run()


def test_the_hosts_own_kernel_has_no_links_that_change():
    spec = qb.Experiment(bottleneck={"outages": "1:1"}, flows=["tcp:cubic"], duration_s=3)
    with pytest.raises(EngineError, match="engine host"):
        spec.run(engine="host")
