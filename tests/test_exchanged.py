"""Senders with the receiver of another stack: what the receiver does moves with it."""

from __future__ import annotations

import json

import pytest
from conservation import assert_conserved

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.execution.runner import namer
from qbkit.metrics.parameters import infer
from qbkit.stacks.variants.exchanged import SPEAKING

LINK = {"rate_mbps": 10, "rtt_ms": 40}
EXCHANGING = [stacks.get(name) for name in SPEAKING]


def spec_of(flow: str, **fields) -> qb.Experiment:
    return qb.Experiment(bottleneck=LINK, flows=[flow], duration_s=2, **fields)


def run_of(flow: str):
    run = spec_of(flow).run()
    assert_conserved(run)
    assert json.loads(run.attrs["warnings"]) == []
    return run


def test_a_receiver_is_part_of_the_text_of_the_label_and_of_the_name():
    flow = qb.Flow("quinn:cubic?receiver=quic-go")
    assert qb.Flow(flow.text) == flow
    spec = qb.Experiment(flows=[flow, "quinn:cubic"])
    assert spec.labels == ["quinn:cubic?receiver=quic-go", "quinn:cubic"]
    assert qb.Experiment.from_json(spec.to_json()) == spec
    names = {namer()(spec_of(f"quinn:cubic?receiver={name}")) for name in ("quic-go", "noq")}
    assert len(names | {namer()(spec_of("quinn:cubic"))}) == 3


@pytest.mark.parametrize(
    ("flow", "fields", "sentence"),
    [
        (
            "quinn:cubic?receiver=quicgo",
            {},
            r"no receiver 'quicgo' \(did you mean quic-go\?\); write",
        ),
        ("quinn:cubic?receiver=tcp", {}, "tcp receives from its own driver alone; aioquic, "),
        ("tcp:cubic?receiver=quinn", {}, "alone; tcp has optimistic and withholds; aioquic, "),
        ("tcp:cubic?receiver=foo", {}, "no receiver 'foo'; write .* optimistic .* or withholds"),
        ("google-quiche:bbr?receiver=quinn", {}, "google-quiche sends to its own driver alone"),
        ("quinn:cubic?receiver=quic-go fast", {}, "there is no receiver 'quic-go fast'; write"),
        ("quinn:cubic?receiver=noq&app=rate mbps=2", {}, "has no application; leave out app"),
        ("quinn:cubic?receiver=noq&receive_window_kb=9", {}, "leave out receive_window_kb"),
        (
            "quinn:cubic?receiver=noq",
            {"ip_version": 6},
            "receiver is for IPv4; leave out that, or ip_version",
        ),
    ],
)
def test_mistakes_get_one_sentence(flow: str, fields, sentence: str):
    with pytest.raises(SpecError, match=sentence) as raised:
        qb.run(spec_of(flow, **fields))
    assert "\n" not in str(raised.value)


@pytest.mark.guest
@pytest.mark.parametrize("stack", EXCHANGING, ids=lambda stack: stack.name)
def test_each_sends_to_another_ones_receiver_and_receives_from_another_ones_sender(stack):
    others = ("quic-go", "quinn") if stack.name != "quinn" else ("noq", "quic-go")
    first = stack.controllers()[0]
    for flow in (
        f"{stack.name}:{first}?receiver={others[0]}",
        f"{others[1]}:cubic?receiver={stack.name}",
    ):
        assert float(run_of(flow).throughput_mbps.mean()) > 8


@pytest.mark.guest
def test_how_often_is_acknowledged_is_the_receivers_doing():
    per_ack = {
        flow: infer([run_of(flow)])["packets_per_ack"].value
        for flow in ("quinn:cubic", "quiche:cubic", "quinn:cubic?receiver=quiche")
    }
    own, others, exchanged = per_ack.values()
    assert exchanged == pytest.approx(others, rel=0.15)
    assert abs(own - others) > 0.5
