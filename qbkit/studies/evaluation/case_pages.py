"""A sender along the cases of a draft as one HTML page, and as Markdown for a draft."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd
import xarray as xr

from qbkit import store
from qbkit.errors import StoreError
from qbkit.markdown import markdown_table
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots import timeline_chart
from qbkit.plots.drawing.render import page_fragment, without_bundle
from qbkit.spec.case_book import Expectation
from qbkit.studies.evaluation.badges import CSS, badge, failures
from qbkit.studies.evaluation.judgements import DIFFERS, SAYS, VARIES, CaseReport, Judgement, Missed
from qbkit.studies.report import html_page
from qbkit.traces.run.ends import left_queue_s
from qbkit.traces.run.journey import Fate

BADGES = {DIFFERS: "more", SAYS: "no"}
SHOWN = (DIFFERS, VARIES)
"""Answers that have a section of their own."""
PACKETS = 12
METHOD = (
    "A case is as the draft says if every seed meets all that it expects, and differs if none "
    "does. The bounds are ours, and wide: a value outside shows that the sender does something "
    "else, a value inside does not prove that it does this."
)


def page(report: CaseReport) -> str:
    """One HTML page that opens without a network: a table, then each case that differs."""
    parts, drawn = [_table(report)], False
    for one in report.judgements:
        if one.answer in SHOWN:
            run = _run(one)
            chart = _chart(report, one, run) if run is not None else ""
            parts.append(_section(one, without_bundle(chart) if drawn else chart, run))
            drawn = drawn or bool(chart)
    return html_page(f"{report.sender} along {report.book.title}", CSS, "".join(parts))


def markdown(report: CaseReport) -> str:
    """The table of the cases as Markdown, to be quoted in an Internet-Draft."""
    lines = [f"# {report.sender} along {report.book.title}", "", METHOD, "", f"{report.sentence}."]
    summary = report.summary()
    lines += ["", *markdown_table([*summary], summary.itertuples(index=False))]
    commands = [f"- {one.case.number}: `{one.command}`" for one in report.judgements if one.command]
    return "\n".join([*lines, "", "## Commands", "", *commands]) + "\n"


def _table(report: CaseReport) -> str:
    book = report.book
    rows = "".join(
        f"<tr><td>{_link(one)}</td><td>{escape(one.case.title)}</td>"
        f"<td>{_badge(one)}</td><td>{escape(one.seen)}</td></tr>"
        for one in report.judgements
    )
    return (
        f"<p>{escape(report.sentence)}. Book {escape(book.name)} version {book.version}, from "
        f'<a href="{escape(book.source)}">{escape(book.source)}</a>.</p><table>{rows}</table>'
        f"{failures(report.failed)}"
        f"<details><summary>How it judges</summary><p>{METHOD}</p></details>"
    )


def _badge(one: Judgement) -> str:
    return badge(BADGES.get(one.answer, ""), one.answer)


def _link(one: Judgement) -> str:
    number = one.case.number
    return f'<a href="#c{number}">{number}</a>' if one.answer in SHOWN else f"{number}"


def _section(one: Judgement, chart: str, run: xr.Dataset | None) -> str:
    wanted = "".join(
        f"<li>{escape(each.words)}: {wanted_text(each)}</li>" for each in one.case.expects
    )
    packets = "" if run is None else "".join(_packets_html(run, each) for each in one.missed)
    return (
        f'<h2 id="c{one.case.number}">Case {one.case.number}: {escape(one.case.title)}</h2>'
        f'<div class="verdict">{_badge(one)} '
        f"{escape(one.seen)}</div><p>The case expects:</p><ul>{wanted}</ul>{chart}"
        f"<details><summary>Packets and command</summary>{packets}"
        f"<p><code>{escape(one.command)}</code></p></details>"
    )


def wanted_text(one: Expectation) -> str:
    """What is measured of an expectation, and its bounds with their unit."""
    measure = MEASURES[one.measure]
    return escape(f"{measure.words} {one.bound} {measure.unit}".strip())


def _run(one: Judgement) -> xr.Dataset | None:
    """The first run of a case; None if it is no longer stored."""
    try:
        return store.load_run(store.path_of(one.run))
    except StoreError:
        return None


def _chart(report: CaseReport, one: Judgement, run: xr.Dataset) -> str:
    title = f"{report.sender}, case {one.case.number}, first seed"
    return page_fragment(timeline_chart(run, title=title).to_dict())


def _packets_html(run: xr.Dataset, missed: Missed) -> str:
    table = packets_at(run, missed.moment_s).to_html(index=False, border=0, na_rep="–")
    return (
        f"<p>Where it shows most ({escape(missed.expectation.words)}), at {missed.moment_s:.4g} s:"
        f"</p><div class='scroll'>{table}</div>"
    )


def packets_at(run: xr.Dataset, at_s: float) -> pd.DataFrame:
    """The packets of a run that came to the queue next to a moment, in order of time.

    A row each: time, flow, size, the time until it had left the queue, and what became of it.
    """
    sent_s = run["packet_time_s"].values
    middle = int(np.searchsorted(sent_s, at_s))
    first = max(min(middle - PACKETS // 2, len(sent_s) - PACKETS), 0)
    some = run.isel(packet=slice(first, first + PACKETS))
    wait_s = left_queue_s(some) - some["packet_time_s"].values
    labels = flow_labels(run)
    return pd.DataFrame(
        {
            "time (s)": np.round(some["packet_time_s"].values, 6),
            "flow": [labels[i] for i in some["packet_flow"].values],
            "size (B)": some["packet_size_bytes"].values,
            "until it left the queue (ms)": np.round(wait_s * 1e3, 3),
            "fate": [Fate(int(i)).name.lower().replace("_", " ") for i in some["packet_fate"]],
        }
    )
