"""The checks of a gate: each has an answer in one sentence, and may have a table and a chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import xarray as xr

from qbkit import plots
from qbkit.metrics import Gate, throughput_ratio
from qbkit.metrics.envelopes.trials import TrialEstimate
from qbkit.metrics.verdicts.reasons import interval_text
from qbkit.metrics.verdicts.words import UNDECIDED
from qbkit.studies.conformance import Study
from qbkit.studies.evaluation.answers import Evaluation
from qbkit.studies.evaluation.judgements import DIFFERS, FAILED, SAYS, VARIES, CaseReport
from qbkit.traces.run.early_end import early_end_sentences

if TYPE_CHECKING:
    import altair as alt

Answer = Literal["meets", "fails", "undecided", "shown"]
CONFIDENCE = 0.95
FROM_DRAFT: dict[str, Answer] = {
    SAYS: "meets",
    DIFFERS: "fails",
    VARIES: "undecided",
    FAILED: "undecided",
}
FROM_EVALUATION: dict[str, Answer] = {
    "more": "fails",
    "undecided": "undecided",
    "no more": "meets",
    "not measured": "shown",
}


def worst(answers: Sequence[str]) -> Answer:
    """The answer of several checks: fails, then undecided, then meets; shown where none judges."""
    order: tuple[Answer, ...] = ("fails", "undecided", "meets")
    return next((word for word in order if word in answers), "shown")


@dataclass(frozen=True)
class Check:
    """One question to a build and its answer; "shown" is a number without a bound."""

    name: str
    """Short and constant, as a test case's name."""
    answer: Answer
    sentence: str
    table: pd.DataFrame | None = None
    chart: alt.TopLevelMixin | None = None


def connection_check(runs: Sequence[xr.Dataset]) -> Check:
    """Does its connection last? Fails if one of the build, flow 0, ended before its flow did."""
    ended = [said for run in runs for said in early_end_sentences(run.isel(flow=[0]))]
    if not ended:
        return Check("connection", "meets", f"all {len(runs)} lasted as long as their flows")
    said = f"in {len(ended)} of {len(runs)} runs it ended before its flow did, first: {ended[0]}"
    return Check("connection", "fails", said)


def conformance_check(study: Study, gates: Sequence[Gate]) -> Check:
    """Does it behave like the reference? The verdict, and each bound as a row."""
    table = pd.DataFrame([(gate.name, gate.answer, gate.words) for gate in gates])
    table.columns = pd.Index(["bound", "answer", "in words"])
    return Check(
        "conformance",
        worst([g.answer for g in gates]),
        _conformance_sentence(study, gates),
        table,
        study.plot.envelope(),
    )


def _conformance_sentence(study: Study, gates: Sequence[Gate]) -> str:
    """The verdict, and each bound that is not met; only the bounds if there is no verdict yet.

    A bound is another question than the verdict, and may need more seeds.
    """
    if study.assess().outcome == UNDECIDED:
        return " ".join(f"{gate.words}." for gate in gates)
    open_bounds = (f"{gate.sentence}." for gate in gates if gate.answer != "meets")
    return " ".join([*study.verdict().lines, *open_bounds])


def share_check(
    sender: str, runs: Mapping[str, Sequence[xr.Dataset]], most_percent: float | None
) -> Check:
    """What it takes of the link beside each rival, in percent, with the interval over seeds."""
    found = {rival: _share(each) for rival, each in runs.items()}
    answers: list[Answer] = ["shown"] * len(found)
    words = [f"{mean:.0f} % beside {rival}" for rival, (mean, *_) in found.items()]
    bound = ""
    if most_percent is not None:
        gates = [
            Gate("share", "%", mean, (low, high), -math.inf, most_percent, len(runs[rival]))
            for rival, (mean, low, high) in found.items()
        ]
        answers = [gate.answer for gate in gates]
        words = [
            f"{gate.value:.1f}{interval_text(gate.interval, 1)} % beside {rival} ({gate.answer})"
            for rival, gate in zip(found, gates, strict=True)
        ]
        bound = f", for at most {most_percent:g} %{_seeds_for_shares(gates)}"
    columns = ["beside", "share (%)", "95 % from", "to", "answer"]
    rows = [(rival, *found[rival], word) for rival, word in zip(found, answers, strict=True)]
    table = pd.DataFrame(rows, columns=columns)
    drawn = [
        (f"Share of the link beside {rival} (%)", name, value)
        for rival, each in runs.items()
        for run in each
        for name, value in _both(sender, rival, run)
    ]
    values = pd.DataFrame(drawn, columns=["panel", "sender", "value"])
    chart = plots.section_chart(
        values, list(dict.fromkeys(values["sender"])), title=f"{sender}: shares"
    )
    return Check("share", worst(answers), f"it takes {', '.join(words)}{bound}", table, chart)


def _both(sender: str, rival: str, run: xr.Dataset) -> list[tuple[str, float]]:
    ours = 100 * throughput_ratio(run, 0, 1)
    return [(sender, ours), (f"{rival} (rival)" if rival == sender else rival, 100 - ours)]


def _share(runs: Sequence[xr.Dataset]) -> tuple[float, float, float]:
    """Mean share in percent, and its interval; NaN with one seed."""
    values = 100 * np.array([throughput_ratio(run, 0, 1) for run in runs])
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return mean, math.nan, math.nan
    error = float(values.std(ddof=1)) / math.sqrt(count)
    return mean, *TrialEstimate(mean, error, count - 1).interval(CONFIDENCE, 0.0, 100.0)


def _seeds_for_shares(gates: Sequence[Gate]) -> str:
    """How many seeds decide all shares that are open; empty unless they decide the check."""
    needed = [gate.seeds_needed for gate in gates if gate.answer == "undecided"]
    if not needed or any(gate.answer == "fails" for gate in gates):
        return ""
    known = [number for number in needed if number is not None]
    about = f", about {max(known)} can" if len(known) == len(needed) else ""
    return f"; {gates[0].seeds} seeds cannot decide{about}"


def draft_check(report: CaseReport) -> Check:
    """The test cases of the draft of BBR."""
    frame = report.frame().drop(columns="command")
    answer = worst([FROM_DRAFT.get(each, "shown") for each in report.answers])
    sentence = f"of {len(frame)} cases of the draft: {_counted(frame['answer'])}"
    return Check("bbr-draft", answer, sentence, frame)


def evaluation_check(evaluation: Evaluation) -> Check:
    """The questions of RFC 9743."""
    summary = evaluation.summary()
    sentence = f"of {len(summary)} questions: {_counted(summary['answer'])}"
    table = summary[["section", "title", "sentence"]]
    return Check("evaluation", FROM_EVALUATION[evaluation.worst], sentence, table)


def _counted(answers: pd.Series) -> str:
    """How often there is each answer: "3 as the draft says, 1 differs"."""
    return ", ".join(f"{count} {word}" for word, count in answers.value_counts().items())
