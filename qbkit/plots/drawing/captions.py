"""Headings of charts: a title, one line below it, and the rest on demand."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt

from qbkit.metrics.envelopes.envelope import Envelope, definition_of
from qbkit.metrics.verdicts.assessment import Assessment
from qbkit.metrics.verdicts.reasons import interval_text, sentence

PIXELS_PER_LETTER = 5.4
"""Mean width of a letter in a subtitle."""
WIDER = 1.15
"""A first sentence may be so many times as long: most letters are narrower."""
MOST_LETTERS = 135
"""As many fit into the subtitle of a page, however wide the chart is (``68em`` of chart.css)."""


def heading(title: str, sentences: Iterable[str], width: int) -> dict[str, Any]:
    """Title, subtitle and description of a chart of ``width`` pixels, as its properties.

    The subtitle has the sentences that fit into one line. The others are the description, one a
    line, which `qbkit.plots.drawing.render` folds below it.
    """
    letters = min(max(20, int(width / PIXELS_PER_LETTER)), MOST_LETTERS)
    line, rest = "", list(sentences)
    while rest and len(longer := _and_then(line, rest[0])) <= letters:
        line = longer
        rest.pop(0)
    if not line and rest:  # a line that is a few letters wider says more than one without its end
        line = textwrap.shorten(rest[0], int(letters * WIDER), placeholder=" …")
        if line == rest[0]:
            rest.pop(0)
    found: dict[str, Any] = {"title": alt.TitleParams(title, subtitle=line)}
    return {**found, "description": "\n".join(rest)} if rest else found


def _and_then(line: str, words: str) -> str:
    """A line and one more sentence; a full stop parts them where the line ends without one."""
    stop = "." if line[-1:].isalnum() else ""
    return f"{line}{stop} {words}".strip()


def envelope_sentences(
    envelopes: Mapping[str, Envelope], assessment: Assessment | None = None
) -> list[str]:
    """The assessment's verdict and numbers, then definition and parameters of the envelopes."""
    sentences = [] if assessment is None else assessment_sentences(assessment)
    sentences += _common({k: definition_of(e.definition).title for k, e in envelopes.items()})
    return sentences + _common({k: _parameters(e) for k, e in envelopes.items()})


def assessment_sentences(a: Assessment) -> list[str]:
    """The verdict, which number to cite, its evidence, and what the pooled envelopes have."""
    moved = f"{signed(a.delta_throughput_mbps)} Mbit/s, {signed(a.delta_delay_ms)} ms"
    floor = "" if math.isnan(a.noise_floor) else f" with the noise floor, {a.noise_floor:.2f}"
    cited = f"Conformance {a.conformance:.2f}: cite this number{floor}."
    return [
        *(a.verdict.lines if a.same_runs else (a.verdict.lines[0], cited)),
        sentence(a.reasons),
        f"The conformance to cite compares single trials. The chart pools them ({a.seeds} and "
        f"{a.reference_seeds} seeds), and its numbers grow with the seeds: pooled conformance "
        f"{a.conformance_pooled:.2f}, Conformance-T {a.conformance_t:.2f} (after the best "
        f"translation; before it, test − reference: {moved}), deviation {a.deviation:.2f}"
        f"{interval_text(a.deviation_ci)}.",
    ]


def signed(value: float, decimals: int = 2) -> str:
    """A number with a typographic sign, but for 0; a dash for one that is unknown."""
    if value != value:
        return "–"
    text = f"{float(value):+.{decimals}f}".replace("-", "−")
    return text if float(text[1:]) else text[1:]


def _parameters(e: Envelope) -> str:
    """Trials, interval, cuts and clusters of an envelope."""
    trials = int(e.trial.max()) + 1
    parts = [f"{trials} trial{'s' * (trials != 1)}"]
    numbers = {k: v for k, v in e.parameters.items() if not math.isnan(v)}
    if "interval_s" in numbers:
        parts.append(f"a point every {numbers['interval_s']:.3g} s")
    if numbers.get("skip_start_s"):
        parts.append(f"first {numbers['skip_start_s']:.3g} s cut")
    if numbers.get("skip_end_s"):
        parts.append(f"last {numbers['skip_end_s']:.3g} s cut")
    if len(e.hulls) > 1:
        parts.append(f"{len(e.hulls)} clusters")
    return ", ".join(parts)


def _common(lines: Mapping[str, str]) -> list[str]:
    """One line if all labels share it, otherwise one line per label."""
    if len(set(lines.values())) == 1:
        return [next(iter(lines.values()))]
    return [f"{label}: {line}" for label, line in lines.items()]
