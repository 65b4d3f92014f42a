"""Schedules, traces and presets: their forms, their mistakes, and what they add up to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ideal_link import capacity_bits

from qbkit.errors import SpecError
from qbkit.spec import Bottleneck, Experiment, schedule
from qbkit.spec.presets import CONSTANT, PRESETS
from qbkit.spec.sweep import Sweep
from qbkit.testbed import changes


def test_a_text_a_list_and_fields_are_one_capacity():
    pairs = [(0, 50), (20, 5), (40, 50)]
    of_text = Bottleneck(capacity="0:50 20:5 40:50")
    assert of_text == Bottleneck(capacity=pairs) == Bottleneck(capacity={"steps": pairs})
    assert Bottleneck(delay="0:50 5:100") == Bottleneck(delay=[(0, 50), (5, 100)])
    assert of_text == Bottleneck(capacity=np.array(pairs)) == Bottleneck(capacity=iter(pairs))
    assert of_text == Bottleneck(capacity=pd.DataFrame(pairs, columns=["s", "mbps"]))
    assert Bottleneck(outages="5:0.2") == Bottleneck(outages=[(5, 0.2)])
    again = Experiment.from_json(Experiment(bottleneck=of_text, flows=["tcp:cubic"]).to_json())
    assert again.bottleneck == of_text


def test_a_lone_pair_in_a_file_is_no_number_to_base_60(tmp_path: Path):
    file = tmp_path / "spec.yaml"
    file.write_text("flows: [tcp:cubic]\nbottleneck: {outages: 5:0.2, delay: 2:20}\n")
    link = Experiment.from_file(file).bottleneck
    assert link == Bottleneck(outages=[(5, 0.2)], delay=[(2, 20)])
    file.write_text(
        "name: x\nbase: {flows: [tcp:cubic]}\nsweep: {bottleneck.outages: [5:0.2, 7:1]}"
    )
    swept = [point.experiment.bottleneck for point in Sweep.from_file(file).points()]
    assert swept == [Bottleneck(outages="5:0.2"), Bottleneck(outages="7:1")]


def test_a_schedule_that_was_made_before_is_left_as_it_is():
    link = Bottleneck(capacity="0:50 20:5", delay="0:40 3:20", outages="5:0.2")
    again = {name: getattr(link, name) for name in ("capacity", "delay", "outages")}
    assert Bottleneck(**again) == link


def test_a_trace_is_read_in_each_of_its_forms(tmp_path: Path):
    (tmp_path / "tabs.txt").write_text("0.0\t2.5\n1.01\t1.25\n# a comment\n\n2.02\t4\n")
    (tmp_path / "named.csv").write_text("\ufefftime_s,mbps\n0,2.5\n1.01,1.25\n2.02,4\n")
    steps = ((0, 2.5), (1.01, 1.25), (2.02, 4.0))
    for name in ("tabs.txt", "named.csv"):
        assert Bottleneck(capacity=str(tmp_path / name)).capacity.steps == steps
    scaled = Bottleneck(capacity=f"{tmp_path}/tabs.txt scale=2 repeat").capacity
    assert scaled.values == [5, 2.5, 8]
    assert (scaled.at_end, scaled.name) == ("repeat", "tabs.txt")
    assert scaled.length_s == pytest.approx(3.03)
    (tmp_path / "link.down").write_text("1\n1\n5\n")
    assert Bottleneck(capacity=f"{tmp_path}/link.down").capacity.opportunities_ms == (1, 1, 5)
    (tmp_path / "a b.csv").write_text("0 5\n1 6\n")
    of_path = Bottleneck(capacity=tmp_path / "a b.csv").capacity
    assert of_path == Bottleneck(capacity=f"{tmp_path}/a b.csv hold").capacity
    # A trace of which the experiment needs the beginning; steps by hand would be a mistake.
    Experiment(bottleneck={"capacity": f"{tmp_path}/tabs.txt"}, flows=["tcp:bbr"], duration_s=1)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"capacity": "0:50 20:-5 30:5"}, "-5 Mbit/s at 20 s is no rate"),
        ({"capacity": "0:50 20:1e-6"}, "1e-06 Mbit/s at 20 s is no rate; allowed are 0, and 0.00"),
        ({"capacity": [(0, True), (1, 5)]}, "capacity: steps has true; give a number"),
        ({"capacity": {"opportunities_ms": [1, True]}}, "opportunities_ms has true; give a number"),
        ({"delay": [[0, 50], [False, 60]]}, "delay: steps has false; give a number"),
        ({"outages": [(1, True)]}, "outages: times has true; give a number"),
        ({"outages": [(5,)]}, "Bottleneck.outages: (5,) is no outage; give its start and its"),
        ({"outages": {"times": [(5, 1, 2)]}}, "Bottleneck.outages: (5, 1, 2) is no outage"),
        ({"outages": (5, 1)}, "Bottleneck.outages: 5 is no outage; give its start and its length"),
        ({"capacity": [(0, 5), "9:5"]}, "'9:5' is no step; give its time in s and the rate in"),
        ({"delay": [(0,)]}, "Bottleneck.delay: (0,) is no step; give its time in s and the base"),
        ({"capacity": 5}, "5 is no list of pairs; write seconds:value"),
        ({"outages": True}, "true is no list of pairs; write seconds:length"),
        ({"capacity": "0:50 20:0"}, "the rate stays 0 for ever; end with a rate above 0"),
        ({"capacity": "20:50 10:5"}, "a step at 10 s follows one at 20 s; put them in order"),
        ({"capacity": "5:50 5:5"}, "a step at 5 s follows one at 5 s"),
        ({"capacity": "0:50 ten:5"}, "'ten:5' has 'ten' where a number must be"),
        ({"capacity": "0:nan 1:5"}, "'0:nan' has 'nan' where a number must be"),
        ({"capacity": "0:50 20"}, "'20' is no time with its value"),
        ({"capacity": "0:50 repeat"}, "one step has no end to repeat at"),
        ({"capacity": "nowhere.csv"}, "there is no file 'nowhere.csv' in /"),
        ({"capacity": "0:5 1:10 hold repeat"}, "ends by hold and repeat; keep one"),
        ({"capacity": "0:5 1:10 scale=2 scale=3"}, "has scale twice; keep one"),
        ({"capacity": "0:5_0"}, "'0:5_0' has '5_0' where a number must be"),
        ({"capacity": "0:5 1e9:10"}, "a step at 1e+09 s is too late"),
        ({"capacity": {0: 20, 5: 10}}, "0 is no name; give pairs, as in [(0, 50), (20, 5)]"),
        ({"outages": "drop"}, "'drop' has no outage; write seconds:length"),
        ({"outages": "5:1 cut"}, "'cut' is no time with its length; write seconds:length"),
        ({"preset": "leo seed=1 seed=2"}, "preset leo has seed twice; keep one"),
        ({"preset": "leo seed=1.5"}, "preset leo has seed=1.5; give a whole number from 0 on"),
        ({"preset": "leo mean_mbps=nan"}, "'mean_mbps=nan' has 'nan' where a number must be"),
        ({"preset": "leo mean_mbps=1e9"}, "preset leo has mean_mbps=1e+09; give 0.1 to 10000"),
        ({"capacity": "0:5 1:10 scale=0"}, "scale=0 leaves no capacity"),
        ({"capacity": {"opportunities_ms": [5, 2]}}, "the opportunity at 2 ms follows one at 5 ms"),
        ({"capacity": {}}, "give steps or opportunities_ms, and not both"),
        ({"delay": "0:0 5:10"}, "an RTT of 0 ms at 0 s; allowed are 0.1 to 10000 ms"),
        ({"delay": "0:10 5:20 cut"}, "a delay cannot be cut"),
        ({"outages": "5:1 5.5:1"}, "an outage at 5.5 s begins before 6 s"),
        ({"outages": "5:0"}, "the outage at 5 s lasts 0 s"),
        ({"outages": "1:1", "capacity": {"opportunities_ms": [1]}}, "a trace of mahimahi has its"),
        ({"reorder_min_bytes": 1441}, "reorder_min_bytes without reorder_percent reorders nothing"),
        (
            {"reorder_percent": 1, "reorder_min_bytes": 1441, "hold_data_ms": 2},
            "reorder_min_bytes cannot be with hold_data_ms; leave one of them out",
        ),
        (
            {"reorder_percent": 1, "reorder_min_bytes": 9, "loss_model": "gemodel 1 30"},
            "reorder_min_bytes cannot be with loss_model",
        ),
        ({"reorder_percent": 1, "reorder_min_bytes": 1501}, "reorder_min_bytes = 1501: input"),
        ({"reorder_ms": 5}, "reorder_ms without reorder_percent reorders nothing"),
        ({"return_qdisc": "cake"}, "a queue on the way back needs return_rate_mbps"),
        (
            {"qdisc": "dualpi2", "return_rate_mbps": 1, "return_qdisc": "dualpi2"},
            "dualpi2 both ways has one buffer (82 and 100 packets here) and the same options",
        ),
        ({"preset": "lan"}, "there is no preset 'lan'; known are geo, dsl"),
        ({"preset": "geo seed=3"}, "nothing is random in the preset geo; leave out seed"),
        ({"preset": "leo speed=3"}, "preset leo has no 'speed=3'; write NAME seed=1"),
        (
            {"preset": "lte", "rate_mbps": 5},
            "rate_mbps would only size the buffer of the preset lte, which has a capacity over "
            "time; write preset = 'lte mean_mbps=5'",
        ),
        (
            {"preset": "leo mean_mbps=20 seed=2", "rate_mbps": 7.5},
            "write preset = 'leo seed=2 mean_mbps=7.5'",
        ),
        (
            {"preset": "leo", "rtt_ms": 40.0},
            "rtt_ms would only size the buffer of the preset leo, which has a delay over time; "
            "write delay = '0:40'",
        ),
        ({"qdisc": "dualpi2", "qdisc_options": {"target": "fast"}}, "write a time such as 1ms"),
        ({"qdisc": "dualpi2", "qdisc_options": {"coupling_factor": 2.5}}, "write a whole number"),
    ],
)
def test_mistakes_get_one_sentence(fields: dict, sentence: str):
    with pytest.raises(SpecError) as raised:
        Bottleneck(**fields)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"0 5\n1 x\n", "line 2: '1 x'; it needs lines of seconds and a value"),
        (b"0 5\n1\n", "line 2: '1'; it needs"),
        (b"1\n" + b"9" * 5000, "line 1: '1'; it needs"),
        (b"1\n" + b"9" * 18, "the opportunity at 999999999999999999 ms is too late"),
        (b"", "has no values; it needs"),
        (b"\x00\xff\xfe\x80", "is no text; it needs"),
        (b"0 5\n3 5\n2 5\n", "a step at 2 s follows one at 3 s"),
    ],
)
def test_mistakes_in_a_trace_name_the_line(content: bytes, sentence: str, tmp_path: Path):
    (tmp_path / "trace").write_bytes(content)
    with pytest.raises(SpecError) as raised:
        Bottleneck(capacity=str(tmp_path / "trace"))
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"capacity": "0:5 70:10"},
            "capacity has a step at 70 s, after the experiment's end at 60",
        ),
        ({"delay": "0:5 60:10"}, "delay has a step at 60 s, after the experiment's end at 60 s"),
        ({"capacity": "0:5 1e-6:10 repeat"}, "which makes more than 1000000 steps in 60 s"),
        ({"outages": "61:1"}, "the outage at 61 s begins after the experiment's end at 60 s"),
        ({"outages": "0:100"}, "nothing passes in all of the 60 s; change capacity or outages"),
        ({"capacity": {"opportunities_ms": [70_000]}}, "nothing passes in all of the 60 s"),
        ({"capacity": "0:0 50:9", "outages": "40:20"}, "nothing passes in all of the 60 s"),
    ],
)
def test_steps_beyond_the_end_are_refused(fields: dict, sentence: str):
    with pytest.raises(SpecError, match=sentence):
        Experiment(bottleneck=fields, flows=["tcp:cubic"])


def test_an_mtu_needs_the_dumbbell():
    with pytest.raises(SpecError, match="mtu_bytes below 1500 needs the dumbbell"):
        Experiment(flows=["tcp:cubic"] * 3, topology="parking_lot", bottleneck={"mtu_bytes": 1400})


def test_jitter_that_keeps_the_order_is_uniform():
    with pytest.raises(SpecError, match="jitter_shape pareto needs jitter_reorders"):
        Experiment(flows=["tcp:cubic"], jitter_shape="pareto")


def test_jitter_is_no_longer_than_the_delays_that_there_are():
    def spec(delay):
        link = {"rtt_ms": 50, "delay": delay}
        return Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=3, jitter_ms=30)

    assert changes.of(spec("0:90 1:60"), "virtual", 1)["jitter_ms"] == 30  # rtt_ms plays no part
    with pytest.raises(SpecError, match=r"jitter_ms 30 is more than .* of the schedule, 25 ms"):
        changes.of(spec("0:90 1:50"), "virtual", 1)


def test_options_of_a_path_do_not_rename_other_experiments():
    """The hash of before capacity, order and marks existed."""
    spec = Experiment(flows=["tcp:cubic", "quinn:cubic"], bottleneck={"qdisc": "fq_codel"})
    assert spec.hash == "39b3bd9866a7f28b"
    assert Experiment(flows=spec.flows, bottleneck={"outages": "5:1"}).hash != spec.hash


RATES = st.floats(0, 100).map(lambda mbps: round(mbps, 4))
STEPS = st.lists(st.tuples(st.floats(0.01, 5), RATES), min_size=2, max_size=12).filter(
    lambda steps: any(rate for _, rate in steps)
)


@given(steps=STEPS, times=st.lists(st.floats(0.001, 60), min_size=1, max_size=9, unique=True))
def test_what_a_schedule_carries_is_its_integral(steps, times):
    starts_s = np.cumsum([0, *(gap for gap, _ in steps[:-1])]).tolist()
    mbps = [rate for _, rate in steps]
    mbps[-1] = max(mbps[-1], 1)
    link = Bottleneck(capacity=list(zip(starts_s, mbps, strict=True)))
    times_s = sorted(times)
    expected = capacity_bits(starts_s, mbps, np.array(times_s))
    assert schedule.carried_bits(link, times_s) == pytest.approx(expected, rel=1e-6, abs=1)


@given(steps=STEPS, start_s=st.floats(0, 20), length_s=st.floats(0.01, 20))
def test_an_outage_takes_what_the_link_would_carry_in_it(steps, start_s, length_s):
    starts_s = np.cumsum([0, *(gap for gap, _ in steps[:-1])]).tolist()
    mbps = [*(rate for _, rate in steps[:-1]), 7.0]
    capacity = list(zip(starts_s, mbps, strict=True))
    plain, with_outage = (
        Bottleneck(capacity=capacity, outages=outages) for outages in (None, [(start_s, length_s)])
    )
    taken = capacity_bits(starts_s, mbps, np.array([start_s, start_s + length_s]))
    (before,), (after,) = (schedule.carried_bits(x, [100.0]) for x in (plain, with_outage))
    assert before - after == pytest.approx(taken[1] - taken[0], rel=1e-6, abs=100)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_network_and_its_seed_counts(name: str):
    one = Bottleneck(preset=name)
    if name not in CONSTANT:
        assert one == Bottleneck(preset=f"{name} seed=1") != Bottleneck(preset=f"{name} seed=2")
    for field, value in PRESETS[name]().items():
        assert isinstance(value, dict) or getattr(one, field) == value
    assert Bottleneck(preset=name, return_rate_mbps=7).return_rate_mbps == 7
    shallow = Bottleneck(preset=name, buffer_packets=9)
    assert (shallow.buffer_packets, shallow.buffer_bdp) == (9, None)
    faster = Bottleneck(preset=f"{name} mean_mbps=200")
    assert faster.rate_mbps == 200
    if one.capacity:
        end_s = one.capacity.length_s
        mean = schedule.mean_mbps(faster, [0.0, end_s])[0]
        assert mean == pytest.approx(200, rel=0.25)


@pytest.mark.parametrize("name", PRESETS)
def test_what_a_preset_tells_to_write_is_right(name: str):
    for field in ("rate_mbps", "rtt_ms"):
        try:
            constant = Bottleneck(**{"preset": name, field: 40})
        except SpecError as error:
            instead, value = re.search(r"write (\w+) = '(.*)'$", str(error)).groups()
            link = Bottleneck(**{"preset": name, instead: value})
            assert 40 in (link.rate_mbps, *(link.delay.values if link.delay else ()))
        else:
            assert getattr(constant, field) == 40
            assert not getattr(constant, {"rate_mbps": "capacity", "rtt_ms": "delay"}[field])


def test_a_value_beside_a_preset_that_has_an_effect_is_accepted():
    own = Bottleneck(preset="leo", delay="0:40", rtt_ms=40, capacity=None, rate_mbps=5)
    assert (own.rate_mbps, own.rtt_ms, own.capacity, own.delay.values) == (5, 40, None, [40])
    spec = Experiment(flows=["tcp:cubic"], bottleneck={"preset": "leo"})
    assert Experiment.from_json(spec.to_json()) == spec


def test_a_plan_of_a_constant_network_has_nothing_of_the_others():
    plain = Experiment(flows=["tcp:cubic"])
    assert changes.of(plain, "virtual", drain_s=1) == {}
    plan = changes.of(Experiment(flows=["tcp:cubic"], bottleneck={"preset": "leo"}), "virtual", 1)
    assert json.dumps(plan)
    assert plan["schedule"]["repeat"] == 0
    assert plan["delays_s_ms"][0][0] == 15


def test_every_field_of_a_bottleneck_is_on_the_command_line():
    from qbkit.cli.network import HELP

    assert {"preset", *Bottleneck.model_fields} == set(HELP)


def test_the_first_step_holds_from_0_on_and_the_command_line_says_so():
    from qbkit.cli.network import HELP

    assert schedule.mean_mbps(Bottleneck(capacity="5:5"), [0, 5])[0] == 5
    for name, field in (("capacity", "--rate-mbps"), ("delay", "--rtt-ms")):
        assert f"holds from 0 on; {field} then only sizes the buffer" in HELP[name]
