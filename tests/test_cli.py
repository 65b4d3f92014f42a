"""The command line as a user and a script meet it: real commands in processes of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from synthetic import synthetic_run
from test_failures import descendants, heed_interrupts, wait_for_guest

import qbkit as qb
from qbkit.cli import main
from qbkit.cli.group import group
from qbkit.cli.output import print_table
from qbkit.errors import RunFailed
from qbkit.execution.many import Outcome
from qbkit.execution.sweeps import SweepResult
from qbkit.store.cube import cube

INTERRUPTED = "qbkit: interrupted; what was finished is stored, and the same command does the rest"
QBKIT = [sys.executable, "-m", "qbkit.cli"]
PUBLISHED = str(Path(__file__).parents[1] / "data/gallery/quic-go-cubic.nc")


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


@pytest.fixture
def answer(here) -> Callable[..., Any]:
    """The JSON document of a command that succeeds: the only thing on stdout."""

    def document(*words: str) -> Any:
        status, out, said = here(*words, "--json")
        assert status == 0, said
        return json.loads(out)

    return document


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
        ["runs"],
        ["sweep"],
        ["atlas"],
        ["notebook"],
        ["import-pcaps"],
    ],
    ids=" ".join,
)
def test_every_command_has_help(words, here):
    status, out, _ = here(*words, "--help")
    assert status == 0
    assert out.startswith("Usage:")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--loss-model", "gemodel 5"], "'gemodel 5' is no loss model; write random, gemodel"),
        (["--loss-model", "gemodel 1 25", "--loss-percent", "1"], "both set the loss"),
        (["--loss-direction", "up"], "'up' is not one of 'to_receivers', 'to_senders', 'both'"),
    ],
)
def test_a_loss_that_does_not_exist(words, said, here):
    status, _, error = here("run", "tcp:cubic", *words)
    assert status == 2
    assert said in error


def test_stacks_lists_what_can_send(answer):
    rows = answer("stacks")
    keys = {"stack", "controllers", "version", "transport", "ready", "reason", "source"}
    assert all(set(row) == keys for row in rows)
    by_name = {row["stack"]: row for row in rows}
    assert {"tcp", "quic-go", "aioquic"} <= set(by_name)
    assert by_name["tcp"]["controllers"][:3] == ["cubic", "reno", "bbr"]
    assert all(row["ready"] or row["reason"] for row in rows)


@pytest.mark.guest
def test_doctor_reports_that_this_machine_is_ready(answer):
    checks = answer("doctor")
    assert all(set(check) == {"check", "ok", "detail", "fix"} for check in checks)
    assert next(c for c in checks if c["check"] == "virtual-time kernel")["ok"]


@pytest.mark.guest
def test_run_reports_and_stores(tmp_path, answer):
    out = tmp_path / "deep/run.nc"
    words = ["run", "tcp:cubic", "tcp:bbr", "--rate-mbps", "10", "--duration-s", "3"]
    report = answer(*words, "--out", str(out))
    assert set(report) == {"path", "hash", "wall_s", "cpu_s", "virtual_s", "flows", "warnings"}
    assert report["path"] == str(out)
    assert report["virtual_s"] == 3
    assert [flow["label"] for flow in report["flows"]] == ["tcp:cubic", "tcp:bbr"]
    assert list(report["flows"][0]) == list(qb.metrics.flow_summaries(qb.load_run(out))[0])
    assert "slow_start_lost_packets" in report["flows"][0]
    assert 7 < sum(flow["throughput_mbps"] for flow in report["flows"]) < 10.1
    assert qb.load_run(out).attrs["hash"] == report["hash"]


PARKING_LOT = """
bottleneck: {rate_mbps: 10, rtt_ms: 20, buffer_packets: 50, qdisc: fq_codel}
topology: parking_lot
flows:
  - {stack: tcp, controller: cubic, label: across, extra_rtt_ms: 30}
  - tcp:bbr
  - {stack: "tcp:reno", start_s: 0.5, stop_s: 1.5, options: {initial_window_packets: 4}}
duration_s: 2
seed: 7
start_window_s: 0
"""


@pytest.mark.guest
def test_a_whole_experiment_runs_from_a_file(tmp_path, own_runs, answer):
    spec = tmp_path / "spec.yaml"
    spec.write_text(PARKING_LOT)
    report = answer("run", str(spec))
    stored = qb.load_run(report["path"]).qb.experiment
    assert stored == qb.Experiment.from_file(spec)
    assert stored.topology == "parking_lot"
    assert (stored.flows[0].extra_rtt_ms, stored.flows[2].options) == (
        30,
        {"initial_window_packets": 4},
    )
    assert [flow["label"] for flow in report["flows"]] == ["across", "tcp:bbr", "tcp:reno"]
    as_json = tmp_path / "spec.json"
    as_json.write_text(stored.to_json())
    assert answer("run", str(as_json)) == report  # the same run, so it is not run again
    (own_runs / "broken.nc").write_bytes(b"no run")
    listed = answer("runs")
    assert [row["problem"] != "" for row in listed] == [row["hash"] is None for row in listed]
    (good,) = (row for row in listed if not row["problem"])
    assert (good["hash"], good["path"]) == (report["hash"], report["path"])
    assert good["flows"] == " + ".join(flow.text for flow in stored.flows)
    shown = qbkit("runs")
    assert Path(good["path"]).name in shown.stdout
    assert "broken.nc" in shown.stderr


def test_qbkit_alone_prints_help(here):
    status, out, complaint = here()
    assert (status, complaint) == (0, "")
    assert out.startswith("Usage:")
    assert "conformance" in out


def test_failed_runs_of_a_sweep_are_named_by_its_fields_each_reason_once(
    here, tmp_path, monkeypatch
):
    spec = tmp_path / "sweep.yaml"
    spec.write_text("name: x\nbase: {flows: ['tcp:cubic']}\nsweep: {seed: [1, 2, 3]}")
    sweep = qb.Sweep.from_file(spec)
    gone, bad = RunFailed("the scheduler is gone"), RunFailed("it broke")
    failures = [
        Outcome(point.experiment, name=name, error=error)
        for point, name, error in zip(sweep.points(), "abc", (gone, bad, gone), strict=True)
    ]
    result = SweepResult(cube(sweep, ["a", "b", "c"], {}), failures, runs=3, ran=3)
    monkeypatch.setattr(qb, "run_sweep", lambda *_, **__: result)
    status, _, said = here("sweep", str(spec), "--out", str(tmp_path))
    assert status == 1
    assert said.splitlines() == [
        "a (seed = 1), and 1 more: the scheduler is gone",
        "b (seed = 2): it broke",
    ]


def test_a_damaged_file_is_no_run(here, tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path))
    (tmp_path / "0123456789abcdef.nc").write_text("no netCDF")
    status, out, said = here("runs")
    assert (status, out.strip().startswith("0 runs in")) == (0, True)
    assert "0123456789abcdef.nc is damaged" in said


@pytest.mark.parametrize("name", ["", "notebooks", "stacks"])
def test_the_list_of_commands_cuts_off_no_sentence(name):
    words = [*name.split(), "--help"]
    said = CliRunner().invoke(group, words, terminal_width=80).output
    commands = said.partition("Commands:\n")[2].splitlines()
    assert commands
    assert [line for line in commands if line.endswith("...")] == []


def test_a_dry_run_needs_no_folder(here, tmp_path):
    spec = tmp_path / "sweep.yaml"
    spec.write_text("name: x\nbase: {flows: ['tcp:cubic']}\nsweep: {seed: [1, 2, 3]}")
    status, out, _ = here("sweep", str(spec), "--dry-run")
    assert (status, out.strip()) == (0, "3 runs, 3 to do, about 1 processor min")
    unknown = tmp_path / "unknown.yaml"
    unknown.write_text("name: x\nbase: {flows: ['tcp:cubic']}\nsweep: {flows.0: ['tcp:nope']}")
    status, _, complaint = here("sweep", str(unknown), "--dry-run")
    assert (status, "tcp has no controller 'nope'" in complaint) == (2, True)
    status, _, complaint = here("sweep", str(spec))
    assert status == 2
    assert "give the folder for the results with --out, or use --dry-run" in complaint


@pytest.mark.guest
def test_a_file_with_another_run_is_kept(tmp_path, here):
    out = tmp_path / "run.nc"
    words = ["--duration-s", "1", "--out", str(out)]
    assert here("run", "tcp:cubic?initial_window_packets=20&start_s=0.25", *words)[0] == 0
    (flow,) = qb.load_run(out).qb.experiment.flows
    assert (flow.start_s, flow.options) == (0.25, {"initial_window_packets": 20})
    before = out.read_bytes()
    status, _, complaint = here("run", "tcp:reno", *words)
    assert status == 2
    assert f"{out} holds another experiment's run (tcp:cubic, seed 1); choose" in complaint
    assert out.read_bytes() == before
    assert here("run", "tcp:reno", *words, "--force")[0] == 0
    assert qb.load_run(out)["label"].values.tolist() == ["tcp:reno"]
    out.write_text("notes")
    assert "is no run; choose another file" in here("run", "tcp:reno", *words)[2]
    assert out.read_text() == "notes"


@pytest.mark.guest
def test_run_with_reverse_traffic(answer):
    words = ["run", "tcp:reno", "--reverse", "tcp:cubic", "--rate-mbps", "10", "--duration-s", "2"]
    labels = [flow["label"] for flow in answer(*words)["flows"]]
    assert labels == ["tcp:reno", "tcp:cubic (reverse)"]


@pytest.mark.guest
def test_a_run_that_exists_is_not_run_again(answer):
    words = ["run", "tcp:reno", "--duration-s", "2"]
    first, second = answer(*words), answer(*words)
    assert first == second
    again = answer(*words, "--rerun")
    assert {**again, "wall_s": 0, "cpu_s": 0} == {**first, "wall_s": 0, "cpu_s": 0}


@pytest.mark.guest
def test_conformance_of_flows_too_short_runs_nothing(own_runs):
    done = qbkit("conformance", "tcp:cubic", "--duration-s", "6")
    assert done.returncode == 2
    assert "give at least 7.5 s" in done.stderr
    assert not own_runs.exists()


def test_conformance_gates(here):
    words = ["conformance", "tcp:cubic", "--reference", "tcp:cubic", "--rtt-ms", "10"]
    words += ["--rate-mbps", "10", "--duration-s", "20", "--seeds", "2", "--json"]
    done = qbkit(*words)
    report = json.loads(done.stdout)
    keys = "test reference definition conformance conformance_ci noise_floor conformance_t "
    keys += "delta_throughput_mbps delta_delay_ms deviation seeds"
    assert set(keys.split()) <= set(report)
    assert report["conformance_pooled"] == 1  # test and reference are the very same runs
    assert report["noise_floor"] < report["conformance"] < 1  # half of the pairs are
    assert report["outcome"] == "no difference detected"
    assert done.returncode == 0
    status, shown, _ = here(*words[:-1], "--min", "0")
    assert status == 0
    *said, last = shown.splitlines()
    assert said == report["verdict"].splitlines()
    assert said[0] == "Both sides are the same runs, so only the noise floor counts."
    assert last.startswith("gate meets: conformance 0.")
    reasons, *numbers = here(*words[:-1], "--details")[1].splitlines()[3:]
    assert reasons.endswith("; the trials of both sides are equal, so only the noise floor counts.")
    assert [line.split("  ")[0] for line in numbers[1:3]] == ["conformance", "noise floor"]
    status, above, _ = here(*words, "--min", "1")  # no interval around less than 1 reaches it
    gated = json.loads(above)
    (gate,) = gated["gates"]
    assert (status, gated["answer"], gate["least"]) == (3, "fails", 1)
    assert {**report, "answer": "fails", "gates": [gate]} == gated
    status, low, warned = here(*words[:-1], "--min", "floor", "--max-delta-throughput-mbps", "0.5")
    assert status == 4  # two trials of a reference have no interval of the noise floor
    assert "gate meets: Δ-throughput 0.00" in low
    assert "gate 2 seeds cannot decide; an interval needs 2 or more, 3 for the noise floor" in low
    assert "warning: trials are short: " not in warned  # 149 operating points


def test_cells_of_tables_are_printed_as_they_are(capsys):
    print_table([{"flow": "tcp [fd00::1]:5 to [fd00::2]:4001", "why": "a :x: of [the] commit"}])
    assert "tcp [fd00::1]:5 to [fd00::2]:4001  a :x: of [the] commit" in capsys.readouterr().out


def test_a_flow_of_one_packet_has_no_rate():
    run = synthetic_run(duration_s=2)
    run["stop_s"][0] = run["start_s"][0] = 1.0
    assert np.isnan(qb.metrics.summary(run).throughput_mbps[0])


@pytest.mark.guest
def test_imported_pcaps_give_the_same_numbers(tmp_path, answer):
    out = tmp_path / "run.nc"
    ours = answer(
        "run", "tcp:cubic", "tcp:bbr", "--duration-s", "3", "--keep", "pcap", "--out", str(out)
    )
    kept = tmp_path / "run.kept"
    assert ours["kept"] == str(kept)
    printed = qbkit(
        "run", "tcp:cubic", "tcp:bbr", "--duration-s", "3", "--keep", "pcap", "--out", str(out)
    )
    assert printed.stdout.splitlines()[-2:] == [str(kept), str(out)]
    words = [str(kept / "before.pcap"), str(kept / "after.pcap"), "--flow", "4001=a"]
    words += ["--flow", "4002=b", "--sender", "10.1.0.1", "--sender", "10.1.1.1", "--rtt-ms", "50"]
    report = answer("import-pcaps", *words, "--out", str(tmp_path / "imported.nc"))
    assert [flow["label"] for flow in report["flows"]] == ["a", "b"]
    for theirs, mine in zip(report["flows"], ours["flows"], strict=True):
        assert theirs["rtt_mean_ms"] == pytest.approx(mine["rtt_mean_ms"], rel=0.01)
    alone = tmp_path / "alone.nc"
    found = answer("import-pcaps", *words[:6], "--out", str(alone))  # neither senders nor RTT
    assert [flow["label"] for flow in found["flows"]] == ["a", "b"]
    assert qb.load_run(alone).base_rtt_ms.values == pytest.approx([50, 50], abs=1)
    again = qbkit("import-pcaps", *words, "--out", str(out))
    assert again.returncode == 2
    assert "holds another experiment's run (tcp:cubic + tcp:bbr, seed 1)" in again.stderr


BAD_INPUT = {
    "run tcp": "'tcp' is not a flow; write stack:controller",
    "run nostack:cubic": "there is no stack 'nostack'; known are",
    "run tcp:nocc": "tcp has no controller 'nocc'; it has cubic",
    "run tcp:cubic --rate-mbps 0": "rate_mbps = 0",
    "run tcp:cubic --rate-mbps fast": "'fast' is not a valid float",
    "run tcp:cubic --qdisc wfq": "'wfq' is not one of 'fifo'",
    "run tcp:cubic --buffer-bytes 9": "less than one packet",
    "run tcp:cubic --engine moon": "no engine 'moon'",
    "run tcp:cubic --keep everything": "cannot keep everything",
    "run": "Missing argument",
    "conformance tcp:cubic --definition vibes": "choose from imc22",
    "conformance tcp:cubic --seeds 0": "give at least 1, and 5",
    "conformance tcp:cubic --min 60": "60 is no conformance; give a number from 0",
    "conformance tcp:cubic --min roof": "roof is no conformance; give a number",
    "conformance tcp:cubic --min nan": "nan is no conformance",
    "conformance tcp:cubic --max-delta-delay-ms 0": "0 is no bound of Δ-delay",
    "stacks build nostack": "there is no stack 'nostack'",
    "import-pcaps a b --flow x --sender 1.2.3.4 --out o": "PORT=LABEL",
    "import-pcaps a b --flow 1=x --flow 1=y --out o.nc": "port 1 has two labels; keep one",
    "import-pcaps a b --flow 1=x --sender 1.2.3.4 --out o.nc": "read a",
    "dance": "No such command 'dance'",
    "conformence": "No such command 'conformence' (did you mean conformance?)",
    "run quick-go:cubic": "there is no stack 'quick-go' (did you mean quic-go?); known",
    "run tcp:cubik": "tcp has no controller 'cubik' (did you mean cubic?); it has",
    "run tcp:cubic?inital_window_packets=3": (
        "tcp has no option inital_window_packets (did you mean initial_window_packets?);"
    ),
    "run tcp:cubic?start=3": "tcp has no option start (did you mean start_s?);",
    "run tcp:cubic?start_s": "has 'start_s' after the ?; write stack:controller?name",
    "conformance tcp:cubic?start_s=x": "Flow.start_s = 'x': must be a number",
    "run TCP:cubic": "there is no stack 'TCP' (did you mean tcp?); known are",
    "run tcp:CUBIC": "tcp has no controller 'CUBIC' (did you mean cubic?); it has",
    "run tcp:cubic?initial_window_packets=1.5": "is 1.5; give a whole number from 1",
    "run tcp:cubic?pacing=maybe": "tcp's option pacing is 'maybe'; write true or false",
    "run tcp:cubic --engine Virtual": "there is no engine 'Virtual'; choose from",
    "run tcp:cubic --out ''": "'--out': it is empty; give the name of a file",
    "notebooks copy ''": "it is empty; give the name of a file or folder",
    "notebook 01 -p seeds [1": "-p seeds [1: it is no YAML",
    "import-pcaps a b --flow ²=x --out o": "'²=x' is not PORT=LABEL",
    "compare tcp:cubic tcp:nope": "tcp has no controller 'nope'",
    "compare tcp:cubic tcp:reno --out a.odt": "cannot be saved as 'a.odt'",
    "compare a.nc b.nc --rate-mbps 5": "--rate-mbps is for flows that are run",
    "hunt quinn:cubic --out a.pdf": "a case cannot be saved as a.pdf",
    "gate tcp:reno --max-share nan --out /tmp": "nan % is no share of",
    "conformance tcp:reno --min 2": "2 is no conformance; give a number from 0",
    "conformance 'tcp:reno?app=rate mbps=1'": "tcp:reno sends what its app rate gives it",
    "stacks --json --markdown": "give --json or --markdown, not both",
    "web --client ''": "client = '': must not be empty",
    "web --protocol h2,h2": "--protocol h2,h2: give h2, h3 or both, each once",
    "web --list https://a/": "--list and --build load nothing; leave the URLs out",
    "web https://a:99999/": "is not a URL to measure; write https://HOST[:PORT]/PATH",
    "web https://a/ --duration-s -1": "limit_s = -1: give seconds above 0",
    # A name with an ending that says another kind, or none.
    "run tcp:cubic --out x.csv": "cannot be saved as 'x.csv'; choose a name with",
    "run tcp:cubic --out x": "a run cannot be saved as 'x'; choose a name",
    "web https://a/ --out x.csv": "a run cannot be saved as 'x.csv'",
    "import-pcaps a b --flow 1=x --out x": "a run cannot be saved as 'x'",
    "evaluate tcp:reno --out a.txt": "an evaluation cannot be saved as 'a.txt'",
    "bbr-draft tcp:bbr --out a.txt": "an evaluation cannot be saved as 'a.txt'",
    f"plot {PUBLISHED} --out a.odt": "a chart cannot be saved as 'a.odt'",
    f"plot {PUBLISHED} --kind table --out a.odt": "a table cannot be saved as",
    f"report {PUBLISHED} --out a.pdf": "a report cannot be saved as 'a.pdf'",
    f"replay {PUBLISHED} --at 3 --out a.txt": "chart cannot be saved as 'a.txt'",
    # A file, a folder or a run that does not exist, or is of another kind.
    "reproduce nowhere": "nowhere does not exist; give data",
    "compare a.nc b.nc": "there are no results at a.nc",
    "identify nowhere.nc": "there is no nowhere.nc",
    "identify /tmp": "/tmp is a folder; give a capture",
    f"identify {__file__}": "test_cli.py is neither a capture",
    "plot nowhere --out a.pdf": "there are no results at nowhere",
    "plot nowhere.yaml --out a.pdf": "no results of nowhere.yaml are published",
    "report nowhere --out a.html": "there are no results at nowhere",
    "packets nowhere --around-s 3": "there are no results at nowhere",
    "replay nowhere --at 3 --out a.html": "there is no run nowhere",
    "sweep nowhere.yaml --out x": "cannot read nowhere.yaml",
    "atlas nowhere --out x": "Directory 'nowhere' does not exist",
    f"notebooks copy {PUBLISHED}": "is a file",
    # A name or a value that there is not.
    "bisect --good quinn@0.8.4 --bad quinn --metric no": "no metric 'no'",
    "hunt tcp:reno --metric foo": "there is no metric 'foo'",
    f"plot {PUBLISHED} --kind foo --out a.pdf": "have no figure 'foo'",
    f"reproduce {PUBLISHED} --where foo=3": "an experiment has no field 'foo'",
    f"identify {PUBLISHED} --flow foo": "the run has no flow 'foo'",
    f"replay {PUBLISHED} --at 300 --out /tmp/a.html": "lasts from 0 to 20 s",
    f"packets {PUBLISHED} --around-s 3": (
        f"have no packets; `qbkit replay {PUBLISHED} --at 3 --out FILE.html` runs it again"
    ),
}
"""What one types → a part of the complaint."""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        *BAD_INPUT.items(),
        pytest.param(
            "run tcp:cubic --out /proc/nowhere/run.nc",
            "cannot write to /proc/nowhere",
            marks=pytest.mark.guest,  # a missing kernel is reported before it
        ),
    ],
)
def test_bad_input_gets_one_sentence(words, sentence, here):
    status, out, complaint = here(*shlex.split(words))
    assert status == 2
    assert out == ""
    assert sentence in complaint
    assert complaint.startswith("qbkit: ")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["run", "tcp:cubic", "--force"],
        ["evaluate", "tcp:reno"],
        ["hunt", "quinn:cubic"],
        ["compare", "tcp:cubic", "tcp:reno"],
    ],
    ids=lambda words: words[0],
)
def test_an_output_that_cannot_be_written_stops_before_anything_runs(words, here, tmp_path):
    endings = {"run": ".nc", "evaluate": ".html", "hunt": ".yaml", "compare": ".svg"}
    folder = tmp_path / f"folder{endings[words[0]]}"
    folder.mkdir()
    status, _, complaint = here(*words, "--out", str(folder))
    assert status == 2
    assert f"{folder} is a folder; give the name of a file" in complaint


def test_what_fails_is_told_from_what_is_refused(here, tmp_path, monkeypatch):
    damaged, cut = tmp_path / "damaged.nc", tmp_path / "cut.pcap"
    damaged.write_bytes(Path(PUBLISHED).read_bytes()[:5000])
    cut.write_bytes(b"\xd4\xc3\xb2\xa1\x02\x00")
    assert here("plot", str(damaged), "--out", str(tmp_path / "a.pdf"))[0] == 1
    assert here("identify", str(cut))[0] == 1
    out = ["--flow", "1=x", "--out", str(tmp_path / "run.nc")]
    assert here("import-pcaps", str(cut), str(cut), *out)[0] == 1
    monkeypatch.setenv("QBKIT_KERNEL", str(cut))
    assert here("run", "tcp:cubic", "--duration-s", "1")[0] == 1


def test_a_number_with_an_exponent_is_one(here):
    message = "Bottleneck.rate_mbps = 1000000000.0: input should be less than or equal to 10000"
    assert here("notebook", "01", "-p", "rate_mbps", "1e9")[::2] == (2, f"qbkit: {message}\n")


def test_without_notebooks_the_answer_is_where_they_are(here, tmp_path, monkeypatch):
    monkeypatch.setattr("qbkit.execution.notebooks.FOLDER", tmp_path)
    status, _, complaint = here("notebook", "01")
    assert (status, complaint.endswith("with: pip install qbkit-notebooks\n")) == (2, True)


def test_copied_notebooks_have_what_their_texts_link_to(here, tmp_path):
    status, _, _ = here("notebooks", "copy", str(tmp_path))
    assert status == 0
    found = 0
    for path in (tmp_path / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
                assert (path.parent / link).exists(), (path.name, link)
                found += 1
    assert found > 30


def test_notebooks_alone_prints_help(here):
    status, out, complaint = here("notebooks")
    assert (status, complaint) == (0, "")
    assert "copy" in out


@pytest.mark.parametrize(
    "call",
    [
        lambda: qb.load_run(None),
        lambda: qb.open_results(5),
        lambda: qb.load_study(["a"]),
        lambda: qb.read_log("a\0b"),
        lambda: qb.Experiment.from_file(""),
        lambda: qb.run("tcp:cubic", out=5),
        lambda: qb.run("tcp:cubic", keep=5),
        lambda: qb.run([qb.Experiment(flows=["tcp:cubic"])] * 9),
        lambda: qb.run_all(None),
        lambda: qb.run_all([None]),
        lambda: qb.run_sweep("sweep.yaml", "out"),
        lambda: qb.conformance_study(None),
        lambda: qb.conformance_study("tcp:reno", seeds=2.5),
        lambda: qb.conformance_study("tcp:reno", seeds=True),
        lambda: qb.explain("tcp:reno", definition="imc"),
        lambda: qb.evaluate("tcp:reno", seeds=0),
        lambda: qb.judge_cases("tcp:bbr", seeds=0),
        lambda: qb.hunt("quinn:cubic", budget_s="30m"),
        lambda: qb.hunt("quinn:cubic", budget_s=float("nan")),
        lambda: qb.bisect(None, 5),
        lambda: qb.compare(None, None),
        lambda: qb.replay(None, 1),
        lambda: qb.identify(5),
        lambda: qb.measure_urls("https://a/"),
        lambda: qb.fair_queuing_of(None),
        lambda: qb.flow_events(None),
        lambda: qb.save_run(None, "run.nc"),
        lambda: qb.save_report(None, "run.html"),
        lambda: qb.metrics.summary(xr.Dataset()),
        lambda: qb.plots.timeline_chart([]),
        lambda: qb.plots.interaction_chart(None),
        lambda: qb.Experiment.from_json(None),
        lambda: qb.Flow("tcp", "cubic", 5),
        lambda: qb.measure_urls(["https://a/"], limit_s=float("nan")),
    ],
)
def test_arguments_of_another_kind_get_one_sentence(call):
    with pytest.raises(qb.QbkitError) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("flows: [tcp, 'quinn:bbr']", ["Experiment.flows.0: 'tcp' is not a flow; write stack:"]),
        (
            "bottleneck: {rate_mbps: 0, speed: 3}\nflows: [{stack: 'tcp:bbr', start: 3}]",
            [
                "Experiment.bottleneck.rate_mbps = 0: input should be greater",
                "; Experiment.bottleneck has no field speed; ",
                "Experiment.flows.0 has no field start",
            ],
        ),
        ("flows: ['tcp:cubic', 'tcp:bbr']\ntopology: parking_lot", ["needs at least 3 flows"]),
        ("flows: ['tcp:cubic']\nduration: 5", ["Experiment has no field duration"]),
        ("flows: [{stack: tcp, controller: cubic, 1: 2}]", ["1 is not a field name"]),
        ("flows: [", ["is not YAML: line 1, column 9"]),
        ("flows: ['tcp:cubic']\nseed: 1\nseed: 2", ["line 3: seed is given twice; keep one"]),
        ("- tcp:cubic", ["has no fields; an experiment needs names and values"]),
        ("name: x\nbase: {}\nsweep: {seed: [1]}", ["contains a sweep; use `qbkit sweep`"]),
    ],
)
def test_mistakes_in_a_file_get_a_sentence_each(text, sentences, here, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(text)
    status, out, complaint = here("run", str(spec))
    assert (status, out, complaint.count("\n")) == (2, "", 1)
    assert complaint.startswith("qbkit: ")
    assert all(sentence in complaint for sentence in sentences)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}", "--rate-mbps", "20"], "--rate-mbps belongs in {}, which holds the experiment"),
        (["{}", "--seed", "1"], "--seed belongs in {}"),
        (["{}", "--ipv6"], "--ipv6 belongs in {}"),
        (["{}", "tcp:cubic"], "give one SPEC.yaml or flows, not {} tcp:cubic"),
        (["nowhere.yaml"], "cannot read nowhere.yaml: No such file or directory"),
    ],
)
def test_a_file_says_all_of_the_experiment(words, sentence, here, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text("flows: ['tcp:cubic']")
    status, out, complaint = here("run", *(word.format(spec) for word in words))
    assert (status, out, complaint.count("\n")) == (2, "", 1)
    assert sentence.format(spec) in complaint


def test_a_process_fails_with_the_same_sentence(here):
    done = qbkit("run", "tcp")
    assert (done.returncode, done.stdout, done.stderr) == here("run", "tcp")


@pytest.mark.guest
def test_a_log_has_few_states_of_a_bar(own_runs: Path):
    done = qbkit("run", "tcp:cubic", "--duration-s", "20")
    assert done.returncode == 0
    assert 1 <= done.stderr.count("virtual s") <= 2


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
    assert err.strip() == INTERRUPTED
    assert not list(own_runs.glob("**/*.nc"))


@pytest.mark.guest
@pytest.mark.parametrize("least", [1, 5], ids=["while workers start", "while they run"])
def test_a_terminal_interrupts_workers_too(least: int, own_runs: Path):
    words = ["conformance", "tcp:cubic", "--duration-s", "900", "--seeds", "3", "--json"]
    process = subprocess.Popen(
        [*QBKIT, *words], stdout=-1, stderr=-1, text=True, preexec_fn=as_a_terminal_does
    )
    while len(descendants(process.pid)) < least:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    said = [line for line in err.splitlines() if not line.startswith("conformance")]
    assert "\n".join(said).strip() == INTERRUPTED


def as_a_terminal_does() -> None:
    """In a process group of its own, which a terminal interrupts as a whole."""
    os.setpgid(0, 0)
    heed_interrupts()
