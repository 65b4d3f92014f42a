"""Flows over a second connection that resumes the first one's session, with and without 0-RTT."""

from __future__ import annotations

import numpy as np
import pytest
from conservation import conserved_run

import qbkit as qb
from qbkit import stacks
from qbkit.execution.runner import drivers_of
from qbkit.testbed.plan import plan_data

RTT_S = 0.1
STILL = {"start_window_s": 0, "jitter_ms": 0, "duration_s": 3}
LINK = {"rate_mbps": 20, "rtt_ms": 1e3 * RTT_S}
RESUMING = [stack for stack in stacks.all_stacks() if stack.resumes]


def spec_of(flow: str, **fields) -> qb.Experiment:
    return qb.Experiment(bottleneck=LINK, flows=[flow], **{**STILL, **fields})


def run_of(flow: str, **fields):
    """A conserved run that warns of nothing."""
    run = conserved_run(flow, **{**LINK, **STILL, **fields})
    assert run.qb.warnings == []
    return run


def test_a_second_connection_is_part_of_the_text_and_none_is_no_part_of_the_name():
    flow = qb.Flow("quinn:cubic?resume=0rtt")
    assert flow.text == "quinn:cubic?resume=0rtt kb=100 pause_s=1"
    assert qb.Flow(flow.text) == flow
    assert "resume" not in spec_of("quinn:cubic").to_json()
    spec = spec_of(flow.text)
    assert qb.Experiment.from_json(spec.to_json()) == spec
    both = qb.Experiment(flows=["quinn:cubic", flow])
    assert both.labels == ["quinn:cubic", f"quinn:cubic?{flow.text.partition('?')[2]}"]


def test_both_ends_are_told_and_the_size_is_that_of_both_connections():
    spec = spec_of("quic-go:cubic?resume=1rtt kb=20 pause_s=0.5&bytes=1000")
    flow = plan_data(spec, drivers_of(spec), "virtual", "capture")["flows"][0]
    assert flow["env"]["QBKIT_RESUME"] == "1rtt 20000 500000000"
    assert flow["bytes"] == 1000 and spec.flows[0].total_bytes == 21_000


def bytes_of_first_flight(run) -> int:
    """What reached the queue in the RTT after the second connection's first packet did."""
    since_s = run.packet_time_s.values - run.resumed_start_s.values[0] - RTT_S / 2
    return int(run.packet_size_bytes.values[(since_s > -0.001) & (since_s < 0.9 * RTT_S)].sum())


@pytest.mark.guest
@pytest.mark.parametrize("stack", RESUMING, ids=lambda stack: stack.name)
def test_0rtt_saves_one_round_trip(stack: stacks.Stack):
    flow = f"{stack.name}:{stack.controllers()[0]}"
    runs = [run_of(f"{flow}?resume={kind}") for kind in ("0rtt", "1rtt")]
    session = 0 if stack.name == "tcp" else 1  # TCP has no other than Fast Open's cookie
    assert [float(run.resumed_session[0]) for run in runs] == [1, session]
    assert [float(run.resumed_early_data[0]) for run in runs] == [1, 0]
    came_s = [float((run.resumed_first_byte_s - run.resumed_start_s)[0]) for run in runs]
    assert came_s[0] == pytest.approx(RTT_S / 2, abs=0.003)
    later_s = came_s[1] - came_s[0]
    assert RTT_S - 0.001 < later_s < RTT_S + 0.012  # noq's pacer begins slowly: 109 ms
    early, later = map(bytes_of_first_flight, runs)
    least = 1400 if stack.name == "tcp" else 3000  # what a SYN carries
    assert early > later + least  # beside the handshake's padded packets
    assert [run.qb.summary().early_data.iloc[0] for run in runs] == ["accepted", "none"]
    shown = runs[0].qb.summary().iloc[0]
    assert shown.second_first_byte_ms == pytest.approx(1e3 * came_s[0])


@pytest.mark.guest
@pytest.mark.parametrize("stack", RESUMING, ids=lambda stack: stack.name)
def test_a_second_connection_sends_so_many_bytes_over_ipv6_too(stack: stacks.Stack):
    flow = f"{stack.name}:{stack.controllers()[0]}?resume=0rtt kb=300 pause_s=0.5&bytes=700000"
    run = run_of(flow, ip_version=6)
    assert int(run.receiver_bytes[0]) == 1_000_000
    start_s, last_s = float(run.resumed_start_s[0]), float(run.resumed_last_byte_s[0])
    assert run.resumed_first_byte_s[0] < last_s < run.stop_s[0] <= last_s + 1.1 * RTT_S
    silent = (run.packet_time_s > start_s - 0.3) & (run.packet_time_s < start_s)
    assert not silent.any()  # the first connection ended half a second before
    assert np.isfinite(run.cwnd_bytes[0].sel(time=slice(start_s + 0.2, last_s))).all()


@pytest.mark.guest
@pytest.mark.parametrize("stack", RESUMING, ids=lambda stack: stack.name)
def test_a_second_connection_may_begin_while_the_first_one_closes(stack: stacks.Stack):
    flow = f"{stack.name}:{stack.controllers()[0]}?resume=0rtt kb=20 pause_s=0&bytes=300000"
    run = run_of(flow, duration_s=2)
    assert int(run.receiver_bytes[0]) == 320_000 and run.resumed_early_data[0] == 1


@pytest.mark.guest
@pytest.mark.parametrize("controller", ["cubic", "bbr"])
def test_picoquic_resumes_with_the_window_of_a_first_connection_that_left_slow_start(controller):
    sent_kb, last_s = [], []
    for first_kb in (100, 3000):
        run = run_of(
            f"picoquic:{controller}?resume=0rtt kb={first_kb} pause_s=0.5&bytes=1000000",
            duration_s=5,
        )
        since_s = run.packet_time_s.values - run.resumed_start_s.values[0] - RTT_S / 2
        second_round = (since_s > 0.99 * RTT_S) & (since_s < 1.99 * RTT_S)
        sent_kb.append(run.packet_size_bytes.values[second_round].sum() / 1e3)
        last_s.append(float((run.resumed_last_byte_s - run.resumed_start_s)[0]))
    assert sent_kb[1] > 500 > 2 * sent_kb[0]  # path and queue hold 500 kB
    assert last_s[1] < last_s[0] - 0.5 * RTT_S


@pytest.mark.guest
@pytest.mark.parametrize("stack", RESUMING, ids=lambda stack: stack.name)
def test_a_second_connection_that_never_begins_is_said(stack: stacks.Stack):
    flow = f"{stack.name}:{stack.controllers()[0]}?resume=0rtt kb=1000&stop_s=1.5"
    run = conserved_run(flow, **{**LINK, **STILL, "rate_mbps": 2, "duration_s": 2})
    (warning,) = run.qb.warnings
    assert "has no second connection: its time was over" in warning
    assert np.isnan(run.resumed_start_s[0]) and run.receiver_bytes[0] > 100_000
    assert run.packet_time_s.max() < 1.5 + 2.5 * RTT_S  # TCP resets what is still acknowledged
