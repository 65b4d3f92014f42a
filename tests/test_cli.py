"""The command line as a user and a script meet it: real commands in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_failures import heed_interrupts, wait_for_guest

import qbkit as qb
from qbkit.cli import main

QBKIT = [sys.executable, "-m", "qbkit.cli"]


def qbkit(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*QBKIT, *words], capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def here(monkeypatch, capsys) -> Callable[..., tuple[int | str | None, str, str]]:
    """A command in this process, which spares the imports: exit status, stdout, stderr."""

    def command(*words: str) -> tuple[int | str | None, str, str]:
        monkeypatch.setattr(sys, "argv", ["qbkit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return command


def answer(*words: str) -> object:
    """The JSON document of a command that succeeds: the only thing on stdout."""
    done = qbkit(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["run"],
        ["conformance"],
        ["stacks"],
        ["stacks", "build"],
        ["kernel"],
        ["doctor"],
        ["import-pcaps"],
    ],
    ids=" ".join,
)
def test_every_command_has_help(words, here):
    status, out, _ = here(*words, "--help")
    assert status == 0
    assert out.startswith("Usage:")


def test_stacks_lists_what_can_send():
    rows = answer("stacks")
    keys = {"stack", "controllers", "version", "ready", "reason", "source"}
    assert all(set(row) == keys for row in rows)
    by_name = {row["stack"]: row for row in rows}
    assert {"tcp", "quic-go", "aioquic"} <= set(by_name)
    assert by_name["tcp"]["controllers"][:3] == ["cubic", "reno", "bbr"]
    assert all(row["ready"] or row["reason"] for row in rows)


@pytest.mark.guest
def test_doctor_finds_this_machine_well():
    checks = answer("doctor")
    assert all(set(check) == {"check", "ok", "detail", "fix"} for check in checks)
    assert next(c for c in checks if c["check"] == "virtual-time kernel")["ok"]


@pytest.mark.guest
def test_run_reports_and_stores(tmp_path):
    out = tmp_path / "deep/run.nc"
    words = ["run", "tcp:cubic", "tcp:bbr", "--rate-mbps", "10", "--duration-s", "3"]
    report = answer(*words, "--out", str(out))
    assert set(report) == {"path", "hash", "wall_s", "cpu_s", "virtual_s", "flows"}
    assert report["path"] == str(out)
    assert report["virtual_s"] == 3
    assert [flow["label"] for flow in report["flows"]] == ["tcp:cubic", "tcp:bbr"]
    assert set(report["flows"][0]) == {
        "label",
        "goodput_mbps",
        "throughput_mbps",
        "loss_percent",
        "queue_loss_percent",
        "random_loss_percent",
        "rtt_mean_ms",
        "rtt_std_ms",
        "queue_delay_mean_ms",
    }
    assert 7 < sum(flow["throughput_mbps"] for flow in report["flows"]) < 10.1
    assert qb.load_run(out).attrs["hash"] == report["hash"]


@pytest.mark.guest
def test_a_run_that_exists_is_not_run_again():
    words = ["run", "tcp:reno", "--duration-s", "2"]
    first, second = answer(*words), answer(*words)
    assert first == second
    again = answer(*words, "--rerun")
    assert {**again, "wall_s": 0, "cpu_s": 0} == {**first, "wall_s": 0, "cpu_s": 0}


@pytest.mark.guest
def test_conformance_gates():
    words = ["conformance", "tcp:cubic", "--reference", "tcp:cubic", "--rtt-ms", "10"]
    words += ["--rate-mbps", "10", "--duration-s", "20", "--seeds", "2", "--json"]
    done = qbkit(*words)
    report = json.loads(done.stdout)
    keys = "test reference definition conformance conformance_ci noise_floor conformance_t "
    keys += "delta_throughput_mbps delta_delay_ms deviation seeds"
    assert set(keys.split()) <= set(report)
    assert report["conformance_pooled"] == 1  # test and reference are the very same runs
    assert report["noise_floor"] < report["conformance"] < 1  # half of the pairs are
    assert report["outcome"] == "undecided"
    assert done.returncode == 0
    first, *numbers = qbkit(*words[:-1]).stdout.splitlines()
    assert first == f"tcp:cubic against tcp:cubic: {report['verdict']}"
    assert any(line.startswith("noise_floor_ci ") for line in numbers)
    gated = qbkit(*words, "--min", "0.9999")
    low = json.loads(gated.stdout)["conformance_ci"][0]
    assert gated.returncode == (0 if low >= 0.9999 else 3)
    one_seed = qbkit(*words[:-3], "--seeds", "1", "--min", "0.1")
    assert one_seed.returncode == 3
    assert "does not surely reach 0.1" in one_seed.stderr


@pytest.mark.guest
def test_imported_pcaps_give_the_same_numbers(tmp_path):
    out = tmp_path / "run.nc"
    ours = answer(
        "run", "tcp:cubic", "tcp:bbr", "--duration-s", "3", "--keep", "pcap", "--out", str(out)
    )
    kept = tmp_path / "run.kept"
    words = [str(kept / "before.pcap"), str(kept / "behind.pcap"), "--flow", "4001=a"]
    words += ["--flow", "4002=b", "--sender", "10.1.0.1", "--sender", "10.1.1.1", "--rtt-ms", "50"]
    report = answer("import-pcaps", *words, "--out", str(tmp_path / "imported.nc"))
    assert [flow["label"] for flow in report["flows"]] == ["a", "b"]
    for theirs, mine in zip(report["flows"], ours["flows"], strict=True):
        assert theirs["rtt_mean_ms"] == pytest.approx(mine["rtt_mean_ms"], rel=0.01)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "tcp"], "'tcp' is no flow; write stack:controller"),
        (["run", "nostack:cubic"], "there is no stack 'nostack'; known are"),
        (["run", "tcp:nocc"], "tcp has no controller 'nocc'; it has cubic"),
        (["run", "tcp:cubic", "--rate-mbps", "0"], "rate_mbps = 0"),
        (["run", "tcp:cubic", "--rate-mbps", "fast"], "'fast' is not a valid float"),
        (["run", "tcp:cubic", "--qdisc", "wfq"], "'wfq' is not one of 'fifo'"),
        (["run", "tcp:cubic", "--buffer-bytes", "9"], "less than one packet"),
        (["run", "tcp:cubic", "--engine", "moon"], "no engine 'moon'"),
        (["run", "tcp:cubic", "--keep", "everything"], "cannot keep everything"),
        (["run", "tcp:cubic", "--out", "/proc/nowhere/run.nc"], "cannot write to /proc/nowhere"),
        (["run"], "Missing argument"),
        (["conformance", "tcp:cubic", "--definition", "vibes"], "choose from imc22"),
        (["conformance", "tcp:cubic", "--seeds", "0"], "at least 1 is needed"),
        (["stacks", "build", "nostack"], "there is no stack 'nostack'"),
        (
            ["import-pcaps", "a", "b", "--flow", "x", "--sender", "1.2.3.4", "--out", "o"],
            "PORT=LABEL",
        ),
        (
            ["import-pcaps", "a", "b", "--flow", "1=x", "--sender", "1.2.3.4", "--out", "o"],
            "read a",
        ),
        (["dance"], "No such command 'dance'"),
    ],
)
def test_bad_input_gets_one_sentence(words, sentence, here):
    status, out, complaint = here(*words)
    assert status != 0
    assert out == ""
    assert sentence in complaint
    assert complaint.startswith("qbkit: ")
    assert complaint.count("\n") == 1


def test_a_process_fails_with_the_same_sentence(here):
    done = qbkit("run", "tcp")
    assert (done.returncode, done.stdout, done.stderr) == here("run", "tcp")


@pytest.mark.guest
def test_ctrl_c_in_the_middle(own_runs: Path):
    words = ["run", "tcp:cubic", "--duration-s", "5000", "--json"]
    process = subprocess.Popen(
        [*QBKIT, *words], stdout=-1, stderr=-1, text=True, preexec_fn=heed_interrupts
    )
    wait_for_guest(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "qbkit: interrupted; nothing half-written was left"
    assert not list(own_runs.glob("**/*.nc"))
