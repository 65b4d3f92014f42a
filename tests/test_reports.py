"""Reports of others: short, valid commands, and answers that agree with what was measured."""

from __future__ import annotations

import re

import pytest
import reports
from markdown_tables import rows_of
from reports import REPORTS, Report

ROWS = {re.findall(r"\[(.+?)\]", row["report"])[0]: row for row in rows_of("reports")}
RUN = [report for report in REPORTS if report.flow]
CLOSE = 0.2
"""The flow of a report shows its fault if it differs by more from the last control."""


def figures(report: Report) -> list[float]:
    """The medians of a row."""
    return [float(text) for text in re.findall(r"`: ([\d.]+)", ROWS[report.name]["result"])]


def test_each_report_has_a_row():
    assert list(ROWS) == [report.name for report in REPORTS]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_row_is_short_and_has_the_words_of_its_report(report: Report):
    assert len(report.says.split()) <= 15
    assert (ROWS[report.name]["what it says"], ROWS[report.name]["shown"]) == (
        report.says,
        report.answer,
    )


@pytest.mark.parametrize("report", RUN, ids=lambda report: report.name)
def test_a_command_describes_an_experiment_and_has_a_control(report: Report):
    assert report.controls
    assert ROWS[report.name]["command"] == f"`{reports.command(report, report.flow)}`"
    for flow in (report.flow, *report.controls):
        planned = reports.experiment(reports.command(report, flow), seed=2)
        assert (planned.seed, planned.duration_s) == (2, report.duration_s)
        assert len(planned.flows) == 1


@pytest.mark.parametrize("report", RUN, ids=lambda report: report.name)
def test_the_answer_agrees_with_the_figures(report: Report):
    flow, *controls = figures(report)
    apart = abs(flow - controls[-1]) > CLOSE * max(flow, controls[-1])
    if report.answer.startswith(("yes", "no longer")):
        assert apart == report.answer.startswith("yes")


def test_an_answer_without_a_command_says_what_is_missing():
    assert all(report.answer.startswith("no: ") for report in REPORTS if not report.flow)
