"""What an experiment may specify, and the errors for bad input."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.app import App
from qbkit.spec.base import TextSpec
from qbkit.spec.flow import as_flow
from qbkit.spec.misbehaving import Attack, Receiver
from qbkit.spec.queue_options import QDISC_OPTIONS
from qbkit.spec.resume import Resume
from qbkit.testbed.links import bottleneck_lines


def test_buffer_in_three_units():
    # 20 Mbit/s x 50 ms = 1,000,000 bit = 125,000 bytes; 125,000 // 1514 = 82 full frames.
    assert Bottleneck(rate_mbps=20, rtt_ms=50).queue_bytes == 125_000
    assert Bottleneck(rate_mbps=20, rtt_ms=50).queue_packets == 82
    assert Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=0.5).queue_bytes == 62_500
    assert Bottleneck(buffer_bytes=3028).queue_packets == 2
    assert Bottleneck(buffer_packets=10).queue_bytes == 15_140


def test_flow_by_text_and_by_words():
    assert Flow("quic-go:cubic") == Flow("quic-go", "cubic")
    assert Experiment(flows=["tcp:bbr"]).flows[0] == Flow(stack="tcp", controller="bbr")


def test_a_text_sets_options_and_fields():
    text = "quinn:cubic?initial_window_packets=20&pacing=false&start_s=5&bytes=1000000&label=a%26b"
    flow = Flow(text)
    options = {"initial_window_packets": 20, "pacing": False}
    assert flow == Flow("quinn", "cubic", start_s=5, bytes=10**6, label="a&b", options=options)
    assert [type(value) for value in flow.options.values()] == [int, bool]
    assert Flow(flow.text) == flow
    assert Flow("tcp:bbr").text == "tcp:bbr"
    assert Experiment(flows=[text, {"stack": "tcp:bbr?start_s=1", "stop_s": 9}]).flows == (
        flow,
        Flow("tcp", "bbr", start_s=1, stop_s=9),
    )
    both = Flow("tcp:cubic?hystart=false", options={"initial_window_packets": 4})
    assert both.options == {"hystart": False, "initial_window_packets": 4}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((App, text) for text in ("rate mbps=5 fps=24", "onoff on_s=1 off_s=0.25 seed=7")),
        *((App, text) for text in ("requests kb=100 think_s=0", "objects 0:20 0.123456789:100")),
        *((Attack, text) for text in ("5 reset on-path", "3 too-big 600 off-path")),
        (Attack, "5.25 reset off-path guesses=70000 flow=1"),
        *((Receiver, text) for text in ("quic-go", "withholds every_ms=50")),
        (Resume, "0rtt kb=100 pause_s=1"),
    ],
)
def test_what_json_holds_as_a_text_is_that_text(kind: type[TextSpec], text: str):
    assert str(kind.of(text)) == text
    assert kind.model_validate(text) == kind.of(text)
    with pytest.raises(ValueError):
        kind.of("")


@pytest.mark.slow
@given(
    options=st.dictionaries(
        st.from_regex(r"opt_[a-z_]{1,9}", fullmatch=True),
        st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
        max_size=3,
    ),
    label=st.none() | st.text(min_size=1, max_size=20).filter(lambda t: t.isprintable()),
    start_s=st.floats(0, 80_000),
)
def test_every_flow_has_a_text(options, label, start_s):
    flow = Flow("tcp", "cubic", options=options, label=label, start_s=start_s)
    again = Flow(flow.text)
    assert again == flow
    assert [type(v) for v in again.options.values()] == [type(v) for v in options.values()]


def test_no_option_has_the_name_of_a_field():
    for stack in stacks.all_stacks():
        assert not set(stack.options) & set(Flow.model_fields), stack.name


def test_equal_flows_get_distinct_labels():
    experiment = Experiment(flows=["tcp:cubic", Flow("tcp", "cubic", label="x"), "tcp:cubic"])
    assert experiment.labels == ["tcp:cubic #1", "x", "tcp:cubic #2"]


@pytest.mark.parametrize(
    ("flows", "labels"),
    [
        (
            ["qbkit:copa-lite", "qbkit:copa-lite?delta=0.1"],
            ["qbkit:copa-lite", "qbkit:copa-lite?delta=0.1"],
        ),
        (
            ["quinn:cubic?pacing=false&mtu=1400", "quinn:cubic?pacing=true&mtu=1400"],
            ["quinn:cubic?pacing=false", "quinn:cubic?pacing=true"],
        ),
        (["tcp:bbr", "tcp:bbr?start_s=5"], ["tcp:bbr #1", "tcp:bbr #2"]),
        (["tcp:bbr?start_s=5", "tcp:cubic"], ["tcp:bbr", "tcp:cubic"]),
        (["a:b?x=1", "a:b?x=1", "a:b?x=2"], ["a:b?x=1 #1", "a:b?x=1 #2", "a:b?x=2"]),
    ],
)
def test_labels_name_what_differs(flows, labels):
    assert Experiment(flows=flows).labels == labels


@pytest.mark.parametrize("word", ["false", "False", "FALSE"])
def test_false_is_false_in_any_case(word):
    as_text, as_option = (
        Flow(f"quinn:cubic?pacing={word}"),
        Flow("quinn", "cubic", options={"pacing": word}),
    )
    assert as_text.options == as_option.options == {"pacing": False}
    assert as_text == as_option
    assert as_text.text == "quinn:cubic?pacing=false"
    link = Bottleneck(qdisc="codel", qdisc_options={"ecn": word})
    assert link.qdisc_options == {"ecn": False}


@given(
    rate=st.floats(0.5, 5000),
    rtt=st.floats(1, 1000),
    seed=st.integers(0, 2**63 - 1),
    names=st.lists(st.sampled_from(["tcp:cubic", "quic-go:reno", "a:b"]), min_size=1, max_size=5),
)
def test_json_round_trip_keeps_spec_and_hash(rate, rtt, seed, names):
    link = Bottleneck(rate_mbps=rate, rtt_ms=rtt, buffer_packets=10)
    experiment = Experiment(bottleneck=link, flows=names, seed=seed)
    again = Experiment.from_json(experiment.to_json())
    assert again == experiment
    assert again.hash == experiment.hash


def test_hash_is_stable_and_sees_every_field():
    one = Experiment(flows=["tcp:cubic"])
    assert one.hash == Experiment(flows=[Flow("tcp", "cubic")]).hash == "6049b9322712f196"
    assert one.hash != Experiment(flows=["tcp:cubic"], seed=2).hash
    assert one.hash != Experiment(flows=["tcp:cubic"], jitter_ms=0).hash
    assert one.hash != Experiment(flows=["tcp:cubic"], start_window_s=0).hash


def test_bursts_are_part_of_the_spec_where_there_are_any():
    one, many = (
        Experiment(bottleneck=Bottleneck(burst_packets=n), flows=["tcp:cubic"]) for n in (1, 8)
    )
    assert one.hash == "6049b9322712f196" != many.hash
    assert Experiment.from_json(many.to_json()) == many
    # Twenty Mbit/s carry 2.5 bytes in the microsecond that a timer is late, and tc needs 16.
    words = [bottleneck_lines(e.bottleneck, "virtual")[0].split() for e in (one, many)]
    bursts = [int(line[line.index("burst") + 1]) for line in words]
    assert bursts == [1514 + 16, 8 * 1514 + 16]


@pytest.mark.parametrize("qdisc", sorted(QDISC_OPTIONS.keys() - {"red"}))
def test_only_red_needs_a_buffer_for_its_thresholds(qdisc: str):
    link = Bottleneck(buffer_bytes=1514, qdisc=qdisc)
    kind = {"fifo": "bfifo"}.get(qdisc, qdisc)
    assert f"handle 10: {kind}" in bottleneck_lines(link, "virtual")[1]
    with pytest.raises(SpecError, match="red's min is 378 bytes, by default a quarter of the buff"):
        Bottleneck(buffer_bytes=1514, qdisc="red")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "burst_packets = 0: input should be greater than or equal to 1"),
        (1.5, "burst_packets = 1.5: must be a whole number"),
        ("many", "burst_packets = 'many': must be a whole number"),
    ],
)
def test_a_burst_is_a_number_of_frames(value, words):
    with pytest.raises(SpecError) as caught:
        Bottleneck(burst_packets=value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reverse_flows_change_nothing_of_experiments_without_them():
    one = Experiment(flows=[Flow("tcp", "cubic", direction="forward")])
    assert one.hash == "6049b9322712f196"
    assert "direction" not in one.to_json()
    assert Experiment.from_json(one.to_json()).flows[0].direction == "forward"
    assert not one.has_reverse_traffic


def test_a_reverse_flow_is_part_of_the_spec():
    back = Flow("tcp", "cubic", direction="reverse")
    experiment = Experiment(flows=["tcp:cubic", back, back])
    assert experiment.has_reverse_traffic
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert experiment.labels == ["tcp:cubic", "tcp:cubic (reverse) #1", "tcp:cubic (reverse) #2"]
    assert Flow("tcp", "cubic", direction="reverse", label="x").default_label != "x"
    assert experiment.hash != Experiment(flows=["tcp:cubic"] * 3).hash
    # 20 Mbit/s x 50 ms on the way, and a queue of 1 BDP there and another one back.
    assert experiment.path_bytes(0) == 3 * 125_000
    assert Experiment(flows=["tcp:cubic"]).path_bytes(0) == 2 * 125_000
    assert (experiment.most_data_mbps, Experiment(flows=["tcp:cubic"]).most_data_mbps) == (40, 20)


@given(
    seed=st.integers(0, 2**63 - 1),
    count=st.integers(1, 5),
    rtt_ms=st.floats(1, 500),
    duration_s=st.floats(0.1, 200),
    window_s=st.none() | st.floats(0, 0.099),
)
def test_flows_start_within_the_window(seed, count, rtt_ms, duration_s, window_s):
    experiment = Experiment(
        bottleneck=Bottleneck(rtt_ms=rtt_ms, buffer_packets=10),
        flows=["tcp:cubic"] * count,
        duration_s=duration_s,
        seed=seed,
        start_window_s=window_s,
    )
    if window_s is not None:
        assert experiment.effective_start_window_s == window_s
    elif count == 1:
        assert experiment.effective_start_window_s == 0
    else:
        assert experiment.effective_start_window_s == pytest.approx(
            min(rtt_ms / 100, duration_s / 10)
        )
    starts_s = experiment.flow_starts_s
    # A microsecond of rounding on top.
    assert all(0 <= s <= experiment.effective_start_window_s + 1e-6 for s in starts_s)
    # A start depends on seed and index alone, whoever the flows are.
    other = experiment.model_copy(update={"flows": (Flow("a", "b"), *experiment.flows[1:])})
    assert other.flow_starts_s == starts_s


def test_starts_are_spread_evenly_and_count_from_start_s():
    flows = ["tcp:cubic", Flow("tcp", "bbr", start_s=5)]
    specs = [Experiment(flows=flows, seed=seed, start_window_s=2) for seed in range(400)]
    first_s, second_s = np.array([e.flow_starts_s for e in specs]).T
    for offset_s in (first_s, second_s - 5):
        assert 0 <= offset_s.min() < offset_s.max() < 2
        # The mean of 400 uniform numbers has a standard deviation of 2 / sqrt(12 * 400) = 0.029.
        assert offset_s.mean() == pytest.approx(1, abs=0.12)
    assert abs(np.corrcoef(first_s, second_s)[0, 1]) < 0.2
    # By hand: SHA-256 of "start 1 0" begins with 78fd218d = 0.472612 of 2**32.
    assert Experiment(flows=flows, start_window_s=1).flow_starts_s[0] == pytest.approx(
        0.472612, abs=1e-6
    )


def test_an_old_spec_without_a_start_window_starts_at_once():
    old = json.loads(Experiment(flows=["tcp:cubic", "tcp:bbr"]).to_json())
    del old["start_window_s"]
    assert Experiment.from_json(json.dumps(old)).flow_starts_s == (0.0, 0.0)


SLOW = {"target": "slow"}
QUEUES = [
    ("codel", SLOW, "codel's option target is 'slow'; write a time such as 5ms or 500us"),
    ("codel", {"target": 5}, "codel's option target is 5; write a time such as 5ms"),
    ("codel", {"ecn": "maybe"}, "codel's option ecn is 'maybe'; write true or false"),
    ("codel", {"ecn": True, "noecn": True}, "codel cannot have ecn and noecn; keep one"),
    ("fq_pie", {"flows": 1e8}, "fq_pie's option flows is 100000000.0; write a whole number"),
    ("fq", {"maxrate": 10}, "fq's option maxrate is 10; write a rate such as 10mbit"),
    ("cake", {"besteffort": 5}, "cake's option besteffort is 5; write true or false"),
    ("red", {"min": "abc"}, "red's option min is 'abc'; write a whole number from 1 on"),
    ("red", {"min": 999, "max": 9000}, "red's min is 999 bytes, by default a quarter of the buff"),
    ("red", {"min": 40_000, "burst": 40}, "red's burst is 40 packets; with min at 40000 bytes it"),
    ("red", {"min": 50_000, "max": 100}, "red's min is 50000 and its max 100 bytes; min must"),
    ("dualpi2", {"any_ect": "maybe"}, "dualpi2's option any_ect is 'maybe'; write true or false"),
]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bottleneck(rate_mbps=0), "Bottleneck.rate_mbps = 0: input should be greater"),
        (lambda: Bottleneck(rate_mbps=-5), "greater than or equal to 0.05"),
        (lambda: Bottleneck(rate_mbps=1e9), "less than or equal to 10000"),
        (lambda: Bottleneck(rate_mbps=float("nan")), "rate_mbps = nan"),
        (lambda: Bottleneck(rtt_ms=-1), "rtt_ms = -1"),
        (lambda: Bottleneck(buffer_bytes=1000), "less than one packet of 1514 bytes"),
        (lambda: Bottleneck(buffer_bdp=0), "buffer_bdp = 0"),
        (lambda: Bottleneck(buffer_bdp=1, buffer_bytes=9000), "give the buffer once"),
        (lambda: Bottleneck(qdisc="wfq"), "should be 'fifo', 'fq', 'fq_codel'"),
        (lambda: Bottleneck(qdisc="fq", qdisc_options={"turbo": 1}), "fq has no option turbo"),
        (lambda: Bottleneck(loss_percent=100), "loss_percent = 100"),
        (lambda: Bottleneck(speed=3), "Bottleneck has no field speed"),
        (
            lambda: Experiment(flows=["tcp:cubic"], rtt_ms=9),
            "Experiment has no field rtt_ms; it belongs in bottleneck",
        ),
        (lambda: Bottleneck(20), "Bottleneck takes its values by name, as in name=value: rate"),
        (lambda: Bottleneck(rate_mbps=True), "rate_mbps is true; give a number"),
        (lambda: Bottleneck(buffer_packets=False), "buffer_packets is false; give a number"),
        (lambda: Bottleneck(rate_mbps=timedelta(1)), "rate_mbps = (timedelta): must be a number"),
        (lambda: Bottleneck(rate_mbps=[[]] * 9), "must be a number"),
        (lambda: Bottleneck(bleach_ecn="maybe"), "must be true or false"),
        (lambda: Bottleneck(policer_burst_bytes=9000), "policer_burst_bytes needs policer_mbps"),
        (lambda: Bottleneck(return_buffer_packets=9), "return_buffer_packets needs return_rate"),
        (
            lambda: Bottleneck(return_rate_mbps=1, return_qdisc="pie", return_qdisc_options=SLOW),
            "pie's option target is 'slow'; write a time such as 5ms",
        ),
        *(
            (lambda q=qdisc, o=options: Bottleneck(qdisc=q, qdisc_options=o), words)
            for qdisc, options, words in QUEUES
        ),
        (lambda: Flow("tcp:cubic", label="a\0b"), "cannot be shown; give a line of text"),
        (lambda: Flow("tcp:cubic", label=" "), "cannot be shown; give a line of text"),
        (lambda: Flow("tcp:cubic ", start_s=1), "must begin with a letter or digit and have only"),
        (lambda: Flow("tcp:cubic?a=" + "9" * 5000, start_s=-1), "Flow.start_s = -1"),
        (lambda: as_flow(None), "None is no flow; give a Flow, or its text"),
        (
            lambda: Experiment(flows=["tcp"] * 9),
            "flows.4: 'tcp' is not a flow; write stack:controller, such as tcp:cubic; and 4 more",
        ),
        (lambda: Experiment(flows=["a:b"] * 201), "must have at most 200 entries, not 201"),
        (
            lambda: setattr(Experiment(flows=["a:b"]), "seed", 2),
            "cannot be changed; make another one with the value",
        ),
        (lambda: Flow("tcp", "cubic", start_s=5, stop_s=4), "stops at 4 s, before it starts at 5"),
        (lambda: Flow(controller="cubic"), "Flow.stack is missing"),
        (lambda: Flow("tcp:cubic?"), "has '' after the ?; write stack:controller?name=value"),
        (lambda: Flow("tcp:cubic?a"), "has 'a' after the ?"),
        (lambda: Flow("tcp:cubic?a=1&a=2"), "sets a twice"),
        (lambda: Flow("tcp:cubic?stack=x"), "sets stack; a text sets options and start_s,"),
        (lambda: Flow("tcp:cubic?start_s=soon"), "Flow.start_s = 'soon': must be a number"),
        (lambda: Flow("tcp:cubic?start_s=1", start_s=1), "start_s is set twice, in the text"),
        (lambda: Flow("tcp:cubic?a=1", options={"a": 1}), "a is set twice, in the text"),
        (lambda: Flow("tcp:cubic", stat_s=3), "no field stat_s (did you mean start_s?)"),
        (lambda: Experiment(flows=["a:b"], duration=5), "(did you mean duration_s?)"),
        (
            lambda: Experiment(flows=["a:b"], bottleneck={"rate": 5}),
            "bottleneck has no field rate (did you mean rate_mbps?)",
        ),
        (lambda: Flow("tcp", label="mine"), "'tcp' is not a flow; write stack:controller"),
        (lambda: Flow("rm -rf /", "cubic"), "Flow.stack = 'rm -rf /'"),
        (lambda: Flow("tcp:cubic", "reno"), "Flow.stack = 'tcp:cubic'"),
        (lambda: Experiment(flows=["tcp:cubic", "tcp"]), "flows.1: 'tcp' is not a flow"),
        (lambda: Experiment(flows=[]), "flows"),
        (lambda: Experiment(flows=["tcp:cubic"], duration_s=0), "duration_s = 0"),
        (lambda: Experiment(flows=["tcp:cubic"], duration_s=1e9), "duration_s = 1000000000"),
        (lambda: Experiment(flows=["tcp:cubic"], seed=-1), "seed = -1"),
        (lambda: Experiment(flows=["tcp:cubic"], jitter_ms=30), "more than the one-way delay"),
        (
            lambda: Experiment(flows=[Flow("a", "b", start_s=60)], duration_s=60),
            "after the experiment's end",
        ),
        (lambda: Experiment(flows=["a:b"] * 2, topology="parking_lot"), "at least 3 flows"),
        (
            lambda: Experiment(flows=[Flow("a", "b", stop_s=3), "c:d"], start_window_s=3),
            "start_window_s 3 leaves no time for the flow that lasts 3 s; make the window shorter",
        ),
        (lambda: Experiment.from_json("{"), "not valid JSON"),
        (lambda: Experiment.from_json("[1]"), "must be a JSON object"),
        (
            lambda: Experiment.from_json(json.dumps({"flows": [{"stack": 1}]})),
            "Experiment.flows.0.stack = 1: must be a text",
        ),
    ],
)
def test_bad_input_gets_one_sentence(make, words):
    with pytest.raises(SpecError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numpy_values_are_the_same_run():
    plain = Experiment(flows=[Flow("tcp:cubic", options={"initial_window_packets": 5})], seed=3)
    value = np.int64(5)
    flow = Flow("tcp:cubic", options={"initial_window_packets": value})
    assert Experiment(flows=[flow], seed=np.int64(3)).hash == plain.hash
