"""An evaluation as one HTML page, as Markdown for a draft, and as JSON."""

from __future__ import annotations

import json
import math
from html import escape

import pandas as pd

from qbkit.json_words import plain_rows
from qbkit.markdown import markdown_table
from qbkit.plots.drawing.render import page_fragment, without_bundle
from qbkit.spec.book import Criterion
from qbkit.studies.evaluation.answers import WORDS, Evaluation
from qbkit.studies.evaluation.badges import CSS, badge, failures
from qbkit.studies.evaluation.commands import command
from qbkit.studies.evaluation.numbers import three_digits
from qbkit.studies.evaluation.shelf import is_shipped
from qbkit.studies.report import html_page

METHOD = (
    "Each number is compared with that of the standard controller ({standards}) that does worst in "
    "the same setting. Worse means: the 95 % interval of the difference lies beyond the margin. "
    "Undecided means: it holds the margin, and more seeds would decide it; or runs failed. The "
    "intervals are not corrected for the number "
    "of comparisons, so look twice at a single one. RFC 9743 sets no thresholds; the margins are "
    "ours. Harm is what others lose beside the sender: of throughput as a part of that without it, "
    "of delay, loss and times as a part of those beside it."
)


def page(evaluation: Evaluation) -> str:
    """One HTML page that opens without a network."""
    book, frame = evaluation.book, evaluation.frame()
    parts, drawn = [summary_html(evaluation)], False
    for criterion in book.criteria:
        chart = _chart(evaluation, criterion)
        once = without_bundle(chart) if drawn else chart
        parts.append(_section(evaluation, criterion, once, frame))
        drawn = drawn or bool(chart)
    title = f"{evaluation.sender} along {book.title}"
    method = METHOD.format(standards=" or ".join(book.standards))
    how = f"<details><summary>How it compares</summary><p>{escape(method)}</p></details>"
    return html_page(title, CSS, "".join([parts[0], how, *parts[1:]]))


def summary_html(evaluation: Evaluation) -> str:
    """The answers, a line each."""
    rows = [
        f'<tr><td><a href="#s{escape(one.section)}">{escape(one.section)}</a></td>'
        f"<td>{escape(one.title)}</td><td>{_badge(evaluation.answer(one))}</td>"
        f"<td>{escape(evaluation.detail(one))}</td></tr>"
        for one in evaluation.book.criteria
    ]
    table = f"<table>{''.join(rows)}</table>"
    return f"<p>{escape(_facts(evaluation))}</p>{table}{failures(evaluation.failed)}"


def _facts(evaluation: Evaluation) -> str:
    """What was evaluated, and how much of it."""
    kind, book = "quick" if evaluation.quick else "whole", evaluation.book
    return (
        f"{evaluation.sender}, {kind} evaluation, {evaluation.seeds} seeds, book {book.name} "
        f"version {book.version}."
    )


def markdown(evaluation: Evaluation) -> str:
    """The answers and their numbers as Markdown, to be quoted in an Internet-Draft."""
    book = evaluation.book
    lines = [f"# {evaluation.sender} along {book.title}", "", _facts(evaluation), ""]
    lines += [METHOD.format(standards=" or ".join(book.standards)), ""]
    lines += [f"A run failed: {reason}\n" for reason in dict.fromkeys(evaluation.failed)]
    for criterion in book.criteria:
        lines += [f"## {criterion.section} {criterion.title}", "", criterion.question, ""]
        lines += [f"**{evaluation.sentence(criterion)}**", ""]
        lines += [f"{sentence}\n" for sentence in _missing(evaluation, criterion)]
        lines += _markdown_table(evaluation, criterion)
    return "\n".join(lines).rstrip() + "\n"


def as_json(evaluation: Evaluation) -> str:
    """Answers, findings and every number as a JSON document."""
    book = evaluation.book
    of_book = {"name": book.name, "version": book.version, "source": book.source}
    if not is_shipped(book):
        of_book["whole"] = book.model_dump(mode="json")
    document = {
        "sender": evaluation.sender,
        "book": of_book,
        "quick": evaluation.quick,
        "seeds": evaluation.seeds,
        "answers": evaluation.summary().to_dict(orient="records"),
        "findings": plain_rows(evaluation.frame().to_dict("records")),
        "failed": list(evaluation.failed),
        "left_out": [[*key, why] for key, why in evaluation.left_out.items()],
        "columns": list(evaluation.values.columns),
        "values": [list(row.values()) for row in plain_rows(evaluation.values.to_dict("records"))],
    }
    return _lines(document)


def _badge(answer: str) -> str:
    return badge(answer.split()[0], WORDS[answer])


def _section(evaluation: Evaluation, criterion: Criterion, chart: str, frame: pd.DataFrame) -> str:
    missing = "".join(f"<p>{escape(each)}</p>" for each in _missing(evaluation, criterion))
    head = (
        f'<h2 id="s{escape(criterion.section)}">{escape(criterion.section)} '
        f"{escape(criterion.title)}</h2><p>{escape(criterion.question)}</p>"
        f'<div class="verdict">{_badge(evaluation.answer(criterion))} '
        f"{escape(evaluation.detail(criterion))}</div>{missing}"
    )
    found = evaluation.of(criterion)
    if not found:
        return head
    table = frame[frame["section"] == criterion.section].drop(columns="section")
    numbers = table.to_html(index=False, border=0, float_format=three_digits, na_rep="–")
    commands = "".join(
        f"<li><code>{escape(one)}</code></li>" for one in _commands(evaluation, criterion)
    )
    return (
        f"{head}{chart}<details><summary>Numbers and commands</summary>"
        f'<div class="scroll">{numbers}</div><ul>{commands}</ul></details>'
    )


def _missing(evaluation: Evaluation, criterion: Criterion) -> list[str]:
    """What of a section was not measured: by the book, and the scenarios that were not run."""
    found = evaluation.left_out_of(criterion).items()
    left_out = [f"Left out: {name} ({why})." for name, why in found]
    if criterion.not_measured and evaluation.of(criterion):
        return [f"Not measured: {criterion.not_measured}.", *left_out]
    return left_out


def _commands(evaluation: Evaluation, criterion: Criterion) -> list[str]:
    return [
        command(scenario, setting, evaluation.sender, 1)
        for scenario in criterion.scenarios
        if scenario.quick or not evaluation.quick
        if scenario.name not in evaluation.left_out_of(criterion)
        for setting in scenario.settings(quick=evaluation.quick)
    ]


def _chart(evaluation: Evaluation, criterion: Criterion) -> str:
    if not evaluation.of(criterion):
        return ""
    return page_fragment(evaluation.chart(criterion.section).to_dict())


def _markdown_table(evaluation: Evaluation, criterion: Criterion) -> list[str]:
    found = evaluation.of(criterion)
    if not found:
        return []
    rows = []
    for one in found:
        c = one.compared
        numbers = (c.value, c.bar, c.low, c.high, c.margin)
        ours, bar, low, high, margin = map(three_digits, numbers)
        span = f"{low} to {high}" if math.isfinite(c.low) else "–"
        bar = f"{bar} ({c.bar_name})"
        what = one.quantity_with_unit
        rows.append((one.place, what, ours, bar, span, margin, WORDS[c.answer]))
    head = ("where", "what", evaluation.sender, "bar", "worse by (95 %)", "margin", "answer")
    return [*markdown_table(head, rows), ""]


def _lines(document: dict[str, object]) -> str:
    """JSON with a line for each row of a list, so that a change is a changed line."""
    parts = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in value)
            parts.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{" + ",\n".join(parts) + "}\n"
