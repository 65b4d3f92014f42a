"""The aioquic driver over the loopback interface, in real time, as the guest would start it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from cryptography import x509
from loopback import Bench, end, free_port, succeed

from qbkit import stacks
from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains import certificate
from qbkit.traces.run.telemetry import STATES

pytestmark = pytest.mark.slow  # real transfers: seconds each

MIB = 1 << 20


@pytest.fixture
def aioquic() -> Stack:
    return stacks.get("aioquic")


@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_one_second_leaves_both_files(bench: Bench, aioquic: Stack, controller: str) -> None:
    received_bytes, samples = bench.one_second(aioquic, controller)
    assert received_bytes > 1e5
    assert len(samples) > 5
    times_ns = [int(row["time_ns"]) for row in samples]
    # One each 10 ms at most, and one at the end.
    assert len(samples) <= (times_ns[-1] - times_ns[0]) / 10e6 + 3
    for row in samples:
        assert row["state"] in STATES
        assert int(row["cwnd_bytes"]) >= 2 * 1452  # RFC 9002, 7.2: the least window
        assert float(row["min_rtt_ms"]) <= float(row["srtt_ms"])
    # RFC 9002, 7.2: it begins with ten packets
    assert int(samples[0]["cwnd_bytes"]) >= 10 * 1452


@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, aioquic: Stack, size_bytes: int) -> None:
    assert bench.arrived_bytes(aioquic, size_bytes=size_bytes) == size_bytes


def test_sigterm_ends_sender_and_receiver_in_mid_flow(bench: Bench, aioquic: Stack) -> None:
    with bench.receiver(aioquic, {"qlog": True}) as (address, _):
        sender = bench.send(aioquic, address, duration_s=60.0, options={"qlog": True})
        time.sleep(4.0)  # Python starts slowly on a busy machine
        end(sender)
        time.sleep(1.0)  # The receiver learns of it, and closes its log.
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > 0
    for name in ("client.sqlog", "server.sqlog"):
        text = (bench.folder / name).read_text()
        head, *events = [json.loads(record) for record in text.split("\x1e")[1:]]
        assert head["qlog_format"] == "JSON-SEQ"
        assert {"transport:packet_sent", "transport:packet_received"} <= {
            event["name"] for event in events
        }
        received = [e for e in events if e["name"] == "transport:packet_received"]
        assert all(event["data"]["frames"] for event in received)
        assert [e["time"] for e in events] == sorted(e["time"] for e in events)


def test_a_receiver_without_a_sender_ends(bench: Bench, aioquic: Stack) -> None:
    with bench.receiver(aioquic):
        pass
    assert [row["bytes"] for row in bench.rows("receiver.csv")] == ["0"]


def test_a_closed_port_is_named_at_once(bench: Bench, aioquic: Stack) -> None:
    address = f"127.0.0.1:{free_port()}"
    sender = bench.send(aioquic, address, duration_s=1.0)
    _, words = sender.communicate(timeout=30)
    assert words == f"cannot connect to {address}: nobody listens there\n"
    assert sender.returncode == 1


def test_an_unknown_controller_is_one_sentence(bench: Bench, aioquic: Stack) -> None:
    sender = bench.send(aioquic, "127.0.0.1:9", "bbr", duration_s=1.0)
    _, words = sender.communicate(timeout=30)
    known = ", ".join(aioquic.controllers())
    assert words == f"aioquic has no congestion controller bbr; it has {known}\n"
    assert sender.returncode == 1


@pytest.mark.parametrize("sender_name", ["aioquic", "quic-go"])
def test_it_talks_to_quic_go(bench: Bench, aioquic: Stack, sender_name: str) -> None:
    quic_go = next((stack for stack in stacks.all_stacks() if stack.name == "quic-go"), None)
    if quic_go is None or not quic_go.status().ready:
        pytest.skip("quic-go cannot be run here: " + (quic_go.status().reason if quic_go else ""))
    quic_go.build()
    pair = {"aioquic": (aioquic, quic_go), "quic-go": (quic_go, aioquic)}
    sender, receiver = pair[sender_name]
    with bench.receiver(receiver) as (address, _):
        succeed(bench.send(sender, address, size_bytes=2 * MIB))
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) == 2 * MIB


def test_the_certificate_is_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for name in ("one", "two"):
        monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / name))
        folder = certificate.folder()
        made.append([(folder / part).read_bytes() for part in ("cert.pem", "key.pem")])
    assert made[0] == made[1]
    parsed = x509.load_pem_x509_certificate(made[0][0])
    parsed.verify_directly_issued_by(parsed)
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["qbkit"]
    assert parsed.not_valid_before_utc.year == 2020
    assert parsed.not_valid_after_utc.year == 2120
