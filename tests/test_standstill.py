"""The record of a guest that stands still, read from real processes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from qbkit.testbed import standstill

FAMILY = """
import os, time
if os.fork():
    print(flush=True)
    time.sleep(100)
while True:
    pass
"""


@pytest.fixture
def family():
    """A process that sleeps, and its child that spins."""
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        children = standstill.descendants(process.pid)[1:]
        yield process
        for pid in children:
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
        process.kill()


def test_processes_are_seen_as_they_are(family):
    seen = standstill.observe(family.pid, 0)
    asleep, spinning = seen["processes"]
    assert (asleep["state"], spinning["state"]) == ("S", "R")
    assert 10 * asleep["cpu_share"] < spinning["cpu_share"]  # it slept once it had printed
    assert asleep["syscall"] != "running" == spinning["syscall"]


def test_a_process_that_has_ended_is_no_error():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    (seen,) = standstill.observe(process.pid, 0)["processes"]
    assert (seen["state"], seen["program"]) == ("X", None)


def a_guest(state: str, cpu_share: float, others: list[str], kernel_share: float = 0.0) -> dict:
    kernel = {"state": "S", "cpu_share": kernel_share, "program": None}
    program = {"state": state, "cpu_share": cpu_share, "program": "/usr/bin/python3"}
    return {
        "processes": [kernel, program],
        "others_on_processor": [{"pid": 7, "name": name} for name in others],
    }


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (a_guest("R", 0.9, []), "/usr/bin/python3 computes without ever letting time pass"),
        (a_guest("R", 0.1, ["make"]), "/usr/bin/python3 computes without ever letting time pass"),
        (a_guest("R", 0.01, ["make"]), "it hardly gets its processor, which others want: make"),
        (a_guest("R", 0.01, ["make"], 0.01), "it hardly gets its processor, which others want: "),
        (a_guest("S", 0.0, ["make"]), None),
        (a_guest("S", 0.0, []), None),
    ],
)
def test_reasons_are_distinguished(seen, words):
    assert (standstill.reason(seen) or "")[: len(words or "")] == (words or "")
    assert (standstill.reason(seen) is None) == (words is None)


def test_the_flow_is_named():
    seen = a_guest("R", 0.9, [])
    assert (standstill.reason(seen, ["a:b"]) or "").startswith("flow 1 (a:b): /usr/bin/python3 c")
    assert (standstill.reason(seen, ["a:b", "c:d"]) or "").startswith("/usr/bin/python3 computes")
    seen["processes"][1]["flow"] = 1
    assert (standstill.reason(seen, ["a:b", "c:d"]) or "").startswith("flow 2 (c:d): /usr/bin/")


def test_the_record_survives(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    seen = {"when": "2026-01-01T00:00:00+00:00", **a_guest("S", 0.0, [])}
    path = standstill.keep(seen)
    assert path.parent == tmp_path / "failures"
    assert json.loads(path.read_text()) == seen
