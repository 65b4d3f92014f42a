"""jdk: tables and end of its driver, over the loopback, and the fields of the JDK that it reads."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from loopback import Bench, end, free_port, silence, succeed

from qbkit import stacks
from qbkit.errors import StackNotReady
from qbkit.stacks.base import Stack
from qbkit.traces.run.telemetry import COLUMNS, STATES

MIB = 1 << 20


@pytest.fixture(scope="module")
def stack() -> Stack:
    found = stacks.get("jdk")
    try:
        found.build()
    except StackNotReady as error:
        pytest.skip(str(error))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_a_duration_leaves_both_tables(bench: Bench, stack: Stack, controller: str):
    with bench.receiver(stack) as (address, _):
        # Java takes a second to connect, or some on a busy machine.
        succeed(bench.send(stack, address, controller, duration_s=5.0))
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > MIB
    samples = bench.rows("sender.csv")
    assert set(samples[0]) <= {"time_ns", "state", *COLUMNS}
    assert len(samples) > 5
    assert int(samples[0]["cwnd_bytes"]) >= 14720  # RFC 9002, 7.2
    for row in samples:
        assert row["state"] in STATES
        assert 0 < float(row["min_rtt_ms"]) <= float(row["latest_rtt_ms"])


@pytest.mark.slow
@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, stack: Stack, size_bytes: int):
    with bench.receiver(stack) as (address, _):
        succeed(bench.send(stack, address, size_bytes=size_bytes))
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) == size_bytes


@pytest.mark.slow
def test_sigterm_ends_sender_and_receiver_in_mid_flow(bench: Bench, stack: Stack):
    with bench.receiver(stack) as (address, _):
        sender = bench.send(stack, address, duration_s=60.0)
        with pytest.raises(TimeoutExpired):
            sender.wait(4)
        end(sender)
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > 0
    assert len(bench.rows("sender.csv")) > 5


@pytest.mark.slow
def test_silence_is_a_failure_after_ten_seconds(bench: Bench, stack: Stack):
    with silence() as address:
        sender = bench.send(stack, address, size_bytes=1)
        _, words = sender.communicate(timeout=60)
    assert (sender.returncode, words) == (1, f"cannot connect to {address} within 10 s\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("controller", "options", "sentence"),
    [
        ("bbr", {}, "jdk has no controller bbr; it has cubic, reno"),
        ("reno", {"qlog": True}, "unknown option qlog=true; jdk has none"),
    ],
)
def test_what_is_wrong_is_one_sentence(bench, stack, controller, options, sentence):
    address = f"127.0.0.1:{free_port()}"
    sender = bench.send(stack, address, controller, duration_s=1.0, options=options)
    _, words = sender.communicate(timeout=30)
    assert (sender.returncode, words) == (1, f"{sentence}\n")


def test_it_is_built_with_the_package_that_it_fetches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    jdk = stacks.get("jdk")
    assert re.search(
        r", driver [0-9a-f]{12}, preload [0-9a-f]{12}, receiver quic-go 0\.65\.0, driver",
        jdk.version(),
    )
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    assert jdk.version().startswith("not fetched, driver ")
    assert jdk.status().reason == "its receiver is quic-go: qbkit stacks build quic-go"
