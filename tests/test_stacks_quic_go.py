"""The quic-go driver over the loopback interface, in real time, as the guest would start it.

Which controller runs is seen in a guest, where the machine's speed does not matter.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from loopback import Bench, built_with_go, end, free_port

import qbkit as qb
from qbkit.errors import StackNotReady
from qbkit.stacks import quic_go as module
from qbkit.stacks.base import Stack
from qbkit.traces.run.telemetry import COLUMNS, STATES

pytestmark = pytest.mark.slow  # real transfers: seconds each

MIB = 1 << 20


@pytest.fixture(scope="module")
def quic_go() -> Stack:
    return built_with_go("quic-go")


@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_one_second_leaves_both_files(bench: Bench, quic_go: Stack, controller: str) -> None:
    received_bytes, samples = bench.one_second(quic_go, controller)
    assert received_bytes > 1e6
    assert set(samples[0]) <= {"time_ns", "state", *COLUMNS}
    assert len(samples) > 20
    # quic-go 0.65.0 begins with 32 packets of 1280 bytes (internal/congestion/cubic_sender.go).
    windows = [int(row["cwnd_bytes"]) for row in samples if row["cwnd_bytes"] != "0"]
    assert windows[0] == 32 * 1280
    for row in samples:
        assert row["state"] in STATES
        if row["min_rtt_ms"]:
            assert float(row["min_rtt_ms"]) <= float(row["latest_rtt_ms"])
    for name in ("lost_packets", "spurious_losses"):
        counts = [int(row[name]) for row in samples]
        assert counts == sorted(counts)


@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, quic_go: Stack, size_bytes: int) -> None:
    assert bench.arrived_bytes(quic_go, size_bytes=size_bytes) == size_bytes


def growth_steps(run: xr.Dataset) -> np.ndarray:
    """Bytes by which the window grew from sample to sample after the first loss, without a loss."""
    step = run[["sample_cwnd_bytes", "sample_lost_packets", "sample_spurious_losses"]].diff(
        "sample"
    )
    no_loss = (step.sample_lost_packets == 0) & (step.sample_spurious_losses == 0)
    is_growth = (run.sample_lost_packets[1:] > 0) & no_loss & (step.sample_cwnd_bytes > 0)
    return step.sample_cwnd_bytes.values[is_growth]


def whole_packets(steps: np.ndarray) -> float:
    """The share of steps that are multiples of one packet size, for the size that fits best."""
    return max(float(np.mean(steps % size == 0)) for size in range(1200, 1501))


@pytest.mark.guest
@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_the_controller_is_the_one_asked_for(tmp_path: Path, controller: str) -> None:
    """Reno's window grows by whole packets; CUBIC's follows a curve (RFC 9438, 4.2)."""
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=30, buffer_bdp=1)
    flow = qb.Flow(f"quic-go:{controller}")
    run = qb.Experiment(bottleneck=link, flows=[flow], duration_s=10, seed=1).run(
        out=tmp_path / "run.nc"
    )
    steps = growth_steps(run)
    assert len(steps) > 50
    if controller == "reno":
        assert whole_packets(steps) > 0.8
    else:
        assert whole_packets(steps) < 0.5


def test_sigterm_ends_sender_and_receiver_in_mid_flow(bench: Bench, quic_go: Stack) -> None:
    with bench.receiver(quic_go, {"qlog": True}) as (address, _):
        sender = bench.send(quic_go, address, duration_s=60.0, options={"qlog": True})
        time.sleep(1.0)
        end(sender)
        time.sleep(1.0)  # The receiver learns of it, and closes its log.
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > 0
    assert len(bench.rows("sender.csv")) > 5
    for end_point in ("client", "server"):
        (path,) = bench.folder.glob(f"*_{end_point}.sqlog")
        head, *events = [json.loads(record) for record in path.read_text().split("\x1e")[1:]]
        assert head["trace"]["vantage_point"]["type"] == end_point
        assert {"transport:packet_sent", "transport:packet_received"} <= {
            event["name"] for event in events
        }


def test_a_receiver_without_a_sender_ends(bench: Bench, quic_go: Stack) -> None:
    with bench.receiver(quic_go):
        pass
    assert [row["bytes"] for row in bench.rows("receiver.csv")] == ["0"]


def test_sigterm_ends_a_sender_that_still_connects(bench: Bench, quic_go: Stack) -> None:
    bench.end_while_connecting(quic_go)


def test_an_unknown_controller_is_one_sentence(bench: Bench, quic_go: Stack) -> None:
    address = f"127.0.0.1:{free_port()}"
    sender = bench.send(quic_go, address, "bbr", duration_s=1.0)
    _, words = sender.communicate(timeout=30)
    assert words == "quic-go has no controller bbr; it has cubic, reno\n"
    assert sender.returncode == 1


def test_the_choice_is_patched_in_two_places(tmp_path: Path) -> None:
    file = tmp_path / "handler.go"
    file.write_text(f"import (\n)\nf({module.HARD_CODED}\n)\ng({module.HARD_CODED}\n)\n")
    module._make_choosable(file)
    text = file.read_text()
    assert text.count(module.BY_ENVIRONMENT) == 2
    assert text.startswith('import (\n\t"os"\n')
    assert module.HARD_CODED not in text


def test_another_version_of_quic_go_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "handler.go"
    file.write_text("import (\n)\n" + 3 * f"f({module.HARD_CODED}\n)\n")
    with pytest.raises(StackNotReady, match="does not choose Reno where"):
        module._make_choosable(file)
    assert module.BY_ENVIRONMENT not in file.read_text()


def test_missing_tools_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quic_go: Stack
) -> None:
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    assert quic_go.status().reason == "qbkit stacks build quic-go"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install Go" in quic_go.status().reason
    with pytest.raises(StackNotReady, match="go is missing to build quic-go"):
        quic_go.build()
    assert not list(tmp_path.iterdir())  # mounts() and status() build nothing
