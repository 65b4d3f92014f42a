"""Connections that end before their flow does: who closed them, when, and why (real guests)."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from test_failures import BAD_WORDS, Bad

import qbkit as qb
from qbkit import stacks
from qbkit.cli import main
from qbkit.execution.sweeps import run_sweep
from qbkit.metrics import summary
from qbkit.spec import Bottleneck, Experiment
from qbkit.spec.sweep import Sweep
from qbkit.stacks import Stack
from qbkit.stacks.base import CERTIFICATE_MOUNT, Options
from qbkit.store.cube import figures_of
from qbkit.traces.run.early_end import TRANSPORT, code_name

pytestmark = pytest.mark.guest
BAD_RECEIVER = "/run/qb/stacks/closing/closing.py"
DRIVER_WORDS = ["-m", "aioquic_flow"]
WITHOUT_A_REASON = ("quiche-0.7", "s2n-quic")
"""Their interfaces do not hand out the reason that a peer gives."""
SENDERS = [
    *("quinn:cubic", "noq:cubic", "quiche:cubic", "s2n-quic:cubic", "tquic:cubic"),
    *("msquic:cubic", "quic-go:cubic", "x-net-quic:reno"),
    *(
        "openssl:newreno",
        "lsquic:cubic",
        "picoquic:cubic",
        "aioquic:cubic",
        "kwik:newreno",
        "qbkit:reno",
    ),
]
STILL_WAIT = ("lsquic:cubic", "aioquic:cubic", "qbkit:reno")
"""They still wait for a receiver that fell silent after 200 s; the run says that they stalled."""
DEEP = Bottleneck(rate_mbps=50, rtt_ms=250)
"""Where the losses at the end of quinn's slow start open more gaps than its receiver stores."""


@pytest.fixture
def closing(monkeypatch):
    """A stack whose receiver closes its connection 1.5 s after it listens."""
    known = {**stacks.registry._registered, "bad": Bad()}
    monkeypatch.setattr(stacks.registry, "_registered", known)
    monkeypatch.setattr(Bad, "program", lambda _: [*BAD_WORDS, "closes"])
    return "bad:closes"


def silence_receiver(monkeypatch: pytest.MonkeyPatch, name: str, after_s: int) -> None:
    """A stack's receiver stops, and says nothing more, so long after it started."""
    real = stacks.get(name)
    recv_argv, script = real.recv_argv, f'"$@" & sleep {after_s}; kill -STOP $!; wait'
    monkeypatch.setattr(
        real, "recv_argv", lambda **how: ["/bin/sh", "-c", script, "sh", *recv_argv(**how)]
    )


def end_of(run: xr.Dataset, flow: int = 0) -> dict[str, object]:
    """How a flow ended, without when."""
    return {n: run[f"ended_{n}"].values[flow].item() for n in ("by", "code", "name", "reason")}


@pytest.mark.parametrize(
    ("error", "name"),
    {
        "transport 0x0": "NO_ERROR",
        "transport 0x10": "NO_VIABLE_PATH",
        "transport 0x100": "CRYPTO_ERROR",
        "transport 0x1FF": "CRYPTO_ERROR",
        "transport 0x200": "",
        "http3 0x10C": "H3_REQUEST_CANCELLED",
        "http3 0x110": "H3_VERSION_FALLBACK",
        "application 0x1": "application error",
        " 0x68": "",
    }.items(),
)
def test_codes_have_the_names_of_the_standards(error: str, name: str):
    kind, code = error.split(" ")
    assert code_name(kind, int(code, 16)) == name


def test_a_flow_ends_alone_and_the_run_is_stored_up_to_there(closing):
    run = Experiment(flows=[closing, "tcp:cubic"], duration_s=4).run(engine="virtual")
    # The end that closed counts, not the one that saw a timeout a little later.
    said = {"by": "receiver", "code": 0xA, "name": TRANSPORT[0xA], "reason": 'no "way"'}
    assert end_of(run) == said
    at_s = float(run.ended_s[0])
    assert 0 < at_s <= 1.5
    assert float(run.stop_s[0]) == at_s
    assert math.isnan(float(run.ended_s[1]))
    assert run.ended_by.values[1] == ""
    sentence = f"bad:closes ended at {at_s:.1f} s: the receiver closed the connection with "
    assert run.qb.warnings == [sentence + 'PROTOCOL_VIOLATION (0xa): no "way"']
    late = (run.packet_flow.values == 1) & (run.packet_time_s.values > 3.9)
    assert late.any(), "the other flow goes on"
    assert np.isnan(summary(run).ended_s[1])


def test_a_run_without_an_early_end_has_no_such_columns(own_runs):
    run = Experiment(flows=["tcp:cubic"], duration_s=1).run(engine="virtual")
    assert not [name for name in run.variables if str(name).startswith("ended_")]
    assert "ended_s" not in summary(run)


def test_sweeps_count_early_ends_apart_from_failures(tmp_path: Path):
    base = {"bottleneck": {"rate_mbps": 50, "rtt_ms": 250}, "flows": ["tcp:reno"], "duration_s": 5}
    swept = {"flows.0": ["quinn:cubic", "tcp:cubic"], "seed": [1, 2]}
    sweep = Sweep(name="ends", base=base, sweep=swept)
    done = run_sweep(sweep, tmp_path / "out", engine="virtual")
    assert (done.runs, done.ended_early, done.failures) == (4, 1, [])
    early = np.isfinite(done.cube.ended_s.values[..., 0])
    assert early.tolist() == [[True, False], [False, False]]
    kept = figures_of(done.cube)
    assert sum("ended_s" in figures for figures in kept.values()) == 1


def test_a_study_warns_of_trials_that_ended_early():
    sentence = "in 2 of 4 runs a connection ended before its flow did, first with seed 1: noq:cubic"
    link = Bottleneck(rate_mbps=100, rtt_ms=50, buffer_bdp=5)
    with pytest.warns(UserWarning, match=sentence):
        qb.conformance_study("noq:cubic", "tcp:cubic", bottleneck=link, duration_s=4, seeds=2)


@pytest.mark.parametrize("stack", ["quinn", "noq"])
def test_a_receiver_with_too_many_gaps_is_reported(stack: str):
    run = Experiment(bottleneck=DEEP, flows=[f"{stack}:cubic"], duration_s=20).run(keep="pcap")
    assert end_of(run) == {
        **{"by": "receiver", "code": 0x1, "name": "INTERNAL_ERROR"},
        "reason": "too many gaps in stream buffer",
    }
    assert {file.name for file in run.qb.kept_folder.iterdir()} == {"before.pcap", "after.pcap"}
    assert float(run.packet_time_s.max()) == pytest.approx(float(run.ended_s[0]), abs=1.0)


def test_the_command_says_who_ended_what_and_when(capsys, monkeypatch):
    network = ["--rate-mbps", "50", "--rtt-ms", "250", "--duration-s", "20"]
    monkeypatch.setattr(sys, "argv", ["qbkit", "run", "quinn:cubic", *network, "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    printed = json.loads(capsys.readouterr().out)
    assert printed["warnings"] == [
        "quinn:cubic ended at 3.5 s: the receiver closed the connection with INTERNAL_ERROR (0x1): "
        "too many gaps in stream buffer"
    ]
    assert printed["flows"][0]["ended_s"] == pytest.approx(3.5, abs=0.1)


@pytest.mark.parametrize("flow", ["neqo:cubic", "jdk:cubic"])
def test_an_upload_by_http3_reports_what_its_receiver_closed_it_for(flow: str):
    link = Bottleneck(rate_mbps=100, rtt_ms=100, buffer_bdp=5)
    run = Experiment(bottleneck=link, flows=[flow], duration_s=6).run(engine="virtual")
    assert end_of(run) == {
        **{"by": "receiver", "code": 0x1, "name": "INTERNAL_ERROR"},
        "reason": "too many gaps in received data",
    }


def test_ngtcp2s_own_log_says_who_closed():
    link = Bottleneck(rate_mbps=144, rtt_ms=600)
    flow = "ngtcp2-0.12:cubic?bytes=200000000"
    run = Experiment(bottleneck=link, flows=[flow], duration_s=12).run(engine="virtual")
    said = {"by": "receiver", "code": 0xA, "name": "PROTOCOL_VIOLATION", "reason": ""}
    assert end_of(run) == said
    assert float(run.stop_s[0]) == float(run.ended_s[0])


def test_a_reset_of_tcp_is_reported(monkeypatch):
    class Resets(type(stacks.get("tcp"))):
        def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
            return ["/usr/bin/python3", "-I", "/run/qb/stacks/bad/resets.py", "--listen", address]

        def mounts(self) -> dict[str, Path]:
            return {**super().mounts(), "/run/qb/stacks/bad": Path(__file__).parent / "bad"}

    monkeypatch.setattr(stacks.registry, "_registered", {"tcp": Resets()})
    run = Experiment(flows=["tcp:cubic"], duration_s=3).run(engine="virtual")
    assert 1.0 < float(run.ended_s[0] - run.start_s[0]) < 1.2
    assert end_of(run) == {
        **{"by": "reset", "code": 104, "name": "ECONNRESET", "reason": "Connection reset by peer"},
    }


def with_bad_receiver(name: str, how: str) -> Stack:
    """A stack as a sender. Its receiver is aioquic, which "closes" or "falls-silent" after 1 s."""
    real, other = stacks.get(name), stacks.get("aioquic")
    python = other.program()[: -len(DRIVER_WORDS)]

    class Pair(type(real)):
        def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
            keys = [f"{CERTIFICATE_MOUNT}/{real.certificate}{word}.pem" for word in ("cert", "key")]
            ours = [*python, BAD_RECEIVER, how, "recv", "--listen", address]
            return [*ours, "--cert", keys[0], "--key", keys[1], "--out", out]

        def mounts(self) -> dict[str, Path]:
            closing = Path(__file__).parent / "bad"
            return {**real.mounts(), **other.mounts(), "/run/qb/stacks/closing": closing}

        def env(self) -> dict[str, str]:
            return {**other.env(), **real.env()}

    return Pair()


@pytest.mark.parametrize("flow", SENDERS)
def test_each_sender_reports_who_closed_with_which_code(flow: str, monkeypatch):
    name = flow.partition(":")[0]
    known = {**stacks.registry._registered, name: with_bad_receiver(name, "closes")}
    monkeypatch.setattr(stacks.registry, "_registered", known)
    run = Experiment(flows=[flow, "tcp:cubic"], duration_s=3).run(engine="virtual")
    assert 1.0 < float(run.ended_s[0] - run.start_s[0]) < 1.6
    who = end_of(run)
    assert (who["code"], who["name"]) == (0xA, "PROTOCOL_VIOLATION")
    assert who["by"] == "receiver"
    assert "closed by the test" in who["reason"] or name in WITHOUT_A_REASON
    assert (run.packet_time_s.values[run.packet_flow.values == 1] > 2.9).any()


@pytest.mark.parametrize("flow", [flow for flow in SENDERS if flow not in STILL_WAIT])
def test_each_sender_reports_a_receiver_that_fell_silent(flow: str, monkeypatch):
    name = flow.partition(":")[0]
    known = {**stacks.registry._registered, name: with_bad_receiver(name, "falls-silent")}
    monkeypatch.setattr(stacks.registry, "_registered", known)
    run = Experiment(flows=[flow], duration_s=200).run(engine="virtual")
    assert end_of(run)["by"] == "timeout"
    assert 10 < float(run.ended_s[0]) < 150
