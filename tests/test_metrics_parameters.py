"""What is inferred from packets, against senders whose parameters are known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from simulated import BDP_PACKETS, put_packets, simulate
from synthetic import synthetic_run

import qbkit as qb
from qbkit.cli import group
from qbkit.errors import MetricError, SpecError
from qbkit.metrics.parameters import (
    PARAMETERS,
    Estimate,
    Parameters,
    compare,
    infer,
    observe,
    observe_events,
    observed,
)
from qbkit.metrics.parameters.connection import GRID_PARTS, Connection, Load, SharedLink
from qbkit.metrics.parameters.effects import DERIVED, EFFECTS, SYMPTOMS
from qbkit.metrics.parameters.inference import median_of, with_flows
from qbkit.metrics.parameters.laws import BBRS, law
from qbkit.metrics.parameters.limits import limited
from qbkit.metrics.parameters.phases import phases_of
from qbkit.metrics.parameters.reductions import reduction_at
from qbkit.metrics.parameters.start import start_of
from qbkit.studies.lone import differences_of_runs
from qbkit.traces.logs.events import EventTables

UNKNOWN_N = Estimate("emulated_flows", math.nan)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.floats(0.4, 0.85), st.floats(0.5, 2.5), st.sampled_from([4, 10, 32]))
@example(0.4375, 2.0390625, 4)
def test_increase_and_decrease_of_any_aimd(beta, alpha, initial_window):
    found = infer(simulate(alpha=alpha, beta=beta, initial_window=initial_window))
    assert found["initial_window_packets"].value == initial_window
    # A window of 2 BDP is reduced, and read a little later, when it has grown by up to alpha.
    grown = alpha / (2 * BDP_PACKETS)
    assert found["decrease_factor"].value == pytest.approx(beta, abs=0.01 + grown)
    assert found["slow_start_exit"].word == "loss"
    assert found["pacing"].word == "bursts"
    if found["growth"].known:  # a saw tooth of a few round trips has no slope
        assert found["growth"].word == "linear"
        assert found["increase_packets_per_rtt"].value == pytest.approx(alpha, rel=0.1)
    elif beta < 0.7:
        raise AssertionError("a long saw tooth has a slope")


@pytest.mark.parametrize("flights", [[], [1], [1, 1], [2], [1, 2]])
def test_the_flights_of_a_handshake_are_no_window(flights):
    data = simulate(duration_s=2)
    rtt_s, first_s = data.min_rtt_s, data.sent_s[0]
    rtts = np.repeat(np.arange(len(flights), 0, -1), flights)
    sent_s = first_s - 1.002 * rtt_s * rtts
    sides = {"acked_or_lost_s": sent_s + rtt_s, "delivered_s": sent_s + rtt_s / 2, "sent_s": sent_s}
    added = {name: np.concatenate([side, getattr(data, name)]) for name, side in sides.items()}
    windows = start_of(replace(data, **added)).window_packets
    assert windows[:4].tolist() == start_of(data).window_packets[:4].tolist()
    assert windows[0] == 10


def test_reno_counts_as_one_flow_and_two_emulated_ones_as_two():
    # RFC 9438 §4.3: alpha = 3 N² (1 - beta)/(1 + beta) makes AIMD with beta compete like N Renos.
    two = infer(simulate(alpha=12 * 0.15 / 1.85, beta=0.85, duration_s=40))
    assert infer(simulate())["emulated_flows"].value == pytest.approx(1, rel=0.05)
    assert two["emulated_flows"].value == pytest.approx(2, rel=0.08)


@pytest.mark.parametrize("every", [1, 2, 10])
def test_ack_frequency(every):
    assert infer(simulate(ack_every=every))["packets_per_ack"].value == pytest.approx(every)


def test_reverted_window_reductions():
    path = {"lose_each_s": 2.0, "buffer_packets": 1e6, "duration_s": 16.0, "threshold_packets": 40}
    assert infer(simulate(revert_after_s=0.12, **path))["reverted_reductions_percent"].value == 100
    assert infer(simulate(**path))["reverted_reductions_percent"].value == 0


@pytest.mark.parametrize(
    ("after_rtts", "later", "last_rtts", "reverted"),
    [
        (0.5, 59.0, 0, False),
        (0.5, 84.0, 0, True),
        (1.25, 59.0, 0, False),
        (1.25, 59.0, 1.1, True),  # another loss reduces it: the first one had been reverted
    ],
)
def test_a_window_that_shrinks_late_is_not_reverted_before(after_rtts, later, last_rtts, reverted):
    """A flow behind a policer sends bursts, so that the first ACKs come late (`tc-police(8)`)."""
    late = int(after_rtts * GRID_PARTS)
    rtt_s, grid_s = 0.05, np.arange(40) * 0.05 / GRID_PARTS
    parts = [(85.0, 8), (83.0, late), (59.0, 16 - 8 - late + 4), (later, 20)]
    window = np.concatenate([np.full(n, packets) for packets, n in parts])
    seen = SimpleNamespace(grid_s=grid_s, in_flight_packets=window)
    found = reduction_at(seen, grid_s[8], grid_s[8] + last_rtts * rtt_s, rtt_s)
    assert (found.before_packets, found.after_packets) == (85.0, 59.0)
    assert found.reverted == reverted


def test_in_flight_is_what_was_sent_and_is_not_acknowledged():
    c = simulate(duration_s=2)
    time_s = 1.234
    by_hand = sum(s <= time_s < g for s, g in zip(c.sent_s, c.acked_or_lost_s, strict=True))
    assert c.load.in_flight_bytes(np.array([time_s]))[0] == 1500 * by_hand
    # Slow start doubles what path and queue hold before it knows of a loss.
    assert c.in_flight_packets.max() == pytest.approx(4 * BDP_PACKETS, rel=0.02)


def test_a_log_and_a_capture_give_the_same_connection():
    c = simulate(duration_s=5)
    tables = EventTables()
    events = [(s, 0, n) for n, s in enumerate(c.sent_s)]
    events += [
        (time_s, 2 if lost else 1, n)
        for n, (time_s, lost) in enumerate(zip(c.acked_or_lost_s, c.lost, strict=True))
    ]
    put_packets(tables, events)
    seen = observe_events(tables.dataset(source="qlog"))
    assert np.array_equal(seen.acked_or_lost_s, c.acked_or_lost_s)
    assert np.array_equal(seen.lost, c.lost)
    assert seen.min_rtt_s == pytest.approx(c.min_rtt_s, rel=0.03)  # one packet's time on the link


def test_every_parameter_has_a_meaning_and_is_a_cause_or_a_symptom():
    found = infer(simulate(duration_s=5))
    assert list(found) == list(PARAMETERS)
    assert sorted([*EFFECTS, *SYMPTOMS, *DERIVED]) == sorted(PARAMETERS)
    frame = found.frame()
    assert frame.loc["packet_bytes", "value"] == 1500
    assert "not seen" in str(found["cubic_c"])


def known(label: str, **values: float | str) -> Parameters:
    """Parameters of which only some are known."""
    estimates = []
    for name in PARAMETERS:
        value = values.get(name, math.nan)
        if isinstance(value, str):
            estimates.append(Estimate(name, math.nan, word=value))
        else:
            estimates.append(Estimate(name, value, value * 0.99, value * 1.01, 5))
    return Parameters(label, estimates)


REFERENCE = {"decrease_factor": 0.7, "packets_per_ack": 2.0, "growth": "cubic"}


def test_the_larger_effect_is_the_first_suspect():
    test = known("test", **{**REFERENCE, "decrease_factor": 0.85, "packets_per_ack": 10.0})
    first, second = compare(test, known("reference", **REFERENCE), delta_throughput_part=0.3)
    assert (first.name, second.name) == ("decrease_factor", "packets_per_ack")
    # RFC 9438 §5.1: the window goes with ((3 + beta)/(1 - beta))^(1/4).
    expected = 0.25 * math.log((3.85 / 0.15) / (3.7 / 0.3))
    assert first.effect == pytest.approx(expected)
    assert second.score == pytest.approx(0.3 * abs(second.effect))  # it goes against what was seen
    assert "β): 0.85 [0.842, 0.858] instead of 0.7" in str(first)
    # The ends that lie apart least and most: 0.8415 instead of 0.707, and 0.8585 instead of 0.693.
    least = 0.25 * math.log((3.8415 / 0.1585) / (3.707 / 0.293))
    most = 0.25 * math.log((3.8585 / 0.1415) / (3.693 / 0.307))
    assert (first.effect_low, first.effect_high) == pytest.approx((least, most))
    assert (first.by_thumb, second.by_thumb) == (False, True)


def test_every_law_has_its_own_response_function():
    def effect(test_law: str, reference_law: str) -> float:
        test = known("test", decrease_factor=0.85, growth=test_law)
        differences = compare(test, known("b", decrease_factor=0.5, growth=reference_law))
        return next(d.effect for d in differences if d.name == "decrease_factor")

    # RFC 9438 §4.3 for AIMD, §5.1 for CUBIC.
    aimd = 0.5 * math.log((1.85 / 0.15) / (1.5 / 0.5))
    cubic = 0.25 * math.log((3.85 / 0.15) / (3.5 / 0.5))
    assert effect("linear", "linear") == effect("linear", "cubic") == pytest.approx(aimd)
    assert effect("cubic", "linear") == pytest.approx(cubic)
    assert effect("", "cubic") == pytest.approx(cubic)  # of an unknown law, the smaller one


def test_a_model_of_the_path_is_judged_by_no_response_function():
    bbr = {"probe_up_gain": 1.25, "decrease_factor": 0.5, "cubic_c": 0.4}
    bbr["reverted_reductions_percent"] = 0
    test = known("test", **{**bbr, "decrease_factor": 0.9, "cubic_c": 4, "probe_up_gain": 1.5})
    first, *others = compare(test, known("reference", **bbr), 0.3)
    assert law(test, known("reference", **bbr)) == "probing"
    assert (first.name, first.effect) == ("probe_up_gain", pytest.approx(math.log(1.2)))
    assert others == []  # a model of the path ignores single losses


def test_what_only_a_loss_based_controller_has_is_no_cause_for_a_bbr():
    # Under random loss the packets show no cycles, so that only the name says what it is.
    reduced = {"packets_per_ack": 10.0, "decrease_factor": 0.9, "reverted_reductions_percent": 60.0}
    usual = {"packets_per_ack": 2.0, "decrease_factor": 0.5, "reverted_reductions_percent": 0.0}
    sides = known("test", **reduced), known("reference", **usual)
    assert "reverted_reductions_percent" in {d.name for d in compare(*sides)}
    assert [d.name for d in compare(*sides, by_name=BBRS)] == ["packets_per_ack"]


@pytest.mark.parametrize(
    ("name", "samples", "value", "ends"),
    [
        ("decrease_factor", [1.5, 1.58, 1.6], math.nan, (math.nan, math.nan)),
        ("decrease_factor", [0.9, 0.95, 1.3], 0.95, (0.9, 1.0)),
        ("increase_packets_per_rtt", [-0.2, -0.1, 0.3], math.nan, (math.nan, math.nan)),
        ("increase_packets_per_rtt", [-0.2, 0.1, 0.3], 0.1, (0.0, 0.3)),
        ("probe_down_gain", [1.2], math.nan, (math.nan, math.nan)),
        ("initial_window_packets", [0.0, 0.0], math.nan, (math.nan, math.nan)),
    ],
)
def test_what_cannot_be_is_unknown(name, samples, value, ends):
    found = median_of(name, [np.array(samples)])
    assert found.value == pytest.approx(value, nan_ok=True)
    assert (found.low, found.high) == pytest.approx(ends, nan_ok=True)
    assert str(found) == "not seen" or found.known


def test_a_symptom_has_no_effect_and_comes_after_the_causes():
    reference = {**REFERENCE, "in_flight_bdp": 1.1, "burst_packets": 4.0, "limited_percent": 0.0}
    test = {**reference, "in_flight_bdp": 2.0, "limited_percent": 3.0, "packets_per_ack": 3.0}
    found = compare(known("test", **test), known("reference", **reference))
    assert [(d.name, d.role) for d in found] == [
        ("packets_per_ack", "cause"),
        ("in_flight_bdp", "symptom"),
    ]  # 3 % of the time is less than 5 %
    assert math.isnan(found[1].effect)


def test_a_steady_sender_below_the_links_rate_is_limited():
    steady = simulate(most_packets=0.4 * BDP_PACKETS)
    assert infer(steady)["limited_percent"].value > 95
    assert infer(simulate())["limited_percent"].value < 1
    # A loss, and its long way back, is no limit of the sender's own.
    assert infer(simulate(buffer_packets=5))["limited_percent"].value < 2
    # Beside a rival that takes the rest, the link limits.
    time_s = np.arange(0, 30, 1e-3)
    busy = SharedLink(steady.link.rate_mbps, time_s, 1500 * time_s / 1e-3)
    assert infer(replace(steady, link=busy))["limited_percent"].value == 0
    # The log of one end does not show the link.
    assert not infer(replace(steady, link=None))["limited_percent"].known


@pytest.mark.parametrize(("per_rtt", "most"), [(0.0, 1.0), (1.0, 0.0)])
def test_a_window_that_grows_over_a_slow_way_back_is_not_limited(per_rtt, most):
    """ACKs that wait in a queue make an RTT of 0.3 s of 0.05 s: one packet in each is growth."""
    grid_s, none = np.arange(0.0, 60.0, 0.05 / GRID_PARTS), np.empty(0)
    c = SimpleNamespace(
        grid_s=grid_s,
        min_rtt_s=0.05,
        rtt_s=np.full(len(grid_s), 0.3),
        in_flight_packets=300 + per_rtt * grid_s / 0.3,
        overtaken_s=none,
        loss_detected_between=lambda begin_s, end_s: np.zeros(len(grid_s), bool),
    )
    found = limited(c, SharedLink(20.0, none, none))
    assert found.mean() == pytest.approx(most, abs=0.06)


def test_no_flows_are_counted_of_a_window_that_does_not_grow():
    kept = {"threshold_packets": 40, "lose_each_s": 2.0, "buffer_packets": 1e6}
    for alpha in (0.0, -0.5):
        found = infer(simulate(alpha=alpha, **kept))
        assert found["decrease_factor"].known
        assert found["growth"].word not in ("linear", "cubic")
        assert not found["emulated_flows"].known
    # The lower bound of a slope may be negative where its median is not: N reaches 0 then.
    line = Estimate("increase_packets_per_rtt", 1.0, -0.2, 1.2, 5)
    beta = Estimate("decrease_factor", 0.5, 0.49, 1.02, 5)
    n = with_flows([line, beta, Estimate("growth", math.nan, word="linear"), UNKNOWN_N])[-1]
    assert (n.value, n.low) == (pytest.approx(1), 0)
    assert n.high == pytest.approx(math.sqrt(1.2 * 1.99 / 0.03))


def test_indistinguishable_parameters_are_no_difference():
    assert compare(known("a", **REFERENCE), known("b", **REFERENCE)) == []
    near = known("near", **{**REFERENCE, "decrease_factor": 0.71})
    assert compare(near, known("b", **REFERENCE)) == []
    assert compare(known("a"), known("b", **REFERENCE)) == []


def test_what_cannot_be_observed_is_one_sentence():
    run = synthetic_run(duration_s=1)
    with pytest.raises(MetricError, match="no flow 7"):
        infer(run, 7)
    with pytest.raises(MetricError, match="no packets of quic-go:cubic"):
        infer(run.drop_vars("packet_time_s"))
    with pytest.raises(MetricError, match="at least one"):
        infer([])
    with pytest.raises(MetricError, match="sent 0 of the 20 full packets"):
        observe(run.isel(packet=slice(0, 0)))


@pytest.mark.guest
def test_the_kernel_from_its_packets():
    link = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)

    def alone(controller: str, **options: object) -> Parameters:
        flow = qb.Flow("tcp", controller, options=options)
        return infer(qb.Experiment(bottleneck=link, flows=[flow], duration_s=25).run())

    reno = alone("reno", initial_window_packets=20)
    assert reno["initial_window_packets"].value == 20
    assert reno["decrease_factor"].value == pytest.approx(0.5, rel=0.03)
    assert reno["increase_packets_per_rtt"].value == pytest.approx(1, rel=0.05)
    assert reno["pacing"].word == "bursts"
    assert alone("reno", pacing=True)["pacing_gain"].value == pytest.approx(2, rel=0.15)
    assert alone("scalable")["decrease_factor"].value == pytest.approx(0.875, rel=0.03)
    bbr = alone("bbr")
    assert bbr["probe_up_gain"].value == pytest.approx(1.25, rel=0.04)
    assert bbr["probe_cycle_rtts"].value == pytest.approx(8, rel=0.1)
    assert bbr["probe_rtt_duration_ms"].value == pytest.approx(200, rel=0.2)
    cubic, other = alone("cubic"), alone("cubic", hystart=False)
    assert (cubic["slow_start_exit"].word, other["slow_start_exit"].word) == ("delay", "loss")


@pytest.mark.guest
@pytest.mark.parametrize("app", ["requests kb=50 think_s=0.3", "rate mbps=2 fps=30"])
def test_the_pauses_of_an_application_are_no_law_of_the_window(app):
    flows = [qb.Flow("tcp:reno", app=app), "tcp:cubic?app=onoff on_s=1 off_s=2"]
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40)
    found = infer(qb.Experiment(bottleneck=link, flows=flows, duration_s=15).run())
    assert found["initial_window_packets"].value == 10
    laws = ("decrease_factor", "growth", "probe_up_gain", "emulated_flows")
    assert not any(found[name].known for name in laws)
    assert repr(found).startswith("<Parameters of tcp:reno: initial_window_packets 10, ")


def test_a_probe_that_begins_and_ends_with_a_peak_is_one():
    """Each 20 RTTs: a round at 1.25 times the link's rate, 1.5 at it, one at 1.25, a drain."""
    rtt_s, link_pps, rounds = 0.05, 2000.0, 20.0
    at = np.arange(0.0, rounds, 0.01)
    gain = np.ones(len(at))
    gain[(at < 1) | ((at >= 2.5) & (at < 3.5))] = 1.25
    gain[(at >= 3.5) & (at < 4.5)] = 0.5
    sent = np.cumsum(np.tile(gain, 40)) * 0.01 * rtt_s * link_pps
    sent_s = np.interp(np.arange(1, int(sent[-1])), sent, 0.01 * rtt_s * np.arange(len(sent)))
    in_queue_s = np.arange(len(sent_s)) / link_pps
    delivered_s = np.maximum.accumulate(sent_s + rtt_s / 2 - in_queue_s) + in_queue_s
    acked_s = delivered_s + rtt_s / 2
    load = Load(sent_s, acked_s, delivered_s, np.full(len(sent_s), 1250.0))
    c = Connection("c", sent_s, acked_s, delivered_s, acked_s, 1250, rtt_s, load)
    cycles = phases_of(c, 2.0).cycle_rtts
    assert 35 <= len(cycles) <= 40 and np.median(cycles) == pytest.approx(rounds, abs=0.5)
    assert np.ptp(cycles) <= 5


@pytest.mark.guest
def test_explain_names_the_decrease_and_what_if_fixes_it():
    # Scalable TCP keeps 7/8 of its window at a loss where Reno keeps half.
    words = "--rate-mbps 10 --rtt-ms 20 --duration-s 20 --seeds 4 --explain --json"
    command = f"conformance tcp:scalable --reference tcp:reno {words}".split()
    done = CliRunner().invoke(group, command)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["explanation"]["differences"][0]["parameter"] == "decrease_factor"
    assert "a loss leaves 0.8" in report["verdict"].splitlines()[-1]
    assert "fraction of the window left after a loss" in report["explanation"]["reasons"]


@pytest.mark.guest
@pytest.mark.parametrize(
    ("first", "second"),
    [("tcp:bbr", "tcp:cubic"), ("tcp:reno", "quinn:bbr"), ("tcp:bbr", "tcp:vegas")],
)
def test_a_bbr_and_another_controller_differ_by_their_law(first, second):
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40, buffer_bdp=2)
    runs = [qb.Experiment(flows=[f], bottleneck=link, duration_s=25).run() for f in (first, second)]
    for order in (runs, runs[::-1]):
        cause, *_ = differences_of_runs(*order)
        assert cause.is_of_two_laws and "for bandwidth and the RTT" in cause.clause


def test_parameters_survive_json():
    found = infer(simulate(duration_s=5))
    again = Parameters.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert [str(e) for e in again.values()] == [str(e) for e in found.values()]


@pytest.mark.guest
def test_what_if_runs_the_same_study_with_another_option():
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=20)
    study = qb.conformance_study("tcp:reno", "tcp:reno", bottleneck=link, duration_s=15, seeds=2)
    changed = qb.what_if(study, {"initial_window_packets": 30})
    assert [run.qb.experiment.seed for run in changed.after.tests] == [1, 2]
    assert changed.after.tests[0].qb.experiment.flows[0].options == {"initial_window_packets": 30}
    assert "With initial_window_packets = 30 the conformance of tcp:reno" in changed.sentence
    assert len(changed.chart().to_dict()["hconcat"]) == 2
    with pytest.raises(SpecError, match="tcp has no option beta; supported: ecn, hystart"):
        qb.what_if(study, {"beta": 0.5})


def test_three_figures_and_no_exponent():
    assert str(Estimate("packet_bytes", 1318.2)) == "1318"
    assert str(Estimate("decrease_factor", 0.70013, 0.6996, 0.7)) == "0.7 [0.7, 0.7]"


@pytest.mark.parametrize(("threshold", "grows"), [(13, 0), (16, 0), (25, 1), (70, 2)])
def test_growth_is_of_slow_start_alone(threshold, grows):
    """What a threshold cuts short, and what Reno adds after it, is no growth per round."""
    start = start_of(simulate(threshold_packets=threshold, duration_s=5))
    assert start.growth == pytest.approx([2.0] * grows)


@pytest.mark.guest
@pytest.mark.slow
def test_the_sawtooth_of_a_deep_queue_is_no_probing(tmp_path):
    """A CUBIC that loses each 5 s, 170 RTTs, was taken for a model that probes its path."""
    link = qb.Bottleneck(rate_mbps=18, rtt_ms=30, buffer_bdp=5)
    lone = qb.Experiment(flows=["s2n-quic:cubic"], bottleneck=link, duration_s=60, seed=2)
    found = qb.metrics.infer(lone.run(engine="virtual", out=tmp_path / "run.nc"))
    assert found["growth"].word != "probing" and not found["probe_up_gain"].known


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "link", "jitter_ms"),
    [
        ("tcp:cubic", {"hold_data_ms": 10, "hold_acks_ms": 10}, None),
        ("quic-go:cubic", {"hold_acks_ms": 20}, None),
        ("quic-go:cubic", {"buffer_bdp": 8, "rate_mbps": 10, "rtt_ms": 40}, 5),
        ("tcp:reno", {"delay": [(0, 50), (2, 90), (4, 50)], "rate_mbps": 10}, None),
    ],
)
def test_what_a_path_does_to_a_window_is_no_probing(name, link, jitter_ms, tmp_path):
    """Held packets and jitter make bursts that come back, which were taken for BBR's probes."""
    path = qb.Bottleneck(**{"rate_mbps": 20, "rtt_ms": 50, **link})
    lone = qb.Experiment(flows=[name], bottleneck=path, duration_s=30, jitter_ms=jitter_ms)
    run = lone.run(engine="virtual", out=tmp_path / "run.nc")
    for found in (qb.metrics.infer(run), observed([run])):
        assert found["growth"].word != "probing"
        assert not found["probe_up_gain"].known and not found["probe_down_gain"].known
    if "delay" in link:  # nothing is measured in units of a path that is another one later
        assert not found["probes_reach_bdp"].known and not found["back_at_loss_part"].known


@pytest.mark.guest
@pytest.mark.slow
def test_a_policer_is_the_bottleneck_of_who_meets_it(tmp_path):
    """The link behind it is five times as fast, and its BDP had been the unit of all windows."""
    path = qb.Bottleneck(rate_mbps=100, rtt_ms=50, policer_mbps=20, policer_burst_bytes=97_000)
    lone = qb.Experiment(flows=["tcp:bbr"], bottleneck=path, duration_s=20)
    found = observed([lone.run(engine="virtual", out=tmp_path / "run.nc")])
    assert 0.9 < found["probes_reach_bdp"].value < 2
