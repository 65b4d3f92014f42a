"""`qbkit gate`: its checks and its baseline, on synthetic runs; and a whole gate of a program."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from synthetic import synthetic_run

from qbkit import measurement
from qbkit.cli.group import group
from qbkit.errors import MetricError, QbkitError, StoreError
from qbkit.metrics import infer
from qbkit.metrics.parameters import Parameters
from qbkit.spec import Experiment, Flow
from qbkit.stacks import get
from qbkit.studies.conformance import Study
from qbkit.studies.evaluation.answers import Evaluation
from qbkit.studies.evaluation.evaluate import COLUMNS
from qbkit.studies.evaluation.shelf import open_book
from qbkit.studies.gate import Gated, save_gate
from qbkit.studies.gate.baseline import baseline_check, read_baseline, require_alike, write_baseline
from qbkit.studies.gate.checks import (
    Check,
    conformance_check,
    connection_check,
    evaluation_check,
    share_check,
    worst,
)
from qbkit.studies.gate.gate import _unless_too_short
from qbkit.studies.gate.report import junit, markdown
from qbkit.testbed.engines import last_words
from qbkit.traces.run.early_end import EarlyEnd, end_variables

TEST, REFERENCE = "quic-go:cubic", "tcp:cubic"
EXAMPLE = Path(__file__).parents[1] / "qbkit/stacks/drivers/example/driver.py"


def trials(first: str, shares: tuple[float, float], seeds: int = 4) -> list[xr.Dataset]:
    return [
        synthetic_run(
            flows=(first, REFERENCE), shares=shares, seed=seed, duration_s=12
        ).assign_attrs(measurement_version=measurement.VERSION)
        for seed in range(1, seeds + 1)
    ]


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(TEST, REFERENCE, trials(TEST, (0.5, 0.5)), trials(REFERENCE, (0.5, 0.5)))


@pytest.fixture(scope="module")
def parameters(study: Study) -> Parameters:
    return infer(study.tests[:1])


@pytest.fixture
def baseline(study: Study, parameters: Parameters, tmp_path: Path) -> Path:
    write_baseline(tmp_path / "baseline.zip", study, parameters)
    return tmp_path / "baseline.zip"


def test_an_evaluation_whose_runs_failed_is_undecided():
    rows = [("1", "beside CUBIC", "", "left", False, TEST, 1, math.nan, "")]
    nothing = Evaluation(open_book("shares"), TEST, True, 2, pd.DataFrame(columns=list(COLUMNS)))
    assert evaluation_check(nothing).answer == "shown"
    failed = dataclasses.replace(nothing, values=pd.DataFrame(rows, columns=list(COLUMNS)))
    assert evaluation_check(failed).answer == "undecided"


def test_the_worst_answer_counts():
    assert worst(["meets", "undecided", "fails", "shown"]) == "fails"
    assert worst(["meets", "shown", "undecided"]) == "undecided"
    assert worst(["shown", "meets"]) == "meets"
    assert worst(["shown"]) == "shown"


def test_an_open_bound_says_how_many_seeds_it_needs_itself(study: Study):
    few = Study(TEST, REFERENCE, trials(TEST, (0.52, 0.48), 3), study.references[:3])
    (bound,) = few.gates(min_conformance="floor")
    found = conformance_check(few, [bound])
    assert few.assess().outcome == "undecided"
    assert found.sentence == f"{bound.sentence}."
    same = conformance_check(study, study.gates(min_conformance="floor"))
    assert same.sentence.startswith("quic-go's CUBIC and the kernel's do the same here: ")
    far = Study(TEST, REFERENCE, trials(TEST, (0.75, 0.25), 5), trials(REFERENCE, (0.5, 0.5), 5))
    (bound,) = far.gates(min_conformance=0.99)
    undecided = dataclasses.replace(bound, interval=(0.0, 1.0))
    assert conformance_check(far, [undecided]).sentence == " ".join(
        [*far.verdict().lines, f"{undecided.sentence}."]
    )
    assert "cannot decide; " in undecided.sentence


def test_a_connection_that_ends_early_fails():
    lasting = trials(TEST, (0.5, 0.5), 2)
    assert connection_check(lasting).answer == "meets"
    ends = [EarlyEnd(7.0, "sender-program", 11, "SIGSEGV", ""), None]
    for of_build, answer in ((ends, "fails"), (ends[::-1], "meets")):
        died = lasting[1].assign(end_variables(of_build))
        assert connection_check([lasting[0], died]).answer == answer
    said = connection_check([lasting[0], lasting[1].assign(end_variables(ends))]).sentence
    assert said == (
        "in 1 of 2 runs it ended before its flow did, first: quic-go:cubic ended at 7.0 s: "
        "the sender's program ended with SIGSEGV"
    )


def test_a_share_is_judged_by_the_interval_over_seeds():
    runs = {REFERENCE: trials(TEST, (0.75, 0.25))}
    shown = share_check(TEST, runs, None)
    assert shown.answer == "shown"
    (row,) = shown.table.to_dict("records")
    assert row["share (%)"] == pytest.approx(75, abs=4)  # what the flows ask for
    assert row["95 % from"] < row["share (%)"] < row["to"]
    assert share_check(TEST, runs, 95).answer == "meets"
    assert share_check(TEST, runs, 50).answer == "fails"
    assert share_check(TEST, runs, 95).sentence == (
        f"it takes {row['share (%)']:.1f} [{row['95 % from']:.1f}, {row['to']:.1f}] % "
        "beside tcp:cubic (meets), for at most 95 %"
    )
    both = {"tcp:reno": trials(TEST, (0.9, 0.1)), **runs}
    assert share_check(TEST, both, row["share (%)"]).sentence.endswith(
        " % beside tcp:cubic (undecided), for at most " + f"{row['share (%)']:g} %"
    )  # tcp:reno decides it
    near = share_check(TEST, runs, (row["share (%)"] + row["to"]) / 2)
    assert near.answer == "undecided"
    assert "; 4 seeds cannot decide, about " in near.sentence
    assert share_check(TEST, runs, row["share (%)"]).sentence.endswith("; 4 seeds cannot decide")
    one = share_check(TEST, {REFERENCE: runs[REFERENCE][:1]}, 95)
    assert one.answer == "undecided"


def test_words_of_a_program_do_not_break_the_xml(tmp_path: Path):
    (tmp_path / "sender.log").write_bytes(b"\x1b[1;31mfailed: a < b\x1b[0m \x01\x00\xff\n")
    _, said = last_words(tmp_path / "sender.log")
    assert said == "failed: a < b \ufffd"
    assert EarlyEnd(1.0, "sender-program", 1, "status 1", "\x1b[1mno").how.endswith(": no")


def test_a_build_that_ends_before_its_envelope_fails(study: Study):
    failed = Check("connection", "fails", "in 4 of 4 runs it ended")

    def make() -> Check:
        raise MetricError("a hull needs 3")

    assert _unless_too_short("conformance", [failed], make).answer == "undecided"
    with pytest.raises(MetricError):
        _unless_too_short("conformance", [dataclasses.replace(failed, answer="meets")], make)


def test_equal_bytes_are_the_same_behaviour(study: Study, parameters: Parameters, baseline: Path):
    check = baseline_check(read_baseline(baseline), study, parameters)
    assert (check.answer, check.sentence) == ("meets", "the same bytes in all 4 runs")


def test_a_build_that_takes_more_fails(study: Study, parameters: Parameters, baseline: Path):
    greedy = Study(TEST, REFERENCE, trials(TEST, (0.9, 0.1)), study.references)
    check = baseline_check(read_baseline(baseline), greedy, infer(greedy.tests[:1]))
    assert check.answer == "fails"
    assert check.sentence.startswith("the bytes of 4 of 4 runs differ; by statistics: differs")
    assert "reference" not in check.sentence
    assert check.chart is not None


def test_other_bytes_of_the_reference_are_no_deed_of_the_build(
    study: Study, parameters: Parameters, baseline: Path
):
    elsewhere = Study(TEST, REFERENCE, trials(TEST, (0.9, 0.1)), trials(REFERENCE, (0.6, 0.4)))
    check = baseline_check(read_baseline(baseline), elsewhere, parameters)
    assert "the reference's bytes differ, too: not only the build changed" in check.sentence


def test_a_baseline_of_another_measurement_version_is_refused(baseline: Path):
    changed = baseline.with_name("old.zip")
    with zipfile.ZipFile(baseline) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "index.json":
                index = json.loads(content)
                for facts in index["files"].values():
                    facts["provenance"]["measurement_version"] = 1
                content = json.dumps(index).encode()
            new.writestr(name, content)
    with pytest.raises(StoreError, match=r"is of measurement version 1, and this qbkit .* by ver"):
        read_baseline(changed)


@pytest.mark.parametrize("content", [b"", b"no zip", None])
def test_what_is_no_baseline_is_refused(content: bytes | None, tmp_path: Path):
    path = tmp_path / "x.zip"
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("other.txt", "")
    else:
        path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged or no baseline"):
        read_baseline(path)


def test_a_baseline_of_other_experiments_is_refused(study: Study, baseline: Path):
    specs = [Experiment.from_json(run.attrs["spec"]) for run in (*study.tests, *study.references)]
    known = read_baseline(baseline)
    require_alike(known, specs)
    renamed = [
        s.model_copy(update={"flows": (Flow(f"{EXAMPLE}:cubic"), s.flows[1])}) for s in specs
    ]
    require_alike(known, renamed[:4] + specs[4:])  # the build may be called otherwise
    longer = [s.model_copy(update={"duration_s": 13.0}) for s in specs]
    with pytest.raises(StoreError, match=r"has duration_s = 12.0, and this gate 13.0"):
        require_alike(known, longer)
    with pytest.raises(StoreError, match="has 8 runs, and this gate 2: other seeds"):
        require_alike(known, specs[:2])


def test_a_folder_says_everything(study: Study, parameters: Parameters, tmp_path: Path):
    checks = [
        share_check(TEST, {REFERENCE: study.tests}, 20),
        Check("conformance", "undecided", "a | b"),
    ]
    gated = Gated(TEST, REFERENCE, "10 Mbit/s", study, parameters, checks, 12.3)
    save_gate(gated, tmp_path / "gate")
    there = {path.name for path in (tmp_path / "gate").iterdir()}
    assert there == {"summary.md", "junit.xml", "baseline.zip", "share.png"}
    text = markdown(gated)
    assert text.startswith("# ❌ quic-go:cubic: fails\n")
    assert "| ❔ conformance | undecided | a \\| b |" in text
    assert text.count("![") == 1 and "![share](share.png)" in text
    assert "\n## share\n" in text and "## conformance" not in text  # nothing would be below
    suite = ElementTree.fromstring(junit(gated))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "1")
    assert [case.find("failure") is not None for case in suite] == [True, False]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tcp:cubic", "--min", "2"], "2 is no conformance; give a number from 0 to 1"),
        (["tcp:cubic", "--seeds", "1"], "seeds = 1: a gate needs at least 2"),
        (["tcp:cubic", "--duration-s", "3"], "duration_s = 3: a hull needs 3 windows of 10 RTTs"),
        (["tcp:cubic", "--max-share", "101"], "101 % is no share of a link"),
        (["tcp:cubic", "--bbr-draft"], "tcp:cubic is no BBR; leave --bbr-draft out"),
        (["tcp:cubic", "--baseline", "none.zip"], "there is no baseline none.zip; write a new one"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group, ["gate", *words], standalone_mode=False)
    assert isinstance(done.exception, QbkitError)
    assert str(done.exception).startswith(sentence)


def test_a_program_is_a_stack_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    flow = Flow("./mine:fast-cc?x=1")
    assert (flow.stack, flow.title) == (str(tmp_path / "mine"), "mine:fast-cc?x=1")
    assert Flow(flow.text) == flow
    stack = get(flow.stack)
    assert not stack.status().ready
    assert stack.status().reason == f"put an executable program at {tmp_path / 'mine'}"
    for text, reason in (
        (b"echo no first line", "is no program of Linux; a script begins with #!"),
        (b"#!/no/such/shell -e\n", "the interpreter of .*mine is missing: /no/such/shell"),
    ):
        (tmp_path / "mine").write_bytes(text)
        (tmp_path / "mine").chmod(0o755)
        assert re.search(reason, get(flow.stack).status().reason)
    shutil.copy2(EXAMPLE, tmp_path / "mine")
    assert get(flow.stack).status().ready
    stack.check("anything", {"any": 1}, None)
    (mounted,) = stack.mounts()
    assert stack.program() == [f"{mounted}/mine"]
    assert get(str(tmp_path / "other")).mounts().keys().isdisjoint(stack.mounts())


@pytest.mark.guest
def test_a_gate_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_bytes(EXAMPLE.read_bytes())
    (tmp_path / "mine").chmod(0o755)
    words = ["gate", "./mine:cubic", "--beside", "tcp:reno", "--seeds", "2", "--duration-s", "8"]
    words += ["--rate-mbps", "5", "--json"]
    done = CliRunner().invoke(group, words, standalone_mode=False)
    first = json.loads(done.stdout)
    assert [check["check"] for check in first["checks"]] == [
        *("connection", "conformance", "share")
    ]
    assert done.return_value == 4  # two seeds decide nothing
    again = CliRunner().invoke(
        group, [*words, "--baseline", "gate/baseline.zip", "--out", "again"], standalone_mode=False
    )
    check = json.loads(again.stdout)["checks"][3]
    assert (check["answer"], check["sentence"]) == ("meets", "the same bytes in all 2 runs")
