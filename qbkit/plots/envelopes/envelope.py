"""The Performance Envelope as the papers draw it: throughput against queueing delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from qbkit.errors import MetricError
from qbkit.metrics.envelopes.envelope import Envelope
from qbkit.metrics.verdicts.assessment import Assessment
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import assessment_sentences, envelope_sentences, heading
from qbkit.plots.drawing.charts import HConcatChart, LayerChart
from qbkit.plots.drawing.data import inline, long_table
from qbkit.plots.drawing.pointer import WHEEL, legend_choice, one_brush, unless_hidden
from qbkit.plots.envelopes.plane import TOOLTIP, X, Y, coordinates, corners

WIDTH, HEIGHT = 460, 340
WHAT_IF_WIDTH, WHAT_IF_HEIGHT = 380, 300


def envelope_chart(
    envelopes: Mapping[str, Envelope],
    *,
    reference: str | None = None,
    assessment: Assessment | None = None,
    title: str = "Performance Envelope",
) -> alt.LayerChart:
    """Points, hulls and centroids of one or more envelopes, by label.

    The ``reference`` label is drawn in grey. Points that the definition excludes are faint. An
    ``assessment`` adds the number to cite, its verdict and its other numbers. A click on the legend
    shows one label alone (shift-click: several), a drag moves the view, the wheel zooms while Ctrl
    (or ⌘) is down, a double click resets. Raises MetricError without an envelope.
    """
    layers = envelope_layers(envelopes, reference)
    zoom = alt.selection_interval(bind="scales", name="view", zoom=WHEEL)
    return layers.add_params(zoom).properties(
        width=WIDTH,
        height=HEIGHT,
        **heading(title, envelope_sentences(envelopes, assessment), WIDTH),
    )


def what_if_chart(
    sides: Mapping[str, tuple[Mapping[str, Envelope], Assessment]],
    *,
    reference: str,
    title: str = "What if",
) -> alt.HConcatChart:
    """One panel per name, on common axes: envelopes by label; the subtitle has the conformances.

    The ``reference`` is drawn in grey.
    """
    panels = [
        envelope_layers(envelopes, reference).properties(
            width=WHAT_IF_WIDTH, height=WHAT_IF_HEIGHT, title=alt.TitleParams(name, fontSize=12)
        )
        for name, (envelopes, _) in sides.items()
    ]
    found = {name: assessment for name, (_, assessment) in sides.items()}
    numbers = ", ".join(f"{a.conformance:.2f} ({name})" for name, a in found.items())
    sentences = [f"Conformance to cite: {numbers}."]
    sentences += [f"{name}: {s}" for name, a in found.items() for s in assessment_sentences(a)]
    with one_brush():
        chart = HConcatChart(hconcat=panels).resolve_scale(x="shared", y="shared")
    return chart.properties(**heading(title, sentences, len(panels) * (WHAT_IF_WIDTH + 60)))


def envelope_layers(
    envelopes: Mapping[str, Envelope],
    reference: str | None = None,
    *,
    trial_names: Mapping[str, Sequence[str]] | None = None,
    fading: Sequence[object] = (),
) -> alt.LayerChart:
    """Hulls, points and centroids; points for which a predicate of ``fading`` holds are faint.

    ``trial_names`` are the names of a label's trials; by default they are numbered from 1.
    """
    if not envelopes:
        raise MetricError("there is no envelope to draw; give at least one")
    scale = theme.colour_scale(list(envelopes), reference)
    shown = legend_choice()
    points = _points(envelopes, trial_names or {}, scale, [~shown, *fading])
    hulls = _hulls(envelopes, scale, shown)
    centroids = _centroids(envelopes, scale, shown)
    return LayerChart(layer=[hulls, points.add_params(shown), centroids])


def _hulls(
    envelopes: Mapping[str, Envelope], scale: alt.Scale, shown: alt.Parameter
) -> alt.LayerChart:
    """Filled polygons, one per cluster and label, each closed by its first vertex."""
    parts = (
        ({"label": label, "hull": f"{label} {number}"}, corners(hull))
        for label, e in envelopes.items()
        for number, hull in enumerate(e.hulls)
    )
    base = alt.Chart(inline(long_table(parts))).encode(
        x=X, y=Y, order="corner:Q", detail="hull:N", color=alt.Color("label:N", scale=scale)
    )
    # Two marks: a filled line would use two colour channels, and the legend would show both.
    fill = base.mark_line(filled=True, stroke=None).encode(fillOpacity=unless_hidden(shown, 0.14))
    outline = base.mark_line(strokeWidth=1.8).encode(opacity=unless_hidden(shown, 0.9))
    return LayerChart(layer=[fill, outline])


def _points(
    envelopes: Mapping[str, Envelope],
    trial_names: Mapping[str, Sequence[str]],
    scale: alt.Scale,
    fading: Sequence[object],
) -> alt.Chart:
    parts = []
    for label, e in envelopes.items():
        names = trial_names.get(label) or [str(i + 1) for i in range(int(e.trial.max()) + 1)]
        trials = [names[i] for i in e.trial.tolist()]
        own: dict[str, Any] = {
            "trial": trials,
            "kept": e.kept,
            "time_s": e.time_s,
            **coordinates(e.points),
        }
        parts.append(({"label": label}, own))
    hidden, *faint = fading
    opacity = alt.when(hidden).then(alt.value(0.0))  # type: ignore[arg-type]
    for predicate in faint:
        opacity = opacity.when(predicate).then(alt.value(0.06))  # type: ignore[arg-type]
    opacity = opacity.when(alt.datum.kept).then(alt.value(0.7))
    return (
        alt.Chart(inline(long_table(parts)))
        .mark_circle(size=22)
        .encode(
            x=X,
            y=Y,
            color=alt.Color("label:N", scale=scale),
            opacity=opacity.otherwise(alt.value(0.25)),
            tooltip=[
                alt.Tooltip("label:N", title="Flow"),
                alt.Tooltip("trial:N", title="Trial"),
                alt.Tooltip("time_s:Q", title="Time (s)", format=".1f"),
                *TOOLTIP,
                alt.Tooltip("kept:N", title="In the hull"),
            ],
        )
    )


def _centroids(
    envelopes: Mapping[str, Envelope], scale: alt.Scale, shown: alt.Parameter
) -> alt.Chart:
    centroids = coordinates(np.array([e.centroid for e in envelopes.values()]))
    return (
        alt.Chart(inline({"label": list(envelopes), **centroids}))
        .mark_point(shape="diamond", size=120, filled=True, stroke=theme.GROUND, strokeWidth=1.5)
        .encode(
            x=X,
            y=Y,
            color=alt.Color("label:N", scale=scale),
            opacity=unless_hidden(shown, 1.0),
            tooltip=[alt.Tooltip("label:N", title="Centroid of"), *TOOLTIP],
        )
    )
