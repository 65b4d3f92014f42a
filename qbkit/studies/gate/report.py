"""A gate's results in a folder: a Markdown summary with pictures, JUnit XML, and a baseline."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from qbkit.errors import StoreError
from qbkit.files import write_whole, writing
from qbkit.json_words import plain_rows
from qbkit.markdown import markdown_table
from qbkit.plots import save_chart
from qbkit.studies.gate.baseline import write_baseline
from qbkit.studies.gate.checks import Answer, Check
from qbkit.studies.gate.gate import Gated

SUMMARY, JUNIT, BASELINE = "summary.md", "junit.xml", "baseline.zip"
SIGNS: dict[Answer, str] = {"meets": "✅", "fails": "❌", "undecided": "❔", "shown": "ℹ️"}
MOST_ROWS = 30


def make_folder(folder: Path) -> None:
    """Make the folder for the results; StoreError where that is not possible."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is no folder; choose another with --out", refused=True)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)


def save_gate(gated: Gated, folder: Path) -> Path:
    """Write everything into a folder, and return the path of the summary."""
    make_folder(folder)
    for check in gated.checks:
        if check.chart is not None:
            save_chart(check.chart, folder / f"{check.name}.png")
    write_baseline(folder / BASELINE, gated.study, gated.parameters)
    with writing(folder):
        write_whole(folder / JUNIT, junit(gated))
        write_whole(folder / SUMMARY, markdown(gated).encode())
    return folder / SUMMARY


def markdown(gated: Gated) -> str:
    """The checks in a table, then each with its numbers and its picture."""
    lines = [f"# {SIGNS[gated.answer]} {gated.sender}: {gated.answer}", ""]
    cost = f"its runs take {gated.cpu_s:.0f} processor seconds"
    lines += [f"Beside {gated.reference}. {gated.network}; {cost}.", ""]
    lines += _table(
        pd.DataFrame(
            [(f"{SIGNS[c.answer]} {c.name}", c.answer, c.sentence) for c in gated.checks],
            columns=["check", "answer", "in words"],
        )
    )
    for check in gated.checks:
        below = _table(check.table) if check.table is not None and len(check.table) else []
        below += [f"![{check.name}]({check.name}.png)", ""] if check.chart is not None else []
        lines += [f"## {check.name}", "", *below] if below else []
    return "\n".join(lines).rstrip() + "\n"


def _table(frame: pd.DataFrame) -> list[str]:
    """The rows as a table of Markdown."""
    rows = [map(_cell, row) for row in frame.head(MOST_ROWS).to_numpy().tolist()]
    more = [f"and {len(frame) - MOST_ROWS} more rows", ""] if len(frame) > MOST_ROWS else []
    return [*markdown_table([*frame], rows), "", *more]


def _cell(value: object) -> object:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3g}"
    return value


def junit(gated: Gated) -> bytes:
    """The checks as test cases: one that is undecided counts as skipped, a number as passed."""
    answers = [check.answer for check in gated.checks]
    suite = ElementTree.Element(
        "testsuite",
        name=f"qbkit gate {gated.sender}",
        tests=str(len(answers)),
        failures=str(answers.count("fails")),
        skipped=str(answers.count("undecided")),
        errors="0",
        time=f"{gated.cpu_s:.0f}",
    )
    for check in gated.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=gated.sender, name=check.name)
        outcome = {"fails": "failure", "undecided": "skipped"}.get(check.answer)
        if outcome:
            ElementTree.SubElement(case, outcome, message=check.sentence)
        ElementTree.SubElement(case, "system-out").text = check.sentence
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def to_dict(gated: Gated) -> dict[str, Any]:
    """The answers, ready for JSON."""
    return {
        "sender": gated.sender,
        "reference": gated.reference,
        "network": gated.network,
        "answer": gated.answer,
        "cpu_s": round(gated.cpu_s, 1),
        "checks": [
            {"check": c.name, "answer": c.answer, "sentence": c.sentence, "rows": _records(c)}
            for c in gated.checks
        ],
    }


def _records(check: Check) -> list[dict[str, Any]]:
    return [] if check.table is None else plain_rows(check.table.to_dict("records"))
