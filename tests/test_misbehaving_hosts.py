"""Receivers that acknowledge otherwise than they receive, and hosts that forge packets."""

from __future__ import annotations

import importlib
from functools import partial

import numpy as np
import pytest
from conservation import conserved_run
from scapy.layers.inet import ICMP, IP, TCP
from scapy.packet import Raw

import qbkit as qb
from qbkit.errors import SpecError
from qbkit.execution.runner import drivers_of
from qbkit.spec.misbehaving import Receiver
from qbkit.stacks.variants.crafted import DRIVER
from qbkit.testbed.plan import plan_data
from qbkit.traces.run.forged import forged_variables, forged_warnings

run_of = partial(conserved_run, rate_mbps=10, rtt_ms=40, start_window_s=0)


def frames(run, after_s: float, flow: int = 0) -> np.ndarray:
    """Sizes of a flow's packets from a time on."""
    chosen = (run.packet_flow.values == flow) & (run.packet_time_s.values > after_s)
    return run.packet_size_bytes.values[chosen]


def share_of_first(run) -> float:
    """The first flow's part of what both delivered in the second half."""
    late = run.goodput_mbps.values[:, run.sizes["time"] // 2 :].mean(axis=1)
    return late[0] / late.sum()


def test_an_attack_is_its_text():
    text = "5.25 reset off-path guesses=70000 flow=1"
    spec = qb.Experiment(flows=["tcp:cubic", "tcp:reno"], attacks=text, start_window_s=0)
    assert qb.Experiment.from_json(spec.to_json()) == spec
    assert spec.attacks == qb.Experiment(flows=spec.flows, attacks=[text]).attacks


def test_a_receiver_is_its_text():
    flow = qb.Flow("tcp:cubic?receiver=withholds every_ms=50&start_s=1")
    assert qb.Flow(flow.text) == flow
    assert str(Receiver.of("optimistic")) == "optimistic ahead_packets=10"
    labels = qb.Experiment(flows=["tcp:cubic?receiver=optimistic", "tcp:cubic"]).labels
    assert labels == ["tcp:cubic?receiver=optimistic ahead_packets=10", "tcp:cubic"]


def test_a_spec_and_a_plan_without_them_do_not_mention_them():
    spec = qb.Experiment(flows=["tcp:cubic"])
    plan = plan_data(spec, drivers_of(spec), "virtual", "capture")
    assert "attacks" not in plan
    assert "receiver_env" not in plan["flows"][0]
    assert not {"attacks", "receiver"} & set(spec.to_json().replace('"', " ").split())


@pytest.mark.parametrize(
    ("attack", "sentence"),
    [
        ("soon reset on-path", "has 'soon' where a number must be"),
        ("2 rst on-path", "'2 rst on-path' is no attack; write SECONDS reset on-path"),
        ("2 reset", "'2 reset' is no reset; write"),
        ("2 too-big on-path", "is no too-big; write"),
        ("2 too-big 9000 on-path", "less than 1500"),
        ("2 reset on-path guesses=3", "reads sequence numbers; leave out guesses"),
        ("2 reset on-path tries=3", "reset has no 'tries=3'"),
        ("9 reset on-path", "at 9 s comes after the experiment's end at 4 s"),
        ("2 reset on-path flow=2", "strikes flow 2; flows are 0 to 1"),
        ("0.5 reset on-path flow=1", "finds no flow: the first starts at 1 s"),
    ],
)
def test_attacks_that_cannot_be_get_one_sentence(attack: str, sentence: str):
    flows = ["tcp:cubic", "tcp:cubic?start_s=1"]
    with pytest.raises(SpecError) as raised:
        qb.Experiment(flows=flows, duration_s=4, attacks=[attack], start_window_s=0)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("flows", [["tcp:cubic", qb.Flow("tcp:cubic", direction="reverse")]])
def test_attacks_need_data_that_go_one_way(flows: list):
    with pytest.raises(SpecError, match="attacks need the dumbbell, with forward flows alone"):
        qb.Experiment(flows=flows, attacks=["5 reset on-path"], start_window_s=0)


@pytest.fixture
def crafted(monkeypatch):
    """Imports a program of the guest."""
    monkeypatch.syspath_prepend(DRIVER.parent)
    return lambda name: importlib.import_module(f"{DRIVER.name}.{name}")


def test_guesses_are_what_scapy_would_have_crafted(crafted):
    attacker = crafted("attacker")
    words = {"on_path": True, "mtu": 600, "guesses": 1}
    data = IP(src="10.1.0.1", dst="10.2.0.1") / TCP(sport=9, dport=4001, seq=0xFFFF0001, ack=77)
    seen = IP(bytes(data / Raw(b"x" * 50)))
    (reset,) = attacker.forged({**words, "kind": "reset"}, seen)
    expected = IP(src=seen.dst, dst=seen.src) / TCP(sport=4001, dport=9, flags="R", seq=77)
    assert reset == bytes(expected)
    (too_big,) = attacker.forged({**words, "kind": "too-big"}, seen)
    found = IP(too_big)
    assert bytes(found[ICMP].payload)[24:28] == (0xFFFF0001).to_bytes(4, "big")
    checksum = found[ICMP].chksum
    del found[ICMP].chksum
    assert IP(bytes(found))[ICMP].chksum == checksum


def test_a_withholding_receiver_names_what_is_missing(crafted):
    policy = crafted("receiver").Withholding(100)
    for start, end in [(0, 10), (30, 40), (20, 30), (50, 60), (35, 45)]:
        policy.take(start, end)
    assert policy.answer() == (10, [(50, 60), (20, 45)])
    assert policy.received == 45
    policy.take(10, 20)
    assert policy.answer() == (45, [(50, 60)])


def test_an_optimistic_receiver_is_true_to_who_repeats(crafted):
    policy = crafted("receiver").Optimistic(3)
    for k in range(8):
        policy.take(10 * k, 10 * k + 10)
    assert policy.answer() == (110, [])
    policy.take(100, 110)
    assert policy.answer() == (140, []), "as if what is lost had arrived"
    policy.take(80, 90)
    assert policy.answer() == (110, [])
    assert policy.received == 90


@pytest.mark.guest
def test_a_crafted_receiver_that_withholds_nothing_is_like_the_kernels():
    crafted = run_of("tcp:cubic?receiver=withholds every_ms=1")
    kernels = run_of("tcp:cubic")
    of_both = [float(run.receiver_bytes[0]) for run in (crafted, kernels)]
    assert of_both[0] == pytest.approx(of_both[1], rel=0.02)
    assert crafted.qb.warnings == []


@pytest.mark.guest
def test_a_crafted_receiver_works_on_the_kernel_of_links_that_change():
    run = run_of("tcp:reno?receiver=withholds every_ms=30", outages="1:0.1", duration_s=2)
    assert run.qb.warnings == []
    assert float(run.goodput_mbps.mean()) > 2


@pytest.mark.guest
def test_a_transfer_to_a_crafted_receiver_ends():
    for receiver in ("withholds every_ms=5", "optimistic"):
        run = run_of(f"tcp:cubic?receiver={receiver}&bytes=300000")
        assert float(run.stop_s[0]) < 3
        assert run.qb.warnings == []
        assert float(run.receiver_bytes[0]) == 300_000


@pytest.mark.guest
def test_withheld_acks_come_as_often_as_asked():
    run = run_of("tcp:cubic?receiver=withholds every_ms=100")
    apart_s = np.diff(run.ack_time_s.values[run.ack_time_s.values > 1])
    assert apart_s.min() > 0.0999
    assert np.median(apart_s) == pytest.approx(0.1, abs=0.001)
    assert float(run.srtt_ms[0, 10:].max()) > 90, "of 40 without it"


@pytest.mark.guest
def test_an_optimistic_receiver_takes_more_than_its_share_from_cubic():
    run = run_of("tcp:cubic?receiver=optimistic", "tcp:cubic", duration_s=6)
    assert share_of_first(run) > 0.8
    fair = run_of("tcp:cubic?receiver=withholds every_ms=1", "tcp:cubic", duration_s=6)
    assert 0.2 < share_of_first(fair) < 0.8
    assert run.attrs["spec"] != fair.attrs["spec"]


@pytest.mark.guest
def test_misbehaviour_repeats_to_the_byte():
    spec = qb.Experiment(
        bottleneck={"rate_mbps": 10, "rtt_ms": 40},
        flows=["tcp:cubic?receiver=optimistic", "tcp:reno"],
        duration_s=2,
        attacks=["1.5 reset off-path guesses=5"],
    )
    first, second = spec.run(rerun=True).load(), spec.run(rerun=True).load()
    assert first.equals(second)


@pytest.mark.guest
def test_a_reset_on_path_ends_a_tcp_flow_and_no_quic_flow():
    run = run_of("tcp:cubic", "quinn:cubic", attacks=["2 reset on-path"], keep="pcap")
    assert str(run.ended_by.values[0]) == "reset"
    assert 2 < float(run.ended_s[0]) < 2.01
    assert run.qb.warnings == [
        "tcp:cubic ended at 2.0 s: the connection was reset with ECONNRESET (0x68): "
        "Connection reset by peer"
    ]
    assert len(frames(run, 3.5, flow=1)) > 300
    assert run.forged_flow.values.tolist() == [0, 1]
    assert run.forged_packets.values.tolist() == [1, 1]
    shown = run.qb.packets(2.0, flow=0)
    forged = shown[(shown.header == "RST") & (shown.direction == "to sender")]
    assert forged.time_s.tolist() == pytest.approx([float(run.forged_time_s[0])], abs=1e-3)


@pytest.mark.guest
def test_a_guessed_reset_ends_nothing_and_a_near_one_is_challenged():
    """RFC 5961, 3.2: in the window (64 kB), but not exact, so a challenge ACK."""
    run = run_of("tcp:cubic", attacks=["1 reset off-path", "2 reset off-path guesses=70000"])
    assert "ended_by" not in run
    assert run.forged_packets.values.tolist() == [1, 70_000]
    small = run.packet_time_s.values[run.packet_size_bytes.values < 100]
    challenges = small[small > 0.5]
    assert 1 <= len(challenges) <= 2
    assert challenges.min() > 2
    assert float(run.throughput_mbps[0, 25:].mean()) > 9.5


@pytest.mark.guest
def test_tcp_believes_a_forged_too_big_only_with_a_sequence_number_in_flight():
    guessed = run_of("tcp:cubic", attacks=["1 too-big 600 off-path"])
    assert frames(guessed, 1.5).max() == 1514
    read = run_of("tcp:cubic", attacks=["1 too-big 600 on-path"])
    assert frames(read, 0).max() == 1514
    assert frames(read, 1.5).max() == 614
    assert read.qb.summary().mean_frame_bytes[0] < 1200


@pytest.mark.guest
@pytest.mark.parametrize("flow", ["quinn:cubic", "quic-go:cubic"])
def test_quic_keeps_its_packet_size_and_connection(flow: str):
    attacks = ["1 reset off-path", "1 too-big 600 on-path", "1.5 too-big 600 off-path"]
    attacked, quiet = run_of(flow, attacks=attacks), run_of(flow)
    assert attacked.qb.warnings == quiet.qb.warnings == []
    assert frames(attacked, 2).mean() == pytest.approx(frames(quiet, 2).mean(), rel=0.01)


@pytest.mark.guest
def test_fragments_of_a_believed_too_big_are_conserved():
    run = run_of("kwik:newreno", attacks=["1 too-big 600 off-path"])
    assert frames(run, 1.5).max() <= 614
    assert int(run.balance_in_packets[0, 0]) > run.sizes["packet"], "later fragments have no ports"


@pytest.mark.guest
def test_a_program_that_an_attack_ends_ends_its_flow_alone():
    run = run_of("aioquic:reno", "tcp:reno", attacks=["1 too-big 600 off-path flow=0"])
    assert str(run.ended_by.values[0]) == "sender-program"
    assert "Message too long" in run.qb.warnings[0]
    assert len(frames(run, 3.5, flow=1)) > 300


@pytest.mark.guest
def test_an_attack_meets_the_queue_of_the_way_back():
    run = run_of("tcp:cubic", attacks=["2 reset on-path"], return_rate_mbps=1)
    assert str(run.ended_by.values[0]) == "reset"


@pytest.mark.guest
def test_an_attack_that_finds_no_flow_is_reported():
    run = run_of("tcp:cubic?stop_s=1", attacks=["2 reset on-path"])
    assert run.qb.warnings == [
        "the attack '2 reset on-path' struck no flow: no packet passed within a second"
    ]
    assert run.sizes["forged"] == 0


def test_a_run_that_lost_the_attackers_table_says_so(tmp_path):
    spec = qb.Experiment(flows=["tcp:cubic"], attacks="5 reset on-path")
    assert len(forged_variables(tmp_path, spec, 0)["forged_flow"][1]) == 0
    assert len(forged_warnings(tmp_path, spec.attacks)) == 1
