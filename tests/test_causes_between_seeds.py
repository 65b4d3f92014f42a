"""A cause is what every run of one side shows, and no run of the other: seeds alone do little."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbkit.metrics.parameters import (
    Estimate,
    Parameters,
    compare,
    known_precedents,
    voted,
)
from qbkit.metrics.parameters.behaviour import of_samples
from qbkit.metrics.parameters.between_losses import _is_held
from qbkit.metrics.parameters.difference import CLEAR
from qbkit.metrics.parameters.effects import DERIVED
from qbkit.metrics.parameters.estimates import PARAMETERS
from qbkit.metrics.parameters.inference import median_of
from qbkit.metrics.parameters.laws import BBRS, by_two_laws
from qbkit.metrics.parameters.model import probe_rtts
from qbkit.metrics.parameters.rules import RULES
from qbkit.metrics.parameters.start import Round, Start, _first_data, _stood
from qbkit.metrics.parameters.windows import is_bounded


def side(**runs: list[float] | list[str]) -> Parameters:
    """Parameters of which each of four runs shows the given values; all others are not seen."""
    rules = [{name: values[k] for name, values in runs.items()} for k in range(4)]
    behaviours = [e for e in of_samples(rules) if e.name not in PARAMETERS]
    return Parameters("side", [*(_parameter(n, runs.get(n, [])) for n in PARAMETERS), *behaviours])


def _parameter(name: str, values: list[float] | list[str]) -> Estimate:
    if values and isinstance(values[0], str):
        return Estimate(name, math.nan, word=str(values[0]), runs=tuple(values))
    return median_of(name, [np.array([value]) for value in values])


def causes(test: Parameters, reference: Parameters, *, models_path: bool = True) -> list[str]:
    found = compare(test, reference, by_name=BBRS if models_path else ("", ""))
    return [d.name for d in found if d.role == "cause" and not d.score <= CLEAR]


def test_one_run_like_the_others_side_is_enough_for_silence():
    reference = side(left_in_flight_bdp=[1.0, 1.1, 1.0, 2.6])
    apart = side(left_in_flight_bdp=[2.7, 2.8, 3.0, 2.9])
    alike = side(left_in_flight_bdp=[2.5, 2.8, 3.0, 2.9])
    assert causes(apart, reference) == ["left_in_flight_bdp"]
    assert causes(alike, reference) == []


@pytest.mark.parametrize(
    ("room", "found"), [([0.08, 0.47, 0.51, 0.96], []), ([0.0, 0.02, 0.05, 0.1], ["ack_room"])]
)
def test_a_part_that_spreads_over_its_runs_is_no_difference(room, found):
    """picoquic's BBR, whose source has that room, had room for 0.49 of an ACK's packets."""
    assert causes(side(ack_room=room), side(ack_room=[1.0] * 4)) == found


def test_four_runs_of_one_sender_seldom_differ_from_four_others():
    orders = list(itertools.combinations(range(8), 4))
    apart = [set(o) == {0, 1, 2, 3} or set(o) == {4, 5, 6, 7} for o in orders]
    assert sum(apart) / len(orders) == pytest.approx(1 / 35)  # what the docstrings say
    values = np.array([1.0, 1.4, 1.9, 2.5, 3.2, 4.0, 5.0, 6.5])
    found = [
        bool(
            causes(
                side(left_in_flight_bdp=[*values[list(o)]]),
                side(left_in_flight_bdp=[*np.delete(values, o)]),
            )
        )
        for o in orders
    ]
    assert sum(found) / len(orders) == pytest.approx(1 / 35)


def test_few_reductions_that_are_reverted_in_some_runs_are_no_cause():
    few = side(reverted_reductions_percent=[50.0, 100.0, 50.0, 66.0])
    all_of_them = side(reverted_reductions_percent=[100.0, 100.0, 100.0, 66.0])
    none = side(reverted_reductions_percent=[0.0, 0.0, 10.0, 0.0])
    assert causes(few, all_of_them, models_path=False) == []
    assert causes(all_of_them, none, models_path=False) == ["reverted_reductions_percent"]


@pytest.mark.parametrize(
    ("ours", "seen"),
    [
        (["never"] * 4, True),
        (["never", "never", "never", "often"], False),
        (["never", "never", "often", "often"], False),
        (["often"] * 4, False),
    ],
)
def test_a_word_is_what_every_run_says(ours, seen):
    found = causes(side(probe_rtt=ours), side(probe_rtt=["often"] * 4))
    assert found == (["probe_rtt"] if seen else [])


def test_what_one_of_four_runs_shows_at_all_is_no_cause():
    once = side(window_cap_packets=[80.0, math.nan, math.nan, math.nan])
    always = side(window_cap_packets=[80.0] * 4)
    assert causes(once, side(), models_path=False) == []
    assert causes(always, side(), models_path=False) == ["window_cap_packets"]


def test_what_half_of_the_runs_show_is_no_cause():
    nan = math.nan
    ours, theirs = [9.0, nan, 9.5, nan], [30.0, nan, nan, 44.0]
    assert causes(side(probe_cycle_rtts=ours), side(probe_cycle_rtts=theirs)) == []
    more = side(probe_cycle_rtts=[30.0, 44.0, nan, 31.0])
    assert causes(side(probe_cycle_rtts=[9.0, 9.2, 9.5, nan]), more) == ["probe_cycle_rtts"]


@pytest.mark.parametrize(
    ("slope", "kept", "found"),
    [(1.0, 0.63, True), (1.0, 0.53, False), (1.5, 0.63, False)],
    ids=["it kept more", "it kept as much", "it grew by more"],
)
def test_a_reduction_is_seen_beneath_what_pacing_takes_at_first(slope, kept, found):
    usual = {"growth": ["linear"] * 4, "decrease_factor": [0.5, 0.41, 0.5, 0.49]}
    reference = side(**usual, increase_packets_per_rtt=[1.0] * 4, kept_two_rtts=[0.51] * 4)
    test = side(**usual, increase_packets_per_rtt=[slope] * 4, kept_two_rtts=[kept] * 4)
    for pair in ((test, reference), (reference, test)):
        assert ("decrease_factor" in causes(*pair, models_path=False)) is found
    if found:
        first, *_ = compare(test, reference)
        assert (first.test.value, first.reference.value) == (0.63, 0.51)


@pytest.mark.parametrize(("queue", "first"), [(0.35, "window_gain"), (0.0, "standing_queue_bdp")])
def test_a_queue_as_long_as_the_window_allows_is_the_windows(queue, first):
    reference = side(standing_queue_bdp=[1.0] * 4, window_gain=[2.0] * 4)
    test = side(standing_queue_bdp=[queue] * 4, window_gain=[1.4] * 4)
    assert causes(test, reference)[0] == first


@pytest.mark.parametrize(
    ("reach", "window", "first"), [(1.25, 1.33, "window_gain"), (1.1, 2.0, "probes_reach_bdp")]
)
def test_probes_that_reach_as_far_as_the_window_are_the_windows(reach, window, first):
    reference = side(probes_reach_bdp=[2.26] * 4, window_gain=[2.21] * 4)
    test = side(probes_reach_bdp=[reach] * 4, window_gain=[window] * 4)
    assert causes(test, reference)[0] == first


def test_a_slower_start_is_why_delay_ends_it():
    reference = side(start_growth=[1.84, 1.9, 1.87, 1.9], slow_start_exit=["loss"] * 4)
    test = side(start_growth=[1.47] * 4, slow_start_exit=["delay"] * 4)
    found = causes(test, reference, models_path=False)
    assert found == ["start_growth", "slow_start_exit"]


@pytest.mark.parametrize(
    ("probe_rate", "batch", "first"),
    [
        (1.8, 2.0, "window_cap_packets"),
        (0.7, 2.0, "probes_reach_bdp"),  # it is paced below the link's rate
        (1.8, 18.0, "back_to_back_packets"),  # packets wait until there are 18
    ],
)
def test_a_window_that_never_fills_the_path_is_held(probe_rate, batch, first):
    filled = {"probe_rate": [1.28] * 4, "back_to_back_packets": [2.0] * 4}
    reference = side(
        probes_reach_bdp=[1.8, 1.8, 1.9, 1.9],
        window_cap_packets=[107.0, math.nan, 113.0, math.nan],
        **filled,
    )
    test = side(
        probes_reach_bdp=[0.83] * 4,
        window_cap_packets=[52.7] * 4,
        probe_rate=[probe_rate] * 4,
        back_to_back_packets=[batch] * 4,
        packets_per_ack=[2.0] * 4,
    )
    found = causes(test, reference)
    assert found[0] == first
    assert ("window_cap_packets" in found) is (first == "window_cap_packets")


@pytest.mark.parametrize(("bdp", "reach", "packets"), [(0.77, 0.79, 65.0), (1.5, 1.33, 64.4)])
def test_one_bound_of_a_window_in_all_phases_is_a_cap(bdp, reach, packets):
    """A receive window of 95 kB, below the BDP and above it; its model takes it for the path.

    Updates of flow control come for many packets at once.
    """
    usual = {"cruise_part": [0.84] * 4, "packets_per_ack": [2.0] * 4}
    reference = side(
        **usual,
        probes_reach_bdp=[1.3] * 4,
        window_cap_packets=[48.0] * 4,
        startup_peak_bdp=[3.1] * 4,
        window_gain=[2.2] * 4,
        probe_rate=[1.28] * 4,
        back_to_back_packets=[2.0] * 4,
    )
    test = side(
        **usual,
        probes_reach_bdp=[reach] * 4,
        window_cap_packets=[65.0 if bdp < 1 else 48.0] * 4,
        startup_peak_bdp=[bdp] * 4,
        window_gain=[1.02 * bdp] * 4,
        probe_rate=[0.8] * 4,
        back_to_back_packets=[8.5] * 4,
    )
    for order in ((test, reference), (reference, test)):
        found = compare(*order, by_name=BBRS)
        first = voted(found, *order, known_precedents(), models_path=True)[0]
        assert first.name == "window_cap_packets" and math.isnan(first.votes)
        (cap,) = (e for e in (first.test, first.reference) if e.known)
        assert cap.value == pytest.approx(packets, abs=0.1)


@pytest.mark.parametrize(
    ("left", "moved", "said"),
    [
        (
            0.7,
            0.2,
            "a CE mark leaves 0.7 of its window, where a loss leaves 0.5 of the reference's",
        ),
        (0.7, -0.2, "the queue marks its packets, and drops the reference's"),
        (0.5, 0.2, "the queue marks its packets, and drops the reference's"),
    ],
)
def test_marks_are_the_cause_only_where_both_react_alike(left, moved, said):
    """quic-go's Reno behind codel: of its 1.8 Mbit/s more, 1.5 stay if no packet is marked."""
    marked = side(
        growth=["linear"] * 4, congestion_signal=["marks"] * 4, kept_after_mark=[left] * 4
    )
    dropped = side(
        growth=["linear"] * 4, congestion_signal=["drops"] * 4, decrease_factor=[0.5] * 4
    )
    first, *_ = compare(marked, dropped, moved)
    assert first.clause == said and first.has_no_precedent
    exchanged, *_ = compare(dropped, marked, -moved)
    assert exchanged.name == first.name
    if left > 0.5 and moved > 0:
        assert exchanged.clause.startswith("a loss leaves 0.5 of its window, where a CE mark")


def both(**values: tuple[float, float]) -> list[Parameters]:
    """Two sides, each of whose runs show the first or the second of the values."""
    return [side(**{name: [v[k]] * 4 for name, v in values.items()}) for k in (0, 1)]


@pytest.mark.parametrize(
    ("sides", "cause"),
    [
        (
            both(
                probes_reach_bdp=(0.83, 1.8),
                window_cap_packets=(52.7, 107.0),
                probe_rate=(1.8, 1.28),
                back_to_back_packets=(2.0, 2.0),
            ),
            "window_cap_packets",
        ),
        (
            both(cruise_part=(0.5, 0.7), probes_reach_bdp=(1.3, 1.4), window_gain=(1.5, 2.0)),
            "cruise_part",
        ),
        (both(paced_part=(0.8, 1.0), probe_rate=(1.0, 1.25), drain_rate=(0.6, 0.75)), "paced_part"),
        (both(probe_rate=(1.6, 1.25), paced_part=(1.0, 0.93)), "probe_rate"),
        (both(window_gain=(4.0, 2.2), probes_reach_bdp=(3.1, 2.2)), "window_gain"),
        (both(rate_after_pause=(0.4, 1.0)), "rate_after_pause"),
        (both(probe_rate=(1.07, 1.19), kept_after_burst=(0.89, 1.0)), "probe_rate"),
        (
            both(drain_rate=(0.5, 0.75), probe_rate=(1.6, 1.25), standing_queue_bdp=(0.5, 0.0)),
            "probe_rate",
        ),
        (
            both(drain_rate=(0.95, 0.75), probe_rate=(1.6, 1.25), standing_queue_bdp=(0.5, 0.0)),
            "standing_queue_bdp",
        ),
        (
            both(bandwidth_memory_rounds=(2.0, 10.0), left_in_flight_bdp=(0.5, 1.1)),
            "bandwidth_memory_rounds",
        ),
        (
            both(paced_part=(1.25, 1.0), standing_queue_bdp=(0.9, 0.0), probe_rate=(1.6, 1.25)),
            "standing_queue_bdp",
        ),
    ],
)
def test_the_cause_is_the_same_whichever_side_is_the_test(sides, cause):
    assert [causes(*order)[0] for order in (sides, sides[::-1])] == [cause, cause]


WORDS = {
    "slow_start_exit": ["loss", "delay"],
    "pacing": ["paced", "bursts"],
    "growth": ["linear", "cubic", "probing", "other"],
    "bandwidth_filter": ["forgets", "never forgets"],
    "probe_rtt": ["often", "never"],
    "congestion_signal": ["marks", "drops"],
}
NUMBERS = [0.0, 0.3, 0.7, 1.0, 1.3, 2.0, 5.0, 40.0]
SHOWN = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(WORDS.get(name, NUMBERS))
        for name in (*PARAMETERS, *RULES)
        if name not in DERIVED
    },
)


@given(SHOWN, SHOWN, st.booleans())
@settings(max_examples=200)
def test_no_rule_looks_at_one_side(ours, theirs, models_path):
    theirs["growth"] = ours["growth"] = "cubic"  # effects are by the test's law
    sides = [side(**{name: [value] * 4 for name, value in of.items()}) for of in (ours, theirs)]
    first, exchanged = (causes(*order, models_path=models_path) for order in (sides, sides[::-1]))
    assert first[:1] == exchanged[:1]


def test_a_window_that_stays_in_half_of_the_runs_is_no_model_of_the_path():
    nan = math.nan
    gradient = {"window_cap_packets": [nan, nan, 76.0, 77.0], "probe_rtt": ["often"] * 4}
    reno = side(growth=["linear"] * 4)
    assert by_two_laws(side(**gradient), reno, ("", "linear")) is None  # CDG, which backs off
    held = {**gradient, "window_cap_packets": [75.0, nan, 76.0, 77.0]}
    assert by_two_laws(side(**held), reno, ("", "linear"))
    at_times = side(**held, probe_rtt_interval_s=[nan, 16.15, 2.44, 1.29])  # PCC Vivace
    assert by_two_laws(at_times, reno, ("", "linear")) is None


def test_batches_are_the_cause_whichever_side_has_them():
    batches, usual = (
        side(back_to_back_packets=[b] * 4, packets_per_ack=[2.0] * 4, pacing=[word] * 4)
        for b, word in ((16.0, "bursts"), (2.0, "paced"))
    )
    for order in ((batches, usual), (usual, batches)):
        assert causes(*order, models_path=False)[0] == "back_to_back_packets"


def test_what_the_reference_alone_does_is_said_so():
    held, free = both(window_cap_packets=(52.7, math.nan))
    (found,) = (d for d in compare(free, held) if d.role == "cause")
    assert found.clause == (
        "the reference's window stays at 53 packets though nothing is lost, and its own does not"
    )


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.alone])
def test_what_the_test_alone_does_is_said_without_a_second_number(name):
    does, never = both(**{name: (50.0, math.nan)})
    (found,) = (d for d in compare(does, never) if d.role == "cause")
    assert "50" in found.clause and "nan" not in found.clause


@pytest.mark.parametrize(
    ("name", "value", "usual", "words"),
    [
        ("standing_queue_bdp", 0.9, 0.1, "paces above the delivery rate"),
        ("probes_reach_bdp", 0.9, 1.5, "paces below the delivery rate"),
        ("rate_after_pause", 0.4, 1.0, "takes its application for the path"),
    ],
)
def test_why_is_said_of_the_side_that_does_it(name, value, usual, words):
    sides = both(**{name: (value, usual)})
    for (test, reference), said in ((sides, True), (sides[::-1], False)):
        (found,) = (d for d in compare(test, reference, by_name=BBRS) if d.role == "cause")
        assert (words in found.clause) is said
        assert f"{test[name].value:g}" in found.clause


@pytest.mark.parametrize(("limited", "found"), [(36.0, []), (7.0, ["probe_down_gain"])])
def test_drains_that_a_window_makes_are_no_gain(limited, found):
    reference = side(probe_down_gain=[0.71] * 4, limited_percent=[6.0] * 4)
    test = side(probe_down_gain=[0.27] * 4, limited_percent=[limited] * 4)
    assert causes(test, reference) == found


@pytest.mark.parametrize(("kept", "cause"), [(0.94, "cruise_part"), (1.02, "drain_rate")])
def test_a_drain_in_which_nothing_leaves_is_headroom(kept, cause):
    """A window with headroom waits after a probe; a gain of 0.2 drains as deep, and refills."""
    waits = side(drain_rate=[0.16] * 4, in_flight_bdp=[kept] * 4, cruise_part=[0.48] * 4)
    usual = side(drain_rate=[0.83] * 4, in_flight_bdp=[1.015] * 4, cruise_part=[0.51] * 4)
    assert causes(waits, usual) == causes(usual, waits) == [cause]
    ours, theirs = (  # published before there were rules
        Parameters("published", [e for e in one.values() if e.name in PARAMETERS])
        for one in (waits, usual)
    )
    assert causes(ours, theirs) == []


def test_what_flow_control_holds_is_no_model_of_the_path():
    cubic = side(decrease_factor=[0.7] * 4, growth=["cubic"] * 4)
    held = side(probe_up_gain=[1.2] * 4, growth=["probing"] * 4, window_cap_packets=[90.0] * 4)
    free = side(probe_up_gain=[1.2] * 4, growth=["probing"] * 4)
    unknown = side(window_cap_packets=[140.0] * 4)  # of a law that no span of its window shows
    for usual in (cubic, unknown):
        assert causes(held, usual, models_path=False)[0] == "window_cap_packets"
    assert "window_cap_packets" not in causes(free, cubic, models_path=False)


@pytest.mark.parametrize(("bottom", "word"), [([0.0] * 3, "never"), ([0.1] * 16, "often")])
def test_a_drain_that_goes_too_far_is_no_probe_for_the_rtt(bottom, word):
    # What is in flight, every quarter of an RTT of 50 ms: 40 s, with a dip every 5 s.
    cycle = [1.0] * (400 - 8 - len(bottom)) + [0.75, 0.5, 0.3, 0.1, *bottom, 0.3, 0.5, 0.7, 0.9]
    rate_mbps, rtt_s, packet_bytes = 10.0, 0.05, 1250  # 50 packets fill the path
    path = SimpleNamespace(
        grid_s=np.arange(8 * 400) * rtt_s / 4,
        in_flight_packets=50 * np.tile(cycle, 8),
        min_rtt_s=rtt_s,
        packet_bytes=packet_bytes,
        link=SimpleNamespace(rate_mbps=rate_mbps),
    )
    found = probe_rtts(path, [(0.0, 40.0)])
    assert found["probe_rtt"] == word
    assert word == "never" or found["probe_rtt_bdp"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("packets", "stood"), [([300, 600, 614, 615], True), ([300, 600, 1203], False)]
)
def test_a_loss_after_slow_start_has_ended_does_not_end_it(packets, stood):
    ends = np.cumsum([0, *packets])
    assert _stood([Round(low, high) for low, high in itertools.pairwise(ends)]) == stood


def test_of_an_unknown_law_a_small_decrease_comes_after_the_receiver():
    # The law of a window is not seen where ACKs come for many packets at once.
    few = side(decrease_factor=[0.75] * 4, packets_per_ack=[2.0] * 4)
    many = side(decrease_factor=[0.70] * 4, packets_per_ack=[12.0] * 4)
    assert causes(many, few, models_path=False) == ["packets_per_ack", "decrease_factor"]


def test_a_broken_rule_is_not_hidden_by_the_sign_of_a_rule_of_thumb():
    # A startup that goes on is expected to cost throughput; here its sender gains.
    usual, longer = side(startup_hold_rtts=[3.0] * 4), side(startup_hold_rtts=[6.0] * 4)
    (found,) = compare(longer, usual, 0.2, by_name=BBRS)
    assert found.effect < 0 and found.score > CLEAR


def test_growth_that_one_side_barely_shows_is_no_difference():
    """Growth between close losses is seen from 2 packets per RTT on; the other may have 1.9."""
    unseen = side(growth=["linear"] * 4)
    for value, named in ((2.3, []), (2.9, ["steep_increase_packets_per_rtt"])):
        seen = side(growth=["linear"] * 4, steep_increase_packets_per_rtt=[value] * 4)
        assert causes(seen, unseen, models_path=False) == named
        assert causes(unseen, seen, models_path=False) == named


@pytest.mark.parametrize(("gain", "found"), [(4.9, ["pacing_gain"]), (2.6, [])])
def test_a_start_that_is_paced_much_faster_is_named_though_it_gains_little(gain, found):
    test, usual = both(pacing_gain=(gain, 2.0))
    assert causes(test, usual, models_path=False) == found


@pytest.mark.parametrize(
    ("stale", "room", "first"),
    [
        (1.92, 1.0, "window_cap_packets"),
        (1.92, 0.3, "ack_room"),  # its window has no room for aggregated ACKs, in any phase
        (2.14, 1.0, "startup_peak_bdp"),  # startup alone has less in flight
    ],
)
def test_a_receive_window_near_twice_the_bdp_is_a_cap(stale, room, first):
    usual = {"cruise_part": [0.81] * 4, "probes_reach_bdp": [1.29] * 4, "probe_rate": [1.28] * 4}
    usual |= {"back_to_back_packets": [1.0] * 4, "window_cap_packets": [84.0] * 4}
    more = {"startup_peak_bdp": [3.02] * 4, "window_gain": [2.15] * 4, "ack_room": [1.0] * 4}
    less = {"startup_peak_bdp": [1.91] * 4, "window_gain": [stale] * 4, "ack_room": [room] * 4}
    sides = side(**usual, **less), side(**usual, **more)
    for order in (sides, sides[::-1]):
        assert causes(*order)[0] == first


@pytest.mark.parametrize(("line", "found"), [(0.954, ["increase_packets_per_rtt"]), (1.72, [])])
def test_a_slope_between_close_losses_is_compared_with_a_line(line, found):
    """Of 2.6 packets per RTT and of 1 behind CoDel, 55 ms: no window was reduced differently. Of
    two of 1.8, one has slopes above 2 alone."""
    usual = {"growth": ["linear"] * 4, "decrease_factor": [0.5] * 4}
    name = "steep_increase_packets_per_rtt"
    steep = side(**usual, kept_two_rtts=[0.625] * 4, **{name: [2.29] * 4})
    straight = side(**usual, kept_two_rtts=[0.533] * 4, increase_packets_per_rtt=[line] * 4)
    for order in ((steep, straight), (straight, steep)):
        assert causes(*order, models_path=False) == found


def test_a_window_is_no_handshake_though_slow_start_grows_far_more_than_twice():
    """Linux's Hybla at 200 ms: eight packets, and 256 times as many."""
    sent_s = np.repeat([0.0, 0.2], [8, 2048])
    assert _first_data(SimpleNamespace(sent_s=sent_s, min_rtt_s=0.2)) == 0
    start = Start([Round(0, 8), Round(8, 2056)], 0.4, 1.2, by_loss=True)
    assert start.growth.tolist() == [256.0]
    lost_at_once = Start([Round(0, 10), Round(10, 28)], 0.4, 1.2, by_loss=True)
    assert not len(lost_at_once.growth)


def test_a_start_that_overshoots_is_why_the_queue_overflows_again_and_again():
    test = side(start_growth=[256.0] * 4, reverted_reductions_percent=[50.0, 60.0, 62.0, 33.0])
    reference = side(start_growth=[2.0] * 4, reverted_reductions_percent=[0.0] * 4)
    found = causes(test, reference, models_path=False)
    assert found == ["start_growth", "reverted_reductions_percent"]


@pytest.mark.parametrize(("growth", "paces_less"), [(1.6, False), (1.8, True)])
def test_a_slow_start_that_grows_less_has_less_to_pace(growth, paces_less):
    """CUBIC that adds 0.6 packets per packet acknowledged. A pace of 0.88 windows per RTT alone
    lets a window grow by 1.84."""
    usual = {"growth": ["cubic"] * 4, "pacing": ["paced"] * 4}
    slow = side(**usual, start_growth=[growth] * 4, pacing_gain=[0.853, 0.88, 0.882, 0.91])
    fast = side(**usual, start_growth=[2.0] * 4, pacing_gain=[1.42, 1.55, 1.56, 1.69])
    for order in ((slow, fast), (fast, slow)):
        assert causes(*order, models_path=False) == [
            "pacing_gain" if paces_less else "start_growth"
        ]


def test_deep_drains_that_come_each_few_rtts_are_no_probe_rtts():
    test = side(probe_rtt_interval_s=[6.62, 6.9, 6.9, 10.8], probe_rtt_duration_ms=[52.5] * 4)
    reference = side(
        probe_rtt_interval_s=[0.07, 0.08, 0.08, 0.14], probe_rtt_duration_ms=[35.0] * 4
    )
    assert causes(test, reference) == causes(reference, test) == []


@pytest.mark.parametrize(("reach", "first"), [(1.85, "window_gain"), (2.51, "ack_room")])
def test_a_window_below_twice_the_bdp_has_no_room_for_acks(reach, first):
    """s2n-quic's BBR with a gain of 1.4 and of 2, on a path that stays the same."""
    more = {"window_gain": [2.23, 2.3, 2.4, 2.52], "ack_room": [1.0] * 4}
    less = {"window_gain": [1.93, 1.97, 1.99, 1.99], "ack_room": [0.0] * 4}
    sides = (
        side(**less, probes_reach_bdp=[reach] * 4),
        side(**more, probes_reach_bdp=[2.48, 2.51, 2.51, 2.54]),
    )
    for order in (sides, sides[::-1]):
        assert causes(*order)[0] == first


def test_a_window_is_held_though_few_updates_of_flow_control_move_it():
    """A reader at 16 Mbit/s: what is in flight comes and goes, up to the same 63 packets."""
    grid_s = np.arange(0, 60, 0.005)
    none = np.empty(0)
    times = {"sent_s": grid_s, "grid_s": grid_s, "loss_detected_s": none, "overtaken_s": none}
    connection = SimpleNamespace(**times, min_rtt_s=0.02)
    early, late = (np.resize([each, 63.0], len(grid_s) // 2) for each in (37.0, 27.0))
    assert _is_held(connection, np.concatenate([early, late]))
    assert not _is_held(connection, np.linspace(27, 63, len(grid_s)))


@pytest.mark.parametrize(("kept", "found"), [(0.282, ["kept_after_outage"]), (0.18, [])])
def test_what_an_outage_leaves_of_a_large_window(kept, found):
    """CUBIC at 13 Mbit/s, 65 ms, 3.2 BDP: an outage that it takes for a loss leaves 0.28."""
    test = side(growth=["cubic"] * 4, kept_after_outage=[kept] * 4)
    reference = side(growth=["cubic"] * 4, kept_after_outage=[0.137] * 4)
    assert causes(test, reference, models_path=False) == found


def test_a_slow_start_that_leaves_early_without_a_loss_is_a_cause_of_its_own():
    """Both leave it by delay, so the word does not differ; one at a fixed window of 20 packets."""
    exits = {"slow_start_exit": ["delay"] * 4, "growth": ["linear"] * 4}
    early, late = (side(slow_start_exit_packets=[w] * 4, **exits) for w in (20.0, 97.0))
    for order in ((early, late), (late, early)):
        assert causes(*order, models_path=False) == ["slow_start_exit_packets"]
    by_loss = side(slow_start_exit_packets=[97.0] * 4, **exits | {"slow_start_exit": ["loss"] * 4})
    assert causes(early, by_loss, models_path=False) == ["slow_start_exit"]


def test_a_drain_judged_in_a_long_probe_rtt_is_explained_by_it():
    usual = side(probe_rtt_duration_ms=[248.0] * 4, left_in_flight_bdp=[1.27] * 4)
    long = side(probe_rtt_duration_ms=[908.0] * 4, left_in_flight_bdp=[0.14] * 4)
    found = {d.name: d.explained for d in compare(long, usual, by_name=BBRS)}
    assert found == {"probe_rtt_duration_ms": False, "left_in_flight_bdp": True}


def test_twice_the_bdp_is_a_models_own_window_though_startup_has_no_more():
    """quinn's BBR starts with 177 packets, so its startup has no more than its stale model."""
    shown = {"cruise_part": 0.9, "probes_reach_bdp": 2.0, "window_cap_packets": 168.0}
    quinn = side(
        **{n: [v] * 4 for n, v in shown.items()},
        startup_peak_bdp=[2.04] * 4,
        window_gain=[2.06] * 4,
    )
    for stale, peak, bounded in ((2.14, 3.04, False), (2.3, 3.04, True)):
        assert (
            is_bounded(quinn, side(startup_peak_bdp=[peak] * 4, window_gain=[stale] * 4)) is bounded
        )


def test_a_shallow_probe_rtt_does_not_also_last_less():
    """What keeps more in flight is below most of the usual for less time."""
    deep = side(probe_rtt_bdp=[0.09] * 4, probe_rtt_duration_ms=[236.0] * 4)
    shallow = side(probe_rtt_bdp=[0.85] * 4, probe_rtt_duration_ms=[79.0] * 4)
    for order in ((deep, shallow), (shallow, deep)):
        assert causes(*order) == ["probe_rtt_bdp"]
