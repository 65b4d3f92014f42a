"""Timeline and envelope side by side: brushing a span of time highlights its operating points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.envelopes.envelope import Envelope, definition_of, envelope
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.plots.drawing.captions import envelope_sentences, heading
from qbkit.plots.drawing.charts import HConcatChart
from qbkit.plots.drawing.pointer import one_brush, span_brush
from qbkit.plots.envelopes import envelope as pe
from qbkit.plots.flows import timeline as tl
from qbkit.plots.flows.series import Series

TIMELINE_WIDTH, PANEL_HEIGHT = 440, 108
ENVELOPE_SIZE = 344

Runs = xr.Dataset | Mapping[str, xr.Dataset | Sequence[xr.Dataset]]


def linked_chart(
    runs: Runs,
    *,
    definition: str = "imc22",
    reference: str | None = None,
    title: str = "Timeline and Performance Envelope",
) -> alt.HConcatChart:
    """Timeline and envelope; brushing a span of the timeline highlights its operating points.

    ``runs`` is one run, whose flows are all drawn, or a mapping of labels to trials. For each label
    the chart draws the flow of that label, or else the first flow. A list below the chart selects
    one of several trials. The subtitle names flows without an envelope (too short). Raises
    MetricError if no flow has one.
    """
    series = _series(runs)
    envelopes, excuses = _envelopes(series, definition)
    if not envelopes:
        raise MetricError("; ".join(excuses) or "there are no runs; give some")
    times = tl.timeline_panels(
        series, reference=reference, width=TIMELINE_WIDTH, height=PANEL_HEIGHT
    )
    span = span_brush()
    chosen = tl.trial_choice(series)
    fading: list[object] = [~span]
    if chosen is not None:
        fading.append(f"!({tl.trial_is_chosen(chosen)})")
    names = {label: [s.trial for s in series if s.label == label] for label in envelopes}
    grey = reference if reference in envelopes else None
    points = pe.envelope_layers(envelopes, grey, trial_names=names, fading=fading)
    sentences = [
        "Drag over a span of time to highlight its operating points. Ctrl + wheel: zoom.",
        *excuses,
        *envelope_sentences(envelopes),
        tl.averaging(series),
    ]
    square = points.properties(width=ENVELOPE_SIZE, height=ENVELOPE_SIZE)
    with one_brush():
        chart = HConcatChart(hconcat=[times, square], spacing=24)
    return chart.properties(**heading(title, sentences, TIMELINE_WIDTH + ENVELOPE_SIZE + 130))


def _series(runs: Runs) -> list[Series]:
    if isinstance(runs, xr.Dataset):
        return [Series(label, runs, i, "1") for i, label in enumerate(flow_labels(runs))]
    series = []
    for label, trials in runs.items():
        datasets = [trials] if isinstance(trials, xr.Dataset) else list(trials)
        for name, ds in zip(_trial_names(datasets), datasets, strict=True):
            labels = flow_labels(ds)
            index = labels.index(label) if label in labels else 0
            series.append(Series(label, ds, index, name))
    return series


def _trial_names(datasets: Sequence[xr.Dataset]) -> list[str]:
    """Names by seed if seeds are distinct, otherwise numbers."""
    seeds = [str(ds.attrs.get("seed", "")) for ds in datasets]
    if len(set(seeds)) == len(seeds) and all(seeds):
        return [f"seed {seed}" for seed in seeds]
    return [str(i + 1) for i in range(len(datasets))]


def _envelopes(series: Sequence[Series], definition: str) -> tuple[dict[str, Envelope], list[str]]:
    """Envelope of each label that has one, and a sentence for each other label."""
    envelopes, excuses = {}, []
    for label in dict.fromkeys(s.label for s in series):
        mine = [s for s in series if s.label == label]
        try:
            envelopes[label] = _envelope(mine, definition)
        except MetricError as error:
            excuses.append(f"No envelope of {label}: {error}")
    return envelopes, excuses


def _envelope(mine: Sequence[Series], definition: str) -> Envelope:
    sample = definition_of(definition).sample
    return envelope([sample(s.ds, s.index) for s in mine], definition=definition)
