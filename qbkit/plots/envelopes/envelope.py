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
from qbkit.plots.drawing.captions import envelope_sentences, heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.drawing.pointer import WHEEL
from qbkit.traces.arrays import FloatArray

WIDTH, HEIGHT = 460, 340
X = alt.X("queue_delay_ms:Q", title="Queueing delay (ms)").scale(nice=True, zero=False)
Y = alt.Y("throughput_mbps:Q", title="Throughput (Mbit/s)").scale(nice=True, zero=False)


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
    if reference is not None and reference not in envelopes:
        known = ", ".join(envelopes)
        raise MetricError(f"there is no envelope of the reference {reference!r}, only of: {known}")
    scale = theme.colour_scale(list(envelopes), reference)
    shown = legend_choice()
    points = _points(envelopes, trial_names or {}, scale, [~shown, *fading])
    hulls = _hulls(envelopes, scale, shown)
    centroids = _centroids(envelopes, scale, shown)
    return LayerChart(layer=[hulls, points.add_params(shown), centroids])


def legend_choice() -> alt.Parameter:
    """Selection of the labels clicked in the legend; all labels before the first click."""
    return alt.selection_point(fields=["label"], bind="legend", name="shown")


def _hulls(
    envelopes: Mapping[str, Envelope], scale: alt.Scale, shown: alt.Parameter
) -> alt.LayerChart:
    """Filled polygons, one per cluster and label, each closed by its first vertex."""
    rows: dict[str, list[object]] = {"label": [], "hull": [], "corner": []}
    corners = []
    for label, e in envelopes.items():
        for number, hull in enumerate(e.hulls):
            rows["label"] += [label] * (len(hull) + 1)
            rows["hull"] += [f"{label} {number}"] * (len(hull) + 1)
            rows["corner"] += range(len(hull) + 1)
            corners.append(np.concatenate([hull, hull[:1]]))
    base = alt.Chart(inline({**rows, **_xy(np.concatenate(corners))})).encode(
        x=X, y=Y, order="corner:Q", detail="hull:N", color=alt.Color("label:N", scale=scale)
    )
    # Two marks: a filled line would use two colour channels, and the legend would show both.
    fill = base.mark_line(filled=True, stroke=None).encode(fillOpacity=_unless_hidden(shown, 0.14))
    outline = base.mark_line(strokeWidth=1.8).encode(opacity=_unless_hidden(shown, 0.9))
    return alt.LayerChart(layer=[fill, outline])


def _points(
    envelopes: Mapping[str, Envelope],
    trial_names: Mapping[str, Sequence[str]],
    scale: alt.Scale,
    fading: Sequence[object],
) -> alt.Chart:
    rows: dict[str, list[object]] = {"label": [], "trial": [], "kept": []}
    for label, e in envelopes.items():
        names = trial_names.get(label) or [str(i + 1) for i in range(int(e.trial.max()) + 1)]
        rows["label"] += [label] * len(e.points)
        rows["trial"] += [names[i] for i in e.trial.tolist()]
        rows["kept"] += e.kept.tolist()
    time_s = np.concatenate([e.time_s for e in envelopes.values()])
    points = _xy(np.concatenate([e.points for e in envelopes.values()]))
    hidden, *faint = fading
    opacity = alt.when(hidden).then(alt.value(0.0))  # type: ignore[arg-type]
    for predicate in faint:
        opacity = opacity.when(predicate).then(alt.value(0.06))  # type: ignore[arg-type]
    opacity = opacity.when(alt.datum.kept).then(alt.value(0.7))
    return (
        alt.Chart(inline({**rows, "time_s": time_s, **points}))
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
                alt.Tooltip("queue_delay_ms:Q", title="Queueing delay (ms)", format=".2f"),
                alt.Tooltip("throughput_mbps:Q", title="Throughput (Mbit/s)", format=".2f"),
                alt.Tooltip("kept:N", title="In the hull"),
            ],
        )
    )


def _centroids(
    envelopes: Mapping[str, Envelope], scale: alt.Scale, shown: alt.Parameter
) -> alt.Chart:
    centroids = _xy(np.array([e.centroid for e in envelopes.values()]))
    return (
        alt.Chart(inline({"label": list(envelopes), **centroids}))
        .mark_point(shape="diamond", size=120, filled=True, stroke=theme.GROUND, strokeWidth=1.5)
        .encode(
            x=X,
            y=Y,
            color=alt.Color("label:N", scale=scale),
            opacity=_unless_hidden(shown, 1.0),
            tooltip=[
                alt.Tooltip("label:N", title="Centroid of"),
                alt.Tooltip("queue_delay_ms:Q", title="Queueing delay (ms)", format=".2f"),
                alt.Tooltip("throughput_mbps:Q", title="Throughput (Mbit/s)", format=".2f"),
            ],
        )
    )


def _xy(points: FloatArray) -> dict[str, FloatArray]:
    return {"queue_delay_ms": points[:, 0], "throughput_mbps": points[:, 1]}


def _unless_hidden(shown: alt.Parameter, opacity: float) -> Any:
    return alt.when(shown).then(alt.value(opacity)).otherwise(alt.value(0.0))
