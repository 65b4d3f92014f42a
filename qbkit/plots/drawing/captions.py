"""Subtitles of charts: what is drawn, by which definition, and the results."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping

from qbkit.metrics.envelopes.envelope import Envelope, definition_of
from qbkit.metrics.verdicts.assessment import Assessment, interval_text, sentence

PIXELS_PER_LETTER = 5.4
"""Mean width of a letter in a subtitle."""


def wrapped(sentences: Iterable[str], width: int) -> list[str]:
    """Lines of a subtitle for a chart of ``width`` pixels; each sentence starts a line.

    A line that the next one continues ends with a space (as in RFC 3676), so that a display with
    line breaks of its own can join them (`qbkit.plots.drawing.render`).
    """
    letters = max(20, int(width / PIXELS_PER_LETTER))
    return [line for s in sentences for line in _broken(s, letters)]


def _broken(sentence: str, letters: int) -> list[str]:
    *some, last = textwrap.wrap(sentence, letters) or [""]
    return [*(line + " " for line in some), last]


def one_line(sentence: str, width: int) -> str:
    """A subtitle of one line for a chart of ``width`` pixels; what does not fit becomes "…"."""
    return textwrap.shorten(sentence, max(20, int(width / PIXELS_PER_LETTER)), placeholder=" …")


def envelope_notes(envelopes: Mapping[str, Envelope], assessment: Assessment | None) -> list[str]:
    """What the envelopes are: the verdict first, then definition, parameters and numbers."""
    sentences = _common({k: definition_of(e.definition).title for k, e in envelopes.items()})
    sentences += _common({k: _parameters(e) for k, e in envelopes.items()})
    if assessment is None:
        return sentences
    return [assessment.verdict.lines[0], *sentences, *assessment_notes(assessment)]


def assessment_notes(a: Assessment) -> list[str]:
    """The numbers of the verdict, and those of the pooled envelopes that the chart shows."""
    moved = f"{signed(a.delta_throughput_mbps)} Mbit/s, {signed(a.delta_delay_ms)} ms"
    return [
        sentence(a.reasons),
        f"As drawn, all trials pooled ({a.seeds} and {a.reference_seeds} seeds): pooled "
        f"conformance {a.conformance_pooled:.2f}, Conformance-T {a.conformance_t:.2f} (best "
        f"translation, test − reference: {moved}), deviation {a.deviation:.2f}"
        f"{interval_text(a.deviation_ci)}. Cite the conformance, with the noise floor.",
    ]


def signed(value: float) -> str:
    """Two decimals with a typographic sign."""
    return f"{value:+.2f}".replace("-", "−")


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
