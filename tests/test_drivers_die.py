"""Senders and receivers that are killed in the guest: their flow ends, and no other."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
from test_ends import end_of, silence_receiver

from qbkit import stacks
from qbkit.spec import Experiment, Flow
from qbkit.stacks.base import ServingStack
from qbkit.testbed.plan import FIRST_PORT
from qbkit.traces.run import early_end

pytestmark = pytest.mark.guest
KILLER = ["/usr/bin/python3", "-I", "/run/qb/stacks/killed/killed.py"]
AFTER_S = 1.4
"""From when a program starts; one that listens starts about 1 s before the flow."""
PROGRAMS = {("sender", 0): "send_argv", ("receiver", 0): "recv_argv"} | {
    ("sender", 1): "serve_argv",
    ("receiver", 1): "fetch_argv",
}
STACKS = [s.name for s in stacks.all_stacks() if not s.source.startswith("external")]
WITH_APPS = [name for name in STACKS if name != "tcp" and "requests" in stacks.get(name).apps]
"""Those whose driver with an application is the killed one; tcp's is another program."""


ROLES = ("sender", "receiver")


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., xr.Dataset]:
    """A run with a flow for each of some roles, whose end in that role gets a signal after
    `AFTER_S`, beside a flow of TCP."""

    def run(name: str, *roles: str, number: int = 9, **flow: object) -> xr.Dataset:
        real = stacks.get(name)
        kind, bad = type(real), Path(__file__).parent / "bad"
        mounts = kind.mounts
        for port, role in enumerate(roles, FIRST_PORT):
            kill(kind, PROGRAMS[role, isinstance(real, ServingStack)], port, number)
        monkeypatch.setattr(kind, "mounts", lambda s: {**mounts(s), "/run/qb/stacks/killed": bad})
        other = "quinn:cubic" if name == "tcp" else "tcp:cubic"
        mine = Flow(f"{name}:{real.controllers()[0]}", **flow)
        flows = [*len(roles) * [mine], other]
        return Experiment(flows=flows, duration_s=2.5).run(engine="virtual")

    def kill(kind: type, argv_name: str, port: int, number: int) -> None:
        argv = getattr(kind, argv_name)

        def killing(stack: stacks.Stack, *given: object, **named: object) -> list[str]:
            address = str(named["address"] if named else given[0].address)
            words = argv(stack, *given, **named)
            mine = address.endswith(f":{port}")
            return [*KILLER, str(AFTER_S), str(number), *words] if mine else words

        # Of the class, so that the driver with an application above it is killed, too.
        monkeypatch.setattr(kind, argv_name, killing)

    return run


@pytest.mark.parametrize("name", STACKS)
def test_a_program_that_is_killed_ends_its_flow_alone(killed, name: str):
    run = killed(name, *ROLES)
    for flow, role in enumerate(ROLES):
        at_s = float(run.ended_s[flow])
        assert 0.2 < at_s < 2
        end = end_of(run, flow)
        assert (end["by"], end["code"], end["name"]) == (f"{role}-program", 9, "SIGKILL")
        assert float(run.stop_s[flow]) == at_s
        said = f"{run.label.values[flow]} ended at {at_s:.1f} s: the {role}"
        assert run.qb.warnings[flow].startswith(said)
    assert math.isnan(float(run.ended_s[2]))
    assert run.packet_time_s.values[run.packet_flow.values == 2].max() > 2.4


@pytest.mark.parametrize("name", WITH_APPS)
def test_one_whose_application_thinks_meanwhile_ends_it_too(killed, name: str):
    run = killed(name, *ROLES, app="requests kb=20 think_s=0.4")
    for flow, role in enumerate(ROLES):
        assert (end_of(run, flow)["by"], end_of(run, flow)["code"]) == (f"{role}-program", 9)
        assert 0.2 < float(run.ended_s[flow]) < 2
        assert (run.object_flow.values == flow).sum() > 1


@pytest.mark.parametrize(("number", "name"), [(4, "SIGILL"), (6, "SIGABRT"), (15, "status 0")])
@pytest.mark.parametrize("stack", ["tcp", "quinn", "picoquic", "quic-go", "aioquic"])
def test_a_receiver_that_ends_in_any_way_ends_its_flow(killed, stack: str, number: int, name: str):
    end = end_of(killed(stack, "receiver", number=number))
    if stack == "quic-go" and number != 15:  # Go catches the signal, and ends with a stack trace
        name = "status 2"
    assert (end["by"], end["name"]) == ("receiver-program", name)


def test_what_dies_after_a_complete_transfer_did_not_end_it(killed):
    run = killed("tcp", "receiver", bytes=30_000)
    assert "ended_s" not in run
    assert not run.qb.warnings
    assert float(run.stop_s[0]) < AFTER_S - 1


def test_quiche_0_7_says_what_it_knows_of_its_peer(killed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(early_end, "ROLES", ("sender",))  # as if the receiver had no report
    end = end_of(killed("quiche-0.7", "receiver", number=15))
    assert end["by"] == "unknown"
    assert end["reason"].startswith("the receiver closed it, and this version of quiche keeps")


def test_quiche_0_7_reports_a_receiver_that_fell_silent(monkeypatch: pytest.MonkeyPatch):
    silence_receiver(monkeypatch, "quiche-0.7", after_s=2)
    run = Experiment(flows=["quiche-0.7:cubic"], duration_s=90).run(engine="virtual")
    assert end_of(run)["by"] == "timeout"
    assert 30 < float(run.ended_s[0]) < 80
