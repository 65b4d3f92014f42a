"""What can be asked, and what bad input gets."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbkit.errors import SpecError
from qbkit.spec import Bottleneck, Experiment, Flow


def test_buffer_in_three_units():
    # 20 Mbit/s x 50 ms = 1,000,000 bit = 125,000 bytes; 125,000 // 1514 = 82 full frames.
    assert Bottleneck(rate_mbps=20, rtt_ms=50).queue_bytes == 125_000
    assert Bottleneck(rate_mbps=20, rtt_ms=50).queue_packets == 82
    assert Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=0.5).queue_bytes == 62_500
    assert Bottleneck(buffer_bytes=3028).queue_packets == 2
    assert Bottleneck(buffer_packets=10).queue_bytes == 15_140


def test_flow_by_text_and_by_words():
    assert Flow.parse("quic-go:cubic") == Flow("quic-go", "cubic")
    assert Experiment(flows=["tcp:bbr"]).flows[0] == Flow(stack="tcp", controller="bbr")


def test_equal_flows_get_distinct_labels():
    experiment = Experiment(flows=["tcp:cubic", Flow("tcp", "cubic", label="x"), "tcp:cubic"])
    assert experiment.labels == ["tcp:cubic #1", "x", "tcp:cubic #2"]


@given(
    rate=st.floats(0.5, 1000),
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
    assert one.hash == Experiment(flows=[Flow("tcp", "cubic")]).hash == "69de510d64874cdc"
    assert one.hash != Experiment(flows=["tcp:cubic"], seed=2).hash
    assert one.hash != Experiment(flows=["tcp:cubic"], jitter_ms=0).hash


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bottleneck(rate_mbps=0), "Bottleneck.rate_mbps = 0: input should be greater"),
        (lambda: Bottleneck(rate_mbps=-5), "greater than or equal to 0.05"),
        (lambda: Bottleneck(rate_mbps=1e9), "less than or equal to 1000"),
        (lambda: Bottleneck(rate_mbps=float("nan")), "rate_mbps = nan"),
        (lambda: Bottleneck(rtt_ms=-1), "rtt_ms = -1"),
        (lambda: Bottleneck(buffer_bytes=1000), "less than one packet of 1514 bytes"),
        (lambda: Bottleneck(buffer_bdp=0), "buffer_bdp = 0"),
        (lambda: Bottleneck(buffer_bdp=1, buffer_bytes=9000), "give the buffer once"),
        (lambda: Bottleneck(qdisc="wfq"), "should be 'fifo', 'fq', 'fq_codel'"),
        (lambda: Bottleneck(qdisc="fq", qdisc_options={"turbo": 1}), "fq has no option turbo"),
        (lambda: Bottleneck(loss_percent=100), "loss_percent = 100"),
        (lambda: Bottleneck(speed=3), "Bottleneck has no field speed"),
        (lambda: Flow("tcp", "cubic", start_s=5, stop_s=4), "stops at 4 s, before it starts at 5"),
        (lambda: Flow("tcp"), "Flow.controller is missing"),
        (lambda: Flow("rm -rf /", "cubic"), "Flow.stack = 'rm -rf /'"),
        (lambda: Flow.parse("tcp"), "write stack:controller"),
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
        (lambda: Experiment.from_json("{"), "not valid JSON"),
        (lambda: Experiment.from_json("[1]"), "must be a JSON object"),
        (
            lambda: Experiment.from_json(json.dumps({"flows": [{"stack": 1}]})),
            "flow.stack = 1: input should be a valid string",
        ),
    ],
)
def test_bad_input_gets_one_sentence(make, words):
    with pytest.raises(SpecError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
