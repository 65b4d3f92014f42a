"""The TCP driver on the loopback, in real time: transfers, telemetry, ends and errors."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from qbkit import stacks
from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains import certificate
from qbkit.traces.run.telemetry import COLUMNS, STATES

pytestmark = pytest.mark.slow  # real transfers: seconds each

FLOWS = [("tcp", "cubic"), ("tcp", "reno")]


def program(name: str) -> str:
    """The driver's program on this machine."""
    stack = stacks.get(name)
    try:
        stack.build()
    except StackNotReady as error:
        pytest.skip(str(error))
    ((guest, host),) = stack.mounts().items()
    (path,) = stack.program()
    return path.replace(guest, str(host))


def free_address(name: str) -> str:
    kind = socket.SOCK_STREAM if name == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def receiver(
    name: str, address: str, out: Path, controller: str = "cubic"
) -> Iterator[subprocess.Popen[str]]:
    """A receiver that says it is ready, and ends well on SIGTERM."""
    keys = certificate.folder()
    words = ["--cert", str(keys / "cert.pem"), "--key", str(keys / "key.pem"), "--out", str(out)]
    words += ["--option", f"controller={controller}"]
    command = [program(name), "recv", "--listen", address, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def send(name: str, address: str, controller: str, out: Path, *words: str):
    command = [program(name), "send", "--connect", address, "--controller", controller]
    env = {**os.environ, **stacks.get(name).env()}
    return subprocess.run(
        [*command, "--out", str(out), *words], capture_output=True, text=True, timeout=30, env=env
    )


@pytest.mark.parametrize(("name", "controller"), FLOWS)
def test_bytes_arrive_exactly(name, controller, tmp_path):
    if (
        name == "tcp"
        and controller
        not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    ):
        pytest.skip(f"this machine's own kernel has no {controller}")
    address = free_address(name)
    with receiver(name, address, tmp_path):
        done = send(name, address, controller, tmp_path, "--bytes", "3456789")
        assert (done.returncode, done.stderr) == (0, "")
    rows = pd.read_csv(tmp_path / "receiver.csv")
    assert rows["bytes"].iloc[-1] == 3456789
    assert rows["bytes"].is_monotonic_increasing


@pytest.mark.parametrize("name", ["tcp"])
def test_a_flow_ends_at_its_time_and_writes_telemetry(name, tmp_path):
    address = free_address(name)
    with receiver(name, address, tmp_path):
        started = time.monotonic()
        done = send(name, address, "cubic", tmp_path, "--duration-s", "1")
        assert (done.returncode, done.stderr) == (0, "")
        assert 0.9 < time.monotonic() - started < 3
    rows = pd.read_csv(tmp_path / "sender.csv")
    assert set(rows.columns) <= {"time_ns", "state", *COLUMNS}
    assert set(rows["state"].dropna()) <= set(STATES)
    assert (rows["cwnd_bytes"] > 1000).all()
    assert rows["time_ns"].is_monotonic_increasing
    limits = json.loads((tmp_path / "limits.json").read_text())
    assert set(limits) == {"rwnd_limited_s", "sndbuf_limited_s"}


@pytest.mark.parametrize("name", ["tcp"])
def test_errors_are_one_sentence(name, tmp_path):
    address = free_address(name)
    unknown = send(name, address, "warp", tmp_path, "--bytes", "10")
    assert unknown.returncode == 1
    assert "no " in unknown.stderr
    assert "controller warp" in unknown.stderr
    assert unknown.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "words"), [("tcp", "refused")])
def test_nobody_listens(name, words, tmp_path):
    done = send(name, free_address(name), "reno", tmp_path, "--bytes", "10")
    assert done.returncode == 1
    assert done.stderr.startswith("cannot connect to 127.0.0.1:")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
