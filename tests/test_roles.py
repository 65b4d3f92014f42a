"""Senders that are servers: only who opens the connection changes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conservation import assert_conserved

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.execution.runner import drivers_of
from qbkit.testbed.plan import plan_data

LINK = {"rate_mbps": 20, "rtt_ms": 40}
SERVING = [stack for stack in stacks.all_stacks() if stack.serves]


def spec_of(flow: str, **fields) -> qb.Experiment:
    still = {"start_window_s": 0, "jitter_ms": 0}
    return qb.Experiment(bottleneck=LINK, flows=[flow], duration_s=3, **{**still, **fields})


def run_of(flow: str, **fields):
    run = spec_of(flow, **fields).run()
    assert_conserved(run)
    assert json.loads(run.attrs["warnings"]) == []
    return run


def test_a_role_is_part_of_the_text_and_no_role_is_no_part_of_the_name():
    assert qb.Flow(qb.Flow("tcp:cubic?role=server").text).role == "server"
    assert "role" not in spec_of("tcp:cubic").to_json()
    spec = spec_of("tcp:cubic?role=server")
    assert qb.Experiment.from_json(spec.to_json()) == spec
    both = qb.Experiment(flows=["tcp:cubic", "tcp:cubic?role=server"])
    assert both.labels == ["tcp:cubic", "tcp:cubic?role=server"]


@pytest.mark.parametrize("name", ["tcp", "quic-go", "quinn"])
def test_the_ends_keep_their_sides_and_change_who_listens(name: str):
    spec = spec_of(f"{name}:cubic?role=server")
    flow = plan_data(spec, drivers_of(spec), "virtual", "capture")["flows"][0]
    assert (flow["listens"], flow["starts"]) == ("sender", "receiver")
    assert (flow["sender_host"], flow["receiver_host"]) == ("s0", "d0")
    for argv, verb, word in (("sender", "send", "--listen"), ("receiver", "recv", "--connect")):
        words = flow[f"{argv}_argv"]
        assert verb in words and words[words.index(word) + 1] == "10.1.0.1:4001"


@pytest.mark.parametrize(
    ("flow", "sentence"),
    [
        ("tquic:cubic?role=server", "tquic sends as a client alone; google-quiche, haproxy, "),
        (
            "google-quiche:cubic?role=client",
            "google-quiche sends as a server alone; leave out role",
        ),
        ("tcp:cubic?role=peer", "input should be 'client' or 'server'"),
        ("tcp:cubic?role=server&app=rate mbps=2", "is asked for bytes; leave out app, or role"),
        ("tcp:cubic?role=server&receiver=optimistic", "leave out receiver, or role"),
    ],
)
def test_mistakes_get_one_sentence(flow: str, sentence: str):
    with pytest.raises(SpecError, match=sentence) as raised:
        qb.run(spec_of(flow))
    assert "\n" not in str(raised.value)


def begins_s(run) -> tuple[float, float]:
    """When the first packet came to the queue, and when 12 kB had: those of the first window."""
    times, sizes = run.packet_time_s.values, run.packet_size_bytes.values
    return float(times[0]), float(times[np.cumsum(sizes) > 12_000][0])


@pytest.mark.guest
@pytest.mark.parametrize("stack", SERVING, ids=lambda stack: stack.name)
def test_a_server_sends_like_a_client_half_a_round_trip_later(stack: stacks.Stack):
    flow = f"{stack.name}:{stack.controllers()[0]}"
    client, server = run_of(flow), run_of(f"{flow}?role=server")
    mbps = [float(run.qb.summary().goodput_mbps.iloc[0]) for run in (client, server)]
    assert mbps[1] == pytest.approx(mbps[0], rel=0.03)
    assert float(np.nanmax(server.cwnd_bytes)) > 50_000  # telemetry is that of the sender
    # The request arrives 1.5 RTT after the start; a client has data to send after 1 RTT.
    # Its first packet, as a server's, answers one that took half an RTT, too.
    later_s = np.subtract(begins_s(server), begins_s(client))
    assert later_s[0] == pytest.approx(0.02, abs=0.001)
    # noq's pacer begins more slowly (28.6 ms); picoquic's knows the RTT by then, as no client does.
    assert (0.008 if stack.name == "picoquic" else 0.017) < later_s[1] < 0.03


@pytest.mark.guest
@pytest.mark.parametrize("stack", SERVING, ids=lambda stack: stack.name)
def test_a_server_sends_so_many_bytes_and_stops_with_its_flow(stack: stacks.Stack):
    flow = f"{stack.name}:{stack.controllers()[0]}?role=server"
    sized = run_of(f"{flow}&bytes=1000000")
    assert int(sized.receiver_bytes.max()) == 1_000_000
    stopped = run_of(f"{flow}&stop_s=1.5", ip_version=6)
    mbps = stopped.throughput_mbps.values[0]
    assert mbps[10:14].min() > 10 and mbps[17:].max() == 0
