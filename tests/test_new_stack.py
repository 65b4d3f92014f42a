"""`qbkit new-stack` and `qbkit check-stack`: from nothing to a stack that keeps its contract."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from qbkit import stacks
from qbkit.cli.group import group
from qbkit.errors import SpecError
from qbkit.stacks import registry
from qbkit.stacks.base import Transfer
from qbkit.stacks.external import configured
from qbkit.stacks.external.scaffold import EXAMPLE
from qbkit.studies import contract


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a stacks.toml and stacks of its own."""
    stacks.all_stacks()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setenv("QBKIT_STACKS", str(tmp_path / "config/stacks.toml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def qbkit(*words: str) -> str:
    done = CliRunner().invoke(group, words, catch_exceptions=False, standalone_mode=False)
    return done.stdout


def test_a_new_table_is_a_stack(here: Path):
    said = qbkit("new-stack", "mine")
    assert "qbkit check-stack mine" in said
    configured.register_all()
    mine = stacks.get("mine")
    assert mine.status().ready
    assert mine.controllers() == ("cubic", "reno", "bbr")
    who = {"address": "10.2.0.1:4001", "controller": "bbr", "out": "/out", "options": {}}
    words = mine.send_argv(Transfer(**who, duration_s=None, size_bytes=7))
    assert words[-5:] == ["connect", "10.2.0.1", "4001", "bbr", "7"]
    with pytest.raises(SpecError, match="there is a stack 'mine' already"):
        qbkit("new-stack", "mine")
    qbkit("new-stack", "other", "--program", str(here / "mine/flow.py"))
    configured.register_all()
    assert stacks.get("other").status().ready
    assert (here / "config/stacks.toml").read_text().count("[stack.") == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["Mine"], "lower-case letters, digits, - and _"),
        (["quic-go"], "there is a stack 'quic-go' already; choose another name"),
        (["mine", "--program", "/nowhere/x"], "there is no program /nowhere/x; give the path"),
        (["mine", "--program", "/etc/passwd"], "there is no program /etc/passwd; give the path"),
        (["there"], "there exists already; choose another folder with --folder"),
        (["9mine", "--python"], "begins with a digit, which a Python package cannot"),
    ],
)
def test_mistakes_get_one_sentence(here: Path, words: list[str], sentence: str):
    (here / "there").mkdir()
    with pytest.raises(SpecError, match=sentence):
        qbkit("new-stack", *words)
    assert not (here / "config").exists()


def packaged(here: Path, monkeypatch: pytest.MonkeyPatch) -> stacks.Stack:
    """The stack of a new package, as its installation would make it known."""
    qbkit("new-stack", "my-stack", "--python")
    project = (here / "my-stack/pyproject.toml").read_text()
    assert 'my-stack = "my_stack:NewStack"' in project
    info = here / "my-stack/my_stack-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-stack\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[qbkit.stacks]\nmy-stack = my_stack:NewStack\n")
    monkeypatch.syspath_prepend(str(here / "my-stack"))
    importlib.invalidate_caches()
    assert "my-stack" in {d.metadata["Name"] for d in distributions()}
    registry._load_plugins.cache_clear()
    monkeypatch.delitem(sys.modules, "my_stack", raising=False)
    return stacks.get("my-stack")


def test_a_new_package_is_a_stack(here: Path, monkeypatch: pytest.MonkeyPatch):
    mine = packaged(here, monkeypatch)
    assert mine.status().ready
    mine.check("cubic", {"max_segment_bytes": 1000}, None)
    assert mine.mounts()["/run/qb/stacks/my-stack"] == here / "my-stack/my_stack"


@pytest.mark.guest
def test_the_examples_keep_the_contract(here: Path, monkeypatch: pytest.MonkeyPatch):
    qbkit("new-stack", "mine")
    configured.register_all()
    report = json.loads(qbkit("check-stack", "mine", "--json"))
    assert [c for c in report if not c["ok"]] == []
    assert [c["check"] for c in report][:3] == [
        "ready",
        "mine:cubic fills a link",
        "mine:cubic stops on time",
    ]
    packaged(here, monkeypatch)
    report = json.loads(qbkit("check-stack", "my-stack", "--json"))
    assert [c for c in report if not c["ok"]] == []


BROKEN = """#!/usr/bin/python3
# Sends 2 Mbit/s for a random time, whatever it is told.
import os, socket, sys, time
if sys.argv[1] == "listen":
    peer = socket.create_server(("", int(sys.argv[2]))).accept()[0]
    while peer.recv(1 << 20):
        pass
    time.sleep(1000)
else:
    peer = socket.create_connection((sys.argv[2], int(sys.argv[3])))
    for _ in range(240 + os.getpid() % 5):
        peer.send(bytes(5000))
        time.sleep(0.02)
"""


def register_program(name: str, text: str, here: Path) -> None:
    """A stack of that name, whose program has this source and one controller."""
    program = here / f"{name}.py"
    program.write_text(text)
    program.chmod(0o755)
    table = {
        "program": str(program),
        "controllers": ["cubic"],
        "connect": ["connect", "{ip}", "{port}", "{duration_s}"],
        "listen": ["listen", "{port}"],
    }
    registry.register(configured.from_table(name, table, here))


@pytest.mark.guest
def test_what_is_missing_is_named(here: Path):
    register_program("broken", BROKEN, here)
    found = {check.check: check for check in contract.check_stack("broken")}
    assert not found["broken:cubic fills a link"].ok
    assert "of 10 Mbit/s from 3 s on" in found["broken:cubic fills a link"].detail
    assert not found["broken:cubic stops on time"].ok
    assert found["broken:cubic stops on time"].fix == "send until the duration is over"
    assert found["repeats to the byte"].ok
    assert "duration only" in found["sends a number of bytes"].detail


def test_a_path_is_that_of_a_flow(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(here)
    (here / "build").mkdir()
    shutil.copy2(EXAMPLE / "driver.py", here / "build/mine")
    monkeypatch.setattr(contract, "_check_controller", lambda stack, *_: [stack.name])
    for name in ("./build/mine:cubic", f"{here}/build/mine:cubic"):
        assert [*contract.check_stack(name)][-1] == str(here / "build/mine")


@pytest.mark.guest
def test_a_program_that_ends_is_named_before_anything_else(here: Path):
    dies = BROKEN.replace("range(240 + os.getpid() % 5)", "open('/nothing')")
    register_program("dies", dies, here)
    _, check = contract.check_stack("dies")
    assert (check.check, check.ok) == ("dies:cubic runs", False)
    assert "the sender's program ended with status 1: FileNotFoundError" in check.detail


@pytest.mark.guest
def test_controllers_that_are_one_are_named(here: Path):
    qbkit("new-stack", "mine")
    table = {
        **configured.tables_of(here / "config/stacks.toml")["mine"],
        "controllers": ["cubic", "bbr"],
    }
    fixed = ["reno" if word == "{controller}" else word for word in table["connect"]]
    found = []
    for name, connect in (("one", fixed), ("two", table["connect"])):
        registry.register(configured.from_table(name, {**table, "connect": connect}, here))
        found.append([*contract.check_stack(name)][-1])
    assert [check.ok for check in found] == [False, True]
    assert found[0].detail == "the controller is not passed on: cubic, bbr send the same packets"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/bin/ls", "a program's path lists no controllers; name the one to check, as in /bin/ls:"),
        ("tcp:nocc", "tcp has no controller 'nocc'; it has cubic"),
    ],
)
def test_a_contract_without_a_controller_is_no_pass(name: str, words: str):
    with pytest.raises(SpecError, match=words):
        list(contract.check_stack(name))


@pytest.mark.guest
def test_one_controller_of_a_stack_has_the_whole_contract():
    checks = [check.check for check in contract.check_stack("tcp:vegas")]
    assert checks[:3] == ["ready", "tcp:vegas fills a link", "tcp:vegas stops on time"]
    assert "repeats to the byte" in checks


def test_claims_are_compared_with_the_data():
    class Claiming(stacks.get("tcp").__class__):
        reports = ("cwnd_bytes", "srtt_ms")

    import xarray as xr

    there = xr.Dataset({"cwnd_bytes": ("time", [1.0]), "srtt_ms": ("time", [np.nan])})
    check = contract._reports(Claiming(), there)
    assert (check.ok, check.detail) == (False, "claims cwnd_bytes, srtt_ms; srtt_ms missing")
