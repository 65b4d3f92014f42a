"""The first version that differs is found, among releases and among commits of a clone."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic import synthetic_run

import qbkit as qb
from qbkit import stacks
from qbkit.cli.group import group
from qbkit.errors import MetricError, QbkitError, SpecError, StackNotReady
from qbkit.metrics.verdicts.permutation import difference_p
from qbkit.spec import Bottleneck
from qbkit.stacks.external.scaffold import EXAMPLE
from qbkit.studies.bisection import bisect as function
from qbkit.studies.bisection.bisect import _Trials, spread
from qbkit.studies.bisection.measures import measure_of, measures
from qbkit.studies.bisection.search import search
from qbkit.studies.bisection.versions import Clone, Commit, commits
from qbkit.studies.lone import Lone

CASE = Path(__file__).parents[1] / "data/cases/bbr-120-explained"
NOISE = np.array([-0.02, 0.01, 0.0, 0.02, -0.01])


def values_p_by_hand(tests, references):
    """Fraction of the relabellings whose means are at least as far apart."""
    every, n = [*tests, *references], len(tests)
    apart = []
    for chosen in combinations(range(len(every)), n):
        ours = [every[i] for i in chosen]
        rest = [v for i, v in enumerate(every) if i not in chosen]
        apart.append(abs(np.mean(ours) - np.mean(rest)))
    return np.mean([value >= apart[0] - 1e-12 for value in apart])


def test_p_is_the_fraction_of_relabellings_that_are_as_far_apart():
    a, b = np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.5, 5.0, 4.5, 7.0])
    assert difference_p(a, b) == pytest.approx(values_p_by_hand(a, b))
    assert difference_p(np.full(5, 1242.0), np.full(5, 1514.0)) == pytest.approx(2 / 252)
    assert difference_p(np.ones(5), np.ones(5)) == 1.0
    assert math.isnan(difference_p(np.array([1.0, math.nan]), np.ones(2)))


def test_the_noise_floor_is_the_mean_difference_of_two_trials():
    assert spread(np.array([1.0, 2.0, 4.0])) == pytest.approx((1 + 3 + 2) / 3)


@pytest.mark.parametrize("count", [2, 3, 9, 100])
def test_the_search_finds_every_first_and_asks_few(count):
    for first in range(1, count):
        asked = []

        def side(i, first=first, asked=asked):
            asked.append(i)
            return "bad" if i >= first else "good"

        found = search(count, side)
        assert (found.last_good, found.first_bad) == (first - 1, first)
        assert len(asked) == len(set(asked)) <= math.ceil(math.log2(count))
        assert not {0, count - 1} & set(asked)


def test_what_is_unknown_leaves_a_range():
    found = search(9, lambda i: "unknown" if i in (3, 4, 5) else "bad" if i > 4 else "good")
    assert (found.last_good, found.first_bad) == (2, 6)
    found = search(9, lambda _: "unknown")
    assert (found.last_good, found.first_bad) == (0, 8)
    # What is unknown outside of the last interval does not matter.
    found = search(9, lambda i: "unknown" if i == 4 else "bad" if i > 6 else "good")
    assert (found.last_good, found.first_bad) == (6, 7)


def versions(*titles):
    return [SimpleNamespace(name=title, title=title, stack=title) for title in titles]


@pytest.fixture
def trials(monkeypatch):
    """A bisection of five versions, whose numbers are given."""

    def made(*means):
        def measured(self, i):
            if means[i] is None:
                raise StackNotReady("cargo cannot build it")
            return means[i] + NOISE

        monkeypatch.setattr(_Trials, "_measured", measured)
        cause = SimpleNamespace(cause_line="Most likely …")
        monkeypatch.setattr(_Trials, "_explained", lambda *_: cause)
        names = versions(*(f"x@{i}" for i in range(len(means))))
        measure = measure_of("share")
        said = []
        how = ("cubic", "tcp:cubic", Bottleneck(), 10.0, 5, False, said.append)
        return _Trials(names, measure, *how).bisected()

    return made


def test_the_answer_names_the_first_its_evidence_and_its_cause(trials):
    found = trials(0.5, 0.5, 0.5, 0.7, 0.7)
    assert found.lines == (
        "x@3 is the first that differs: share of the link 0.7 instead of 0.5 of x@2.",
        "Evidence: p = 0.0079, two trials of x@2 differ by 0.02.",
        "Most likely …",
    )
    assert found.frame().side.tolist() == ["good", "good", "bad", "bad"]


def test_a_command_for_a_commit_is_left_out(trials):
    said = ["Its window reports the same.", "To confirm it, run qbkit run x-0123456789:cubic."]
    found = replace(trials(0.5, 0.7), explained=SimpleNamespace(next_lines=said))
    assert found.next_lines == said
    commit = Commit(Clone("x", Path("/x"), "make"), "0123456789abcdef", "a change")
    assert replace(found, versions=[*found.versions, commit]).next_lines == said[:1]


def test_the_answer_is_said_before_its_cause_is_looked_for(monkeypatch):
    said = []
    how = ("cubic", "tcp:cubic", Bottleneck(), 10.0, 5, False, said.append)
    trial = _Trials(versions("x@1", "x@2", "x@3"), measure_of("share"), *how)
    monkeypatch.setattr(_Trials, "_competing", lambda *_: [])
    for name in ("lone", "explanation_of", "Study"):
        monkeypatch.setitem(_Trials._explained.__globals__, name, lambda *_, **__: [])
    trial._explained(1, 0)
    (line,) = said
    assert line.startswith("x@2 is the first that differs; looking for the cause: it and x@1 run")
    trial._explained(2, 0)  # the one between was skipped, and may be the first
    assert said[-1].startswith("x@3 is the first of those run that differs; looking")


def test_the_cause_has_the_runs_that_show_it(monkeypatch):
    study = qb.load_explanation(CASE).study
    how = ("cubic", "tcp:cubic", Bottleneck(), 10.0, 5, False, lambda _: None)
    trial = _Trials(versions("x@1", "x@2"), measure_of("share"), *how)
    sides = [Lone([run.assign(x=i)]) for i, run in enumerate([synthetic_run()] * 2)]
    monkeypatch.setattr(_Trials, "_competing", lambda *_: [])
    monkeypatch.setitem(_Trials._explained.__globals__, "Study", lambda *_: study)
    monkeypatch.setitem(_Trials._explained.__globals__, "lone", lambda *_, **__: sides)
    assert [int(run.x) for run in trial._explained(1, 0).alone] == [0, 1]


def test_a_build_that_fails_is_skipped_and_named(trials):
    found = trials(0.5, 0.5, None, 0.7, 0.7)
    assert found.lines[0].startswith("The first that differs is one of x@2, x@3: ")
    assert "x@2 skipped: cargo cannot build it" in found.lines[1]
    assert [version.name for version in found.between] == ["x@2"]


def test_a_version_that_does_not_show_the_metric_is_skipped_as_that(trials):
    found = trials(0.5, 0.5, math.nan, 0.7, 0.7)
    assert "x@2 skipped: share is not seen in 5 of 5 runs" in found.lines[1]


def test_a_version_between_both_ends_that_differs_from_both_is_the_first(trials):
    assert trials(0.5, 0.5, 0.6, 0.7, 0.7).lines[0].startswith("x@2 is the first that differs")


def test_ends_that_do_not_differ_are_one_sentence(trials):
    with pytest.raises(MetricError, match=r"x@4 does not differ from x@0: share of the link 0\.5 "):
        trials(0.5, 0.7, 0.7, 0.7, 0.5)
    with pytest.raises(MetricError, match="share is not seen in 5 of 5 runs of x@0"):
        trials(math.nan, 0.5, 0.5)


def test_measures_are_numbers_of_each_run():
    runs = [synthetic_run(duration_s=6, rate_mbps=2, seed=seed) for seed in (1, 2)]
    mbps = runs[0].throughput_mbps.mean("time").values
    assert measure_of("share").values(runs, [])[0] == pytest.approx(mbps[0] / mbps.sum())
    column = measure_of("loss_percent").values(runs, [])
    assert column[1] == qb.metrics.summary(runs[1]).loss_percent.iloc[0]
    assert measure_of("beta") is not measure_of("share")
    assert measure_of("beta").name == "decrease_factor"
    assert measure_of("packet_bytes").values(runs, []).tolist() == [1514, 1514]
    assert {"share", "conformance", "reverted_reductions_percent"} <= set(measures())
    with pytest.raises(MetricError, match=r"no metric 'shar' \(did you mean share\?\); choose"):
        measure_of("shar")


RELEASED = ["0.9.0", "0.10.0", "0.11.0-rc1", "0.11.0", "0.8.1", "0.12.0"]


@pytest.mark.parametrize(
    ("good", "bad", "how", "sentence"),
    [
        ("quinn", "quinn@0.11.8", {}, "good = quinn: write STACK@VERSION, as in quinn@0.11.2"),
        ("quinn@0.9.6", "noq@1.0.0", {}, "quinn@0.9.6 and noq@1.0.0 are two stacks; give two ver"),
        ("tquic@0.9.0", "tquic@0.9.0", {}, "tquic@0.9.0 is both good and bad; give two versions"),
        ("tquic@0.12.0", "tquic@0.9.0", {}, "tquic@0.12.0 came after tquic@0.9.0; good is the ea"),
        ("tquic@0.9.0", "tquic@0.9.9", {}, "there is no version 0.9.9 of the crate tquic for thi"),
        ("tcp@6.1", "tcp@6.2", {}, "qbkit builds no earlier releases of tcp; it builds those of"),
        ("tquic@0.9.0", "tquic@0.12.0", {"controller": "bbr9"}, "tquic@0.9.0 has no controller"),
        ("tquic@0.9.0", "tquic@0.12.0", {"reference": "tcp:cubix"}, "tcp has no controller 'cub"),
        ("tquic@0.9.0", "tquic@0.12.0", {"seeds": 3}, "seeds = 3 cannot decide; give 4 or more"),
        ("tquic@0.9.0", "tquic@0.12.0", {"duration_s": 3}, "duration_s = 3: a hull needs 3 wind"),
        ("tquic@0.9.0", "tquic@0.12.0", {"clone": "."}, "commits need both the folder of a clone"),
    ],
)
def test_what_cannot_be_bisected_is_one_sentence(good, bad, how, sentence, monkeypatch):
    monkeypatch.setattr("qbkit.stacks.releases.crates.crate_versions", lambda _: RELEASED)
    with pytest.raises(QbkitError, match=f"^{re.escape(sentence)}"):
        function(good, bad, **how)


def test_the_releases_between_are_in_order_without_candidates(monkeypatch):
    from qbkit.studies.bisection.versions import releases

    monkeypatch.setattr("qbkit.stacks.releases.crates.crate_versions", lambda _: RELEASED)
    found = [release.title for release in releases("tquic", "0.9.0", "0.12.0")]
    assert found == ["tquic@0.9.0", "tquic@0.10.0", "tquic@0.11.0", "tquic@0.12.0"]


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone of a program whose third commit does not build; the fourth calls Reno CUBIC."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("QBKIT_STACKS", str(tmp_path / "stacks.toml"))
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path / "runs"))

    def git(*words):
        name = ["-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run(["git", "-C", folder, *name, *words], check=True, capture_output=True)

    git("init", "-q")
    source = (EXAMPLE / "flow.py").read_text()
    reno = source.replace("controller.encode()", 'b"reno"')
    for tag, text in (
        ("one", source),
        ("two", source + "# a comment\n"),
        ("three", "error: no program\n"),
        ("four", reno),
        ("five", reno + "# a comment\n"),
    ):
        (folder / "flow.py").write_text(text)
        git("add", "flow.py")
        git("commit", "-qm", f"{tag}: a change")
        git("tag", tag)
    table = f'[stack.mine]\nprogram = "{folder}/client"\ncontrollers = ["cubic"]\n'
    table += 'connect = ["connect", "{ip}", "{port}", "{controller}", "{bytes}"]\n'
    (tmp_path / "stacks.toml").write_text(table + 'listen = ["listen", "{port}"]\n')
    shutil.copy2(EXAMPLE / "flow.py", folder / "client")
    return folder


BUILD = "python3 -m py_compile flow.py && cp flow.py client && chmod +x client"


@pytest.mark.parametrize(
    ("good", "bad", "sentence"),
    [
        ("mine@one", "mine@six", "has no commit six"),
        (
            "mine@five",
            "mine@one",
            "five is no earlier commit on the line of first parents",
        ),
        ("mine@five", "mine@HEAD", "five and HEAD are the same commit; give two"),
        ("mine@five", "mine@mine@1.2", "has no commit mine@1.2"),  # may be the name of a tag
        ("other@one", "other@five", "[stack.other] is not in "),
    ],
)
def test_commits_that_cannot_be_bisected_are_one_sentence(clone, good, bad, sentence):
    with pytest.raises(SpecError, match=re.escape(sentence)):
        function(good, bad, clone=clone, build=BUILD)


def test_a_controller_that_the_commits_lack_is_one_sentence(clone):
    with pytest.raises(SpecError, match="mine has no controller 'reno'"):
        function("mine@one", "mine@five", clone=clone, build="false", controller="reno")


def test_a_folder_that_is_no_clone_is_one_sentence(clone, tmp_path):
    with pytest.raises(SpecError, match="runs is no clone; give the folder of a git repository"):
        (tmp_path / "runs").mkdir()
        function("mine@one", "mine@five", clone=tmp_path / "runs", build=BUILD)


def test_a_folder_inside_a_clone_is_one_sentence(clone):
    (clone / "part").mkdir()
    with pytest.raises(SpecError, match=r"part is the folder part/ of a clone; give the clone's"):
        function("mine@one", "mine@five", clone=clone / "part", build=BUILD)


def test_a_build_without_a_program_fails_until_there_is_one(clone, tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    commit = commits(Clone("mine", clone, r"printf '\377' >&2; sh ../../../build"), "one", "two")[1]
    (tmp_path / "cache").mkdir()
    script = tmp_path / "cache/build"
    script.write_text("exit 1\n")
    with pytest.raises(StackNotReady, match="cannot build mine@"):  # and what it prints is no text
        commit.prepare(lambda _: None)
    script.write_text("true\n")
    for _ in range(2):
        with pytest.raises(
            StackNotReady, match=r"ended well on mine@.* but its program is not the"
        ):
            commit.prepare(lambda _: None)
    script.write_text(BUILD + "\n")
    commit.prepare(lambda _: None)
    assert stacks.get(commit.stack).status().ready


@pytest.mark.guest
def test_commits_of_a_clone_are_built_run_and_bisected(clone):
    words = ["bisect", "--good", "mine@one", "--bad", "mine@five", "--metric", "beta"]
    words += ["--clone", str(clone), "--build", BUILD, "--rate-mbps", "4", "--rtt-ms", "50"]
    words += ["--seeds", "4", "--duration-s", "20", "--json"]
    done = CliRunner().invoke(group, words, standalone_mode=False)
    assert done.exception is None, done.exception
    found = json.loads(done.stdout)
    sides = [row["side"] for row in found["versions"]]
    assert [side for side in sides if side in ("good", "bad")] == ["good", "good", "bad", "bad"]
    assert "(three: a change)" in found["lines"][0]
    assert "(four: a change): fraction of the window left" in found["lines"][0]
    assert "cannot build" in sides[2]
    assert re.search(r"a loss leaves 0\.[45]\d* of its window, not 0\.[67]", found["lines"][2])


def test_another_build_command_has_programs_of_its_own(tmp_path, monkeypatch):
    clone = tmp_path / "clone"
    clone.mkdir()
    for words in (
        ["init", "-q"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "a"],
    ):
        subprocess.run(["git", "-C", clone, *words], check=True)
    sha = subprocess.check_output(["git", "-C", clone, "rev-parse", "HEAD"], text=True).strip()
    file = tmp_path / "stacks.toml"
    file.write_text(f'[stack.twice]\nprogram = "{clone}/mine"\ncontrollers = ["cubic"]\n')
    monkeypatch.setenv("QBKIT_STACKS", str(file))
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    for word in ("one", "two"):
        command = f"printf '#!/bin/sh\\n# {word}\\n' > mine && chmod +x mine"
        commit = Commit(Clone("twice", clone, command), sha, "a")
        commit.prepare(lambda _: None)
        assert word in Path(stacks.get(commit.stack).file).read_text()
