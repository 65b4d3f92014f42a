"""x-net-quic: command line, tables, qlog and end of its driver, over the loopback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from loopback import Bench, built_with_go, succeed

import qbkit as qb
from qbkit.errors import StackNotReady
from qbkit.stacks.base import Stack
from qbkit.traces.run.telemetry import COLUMNS, STATES

pytestmark = pytest.mark.slow  # real transfers: seconds each

MIB = 1 << 20


@pytest.fixture(scope="module")
def stack() -> Stack:
    return built_with_go("x-net-quic")


def test_one_second_leaves_both_tables(bench: Bench, stack: Stack):
    received_bytes, samples = bench.one_second(stack, "reno")
    assert received_bytes > 1e6
    assert set(samples[0]) <= {"time_ns", "state", *COLUMNS}
    assert len(samples) > 20
    assert int(samples[0]["cwnd_bytes"]) >= 10 * 1200  # RFC 9002, 7.2
    for row in samples:
        assert row["state"] in STATES
        assert float(row["min_rtt_ms"]) <= float(row["latest_rtt_ms"])


@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, stack: Stack, size_bytes: int):
    assert bench.arrived_bytes(stack, size_bytes=size_bytes) == size_bytes


def test_sigterm_ends_sender_and_receiver_in_mid_flow(bench: Bench, stack: Stack):
    bench.end_in_mid_flow(stack)
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > 0
    assert len(bench.rows("sender.csv")) > 5


def test_its_qlog_names_each_packet(bench: Bench, stack: Stack):
    with bench.receiver(stack) as (address, _):
        succeed(bench.send(stack, address, size_bytes=MIB, options={"qlog": True}))
    (path,) = bench.folder.glob("*_client.sqlog")
    log = qb.read_qlog(path)
    assert log.sizes["sent"] > MIB / 1200
    assert (log.sent_size_bytes <= 1200).all()


def test_sigterm_ends_a_sender_that_still_connects(bench: Bench, stack: Stack):
    bench.end_while_connecting(stack)


def test_what_is_wrong_is_one_sentence(bench: Bench, stack: Stack):
    for controller, options, sentence in (
        ("cubic", {}, "x-net-quic has no controller cubic; it has reno"),
        ("reno", {"pmtud": 1}, "unknown option pmtud=1; supported: qlog=true, qlog=false"),
    ):
        bench.refuse(stack, controller, sentence, options)


def test_without_go_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: Stack
):
    assert re.fullmatch(r"0\.62\.0, driver [0-9a-f]{12}", stack.version())
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    assert stack.status().reason == "qbkit stacks build x-net-quic"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install Go 1.26 or newer, then: qbkit stacks build" in stack.status().reason
    with pytest.raises(StackNotReady, match=r"install Go 1\.26 or newer"):
        stack.build()
