"""The aioquic driver over the loopback interface, in real time, as the guest would start it."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509

from qbkit import stacks
from qbkit.stacks import certificate
from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Stack
from qbkit.traces.run.telemetry import STATES

pytestmark = pytest.mark.slow  # real transfers: seconds each

MIB = 1 << 20
GUEST_ROOT = "/run/qb"


@dataclass
class Bench:
    """Starts programs of stacks here: /run/qb is a folder of symbolic links."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, stack: Stack, argv: list[str]) -> subprocess.Popen[str]:
        mounts = {**stack.mounts(), CERTIFICATE_MOUNT: certificate.folder()}
        for guest, host in mounts.items():
            link = Path(self.here(guest))
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(host)
        env = {name: self.here(value) for name, value in stack.env().items()}
        process = subprocess.Popen(
            [self.here(word) for word in argv],
            env={"PATH": os.environ["PATH"], **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def here(self, word: str) -> str:
        return word.replace(GUEST_ROOT, str(self.folder / "qb"))

    def receive(self, stack: Stack, address: str, options: Options) -> subprocess.Popen[str]:
        out = str(self.folder)
        argv = stack.recv_argv(address=address, out=out, options=options)
        process = self.start(stack, argv)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return process

    def send(
        self,
        stack: Stack,
        address: str,
        controller: str = "reno",
        duration_s: float | None = None,
        size_bytes: int | None = None,
        options: Options | None = None,
    ) -> subprocess.Popen[str]:
        argv = stack.send_argv(
            address=address,
            controller=controller,
            out=str(self.folder),
            duration_s=duration_s,
            size_bytes=size_bytes,
            options=options or {},
        )
        return self.start(stack, argv)

    @contextmanager
    def receiver(
        self, stack: Stack, options: Options | None = None
    ) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """A receiver on a free port; it must end well when told to."""
        address = f"127.0.0.1:{free_port()}"
        process = self.receive(stack, address, options or {})
        yield address, process
        end(process)

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open() as file:
            return list(csv.DictReader(file))


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    succeed(process)


def succeed(process: subprocess.Popen[str]) -> None:
    _, words = process.communicate(timeout=30)
    assert (process.returncode, words) == (0, "")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


@pytest.fixture
def aioquic() -> Stack:
    return stacks.get("aioquic")


@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_one_second_leaves_both_files(bench: Bench, aioquic: Stack, controller: str) -> None:
    assert controller in aioquic.controllers()
    with bench.receiver(aioquic) as (address, _):
        succeed(bench.send(aioquic, address, controller, duration_s=1.0))
    received = [(int(row["time_ns"]), int(row["bytes"])) for row in bench.rows("receiver.csv")]
    assert received == sorted(received)
    assert received[-1][1] > 1e5
    samples = bench.rows("sender.csv")
    assert len(samples) > 5
    times_ns = [int(row["time_ns"]) for row in samples]
    assert times_ns == sorted(times_ns)
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
    with bench.receiver(aioquic) as (address, _):
        succeed(bench.send(aioquic, address, size_bytes=size_bytes))
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) == size_bytes


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


def test_a_receiver_that_nobody_calls_ends(bench: Bench, aioquic: Stack) -> None:
    with bench.receiver(aioquic):
        pass
    assert [row["bytes"] for row in bench.rows("receiver.csv")] == ["0"]


def test_a_closed_port_is_named_at_once(bench: Bench, aioquic: Stack) -> None:
    address = f"127.0.0.1:{free_port()}"
    sender = bench.send(aioquic, address, duration_s=1.0)
    _, words = sender.communicate(timeout=30)
    assert words == f"cannot connect to {address}: nobody listens there\n"
    assert sender.returncode == 1


def test_silence_is_a_failure_after_ten_seconds(bench: Bench, aioquic: Stack) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        sender = bench.send(aioquic, address, duration_s=1.0)
        _, words = sender.communicate(timeout=30)
    assert words == f"cannot connect to {address} within 10 s\n"
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
