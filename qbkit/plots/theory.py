"""Measurements beside closed-form models: shares of a link, and windows at a loss rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from qbkit.errors import MetricError
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline, require_columns
from qbkit.plots.drawing.pointer import hover, legend_choice, unless_hidden
from qbkit.traces.arrays import FloatArray

Model = Callable[[FloatArray], npt.ArrayLike]
"""Function from values of the horizontal axis to predictions (`qbkit.metrics.theory`)."""

WIDTH, HEIGHT = 460, 300
MODEL_POINTS = 120
MEASURED, PREDICTED = "measured", "model"
MEANING = (
    "Points: runs. Solid: their means. Dashed: a model, where it is valid.",
    "A model has the colour of the measurements of the same name.",
)


@dataclass(frozen=True)
class _Axes:
    """Columns of the frame to draw against each other, with their titles, scales and axis."""

    x: str
    y: str
    x_title: str
    y_title: str
    x_scale: alt.Scale
    y_scale: alt.Scale
    x_axis: alt.Axis


def _share(x: str, x_title: str, x_format: str) -> _Axes:
    """A share of the link, against powers of two."""
    powers = alt.Scale(type="log", base=2, nice=False, padding=12)
    parts = alt.Scale(domain=[0, 1])
    ticks = alt.Axis(format=x_format)
    return _Axes(x, "share", x_title, "Share of the link", powers, parts, ticks)


def share_by_buffer_chart(
    frame: pd.DataFrame,
    *,
    models: Mapping[str, Model] | None = None,
    title: str = "Share of the link against the buffer",
) -> alt.LayerChart:
    """Share of the link that a controller gets, against the buffer, beside models of it.

    ``frame`` has one row per run: ``label`` (whose share it is), ``buffer_bdp``, and ``share`` in
    [0, 1] (`qbkit.metrics.link_share`). ``models`` are functions of the buffer in BDP, such as
    ``{"tcp:bbr": lambda x: bbr_share(x, rate_mbps=20, rtt_ms=40)}``. Raises MetricError for a frame
    without these columns or rows, and for a model that is valid nowhere on the axis.
    """
    axes = _share("buffer_bdp", "Buffer (BDP)", "~g")
    return _chart(frame, models or {}, axes, _grid(frame, axes), title)


def share_by_flows_chart(
    frame: pd.DataFrame,
    *,
    models: Mapping[str, Model] | None = None,
    title: str = "Share of the link against the number of other flows",
) -> alt.LayerChart:
    """Share of the link that a controller gets, against the number of its competing flows.

    Like `share_by_buffer_chart`, with the column ``flows`` (number of other flows) in place of the
    buffer.
    """
    axes = _share("flows", "Other flows", "d")
    low, high = _range(frame, axes)
    return _chart(frame, models or {}, axes, np.arange(low, high + 1), title)


def window_by_loss_chart(
    frame: pd.DataFrame,
    *,
    models: Mapping[str, Model] | None = None,
    title: str = "Window against loss rate",
) -> alt.LayerChart:
    """Mean window of a controller against the loss rate: its response function.

    ``frame`` has one row per run: ``label``, ``loss_rate`` (a fraction, not percent) and
    ``window_packets`` (`qbkit.metrics.flows.loss_response`). Runs without a loss are left out
    because the axes are logarithmic. ``models`` are functions of the loss rate, such as ``{"RFC
    9438": lambda p: cubic_window_packets(p, rtt_ms=50)}``. Raises MetricError as
    `share_by_buffer_chart` does.
    """
    axes = _Axes(
        x="loss_percent",
        y="window_packets",
        x_title="Lost packets (%)",
        y_title="Mean window (packets)",
        x_scale=alt.Scale(type="log", nice=False, padding=12),
        y_scale=alt.Scale(type="log", nice=True),
        x_axis=alt.Axis(format="~g"),
    )
    require_columns(frame, ["label", "loss_rate", "window_packets"], "the measurements have")
    percent = frame.assign(loss_percent=frame["loss_rate"] * 100)
    percent = percent[percent["loss_percent"] > 0]
    grid = _grid(percent, axes)
    of_percent = {name: _scaled(model, 0.01) for name, model in (models or {}).items()}
    return _chart(percent, of_percent, axes, grid[grid > 0], title)


def _scaled(model: Model, factor: float) -> Model:
    return lambda x: model(x * factor)


def _range(frame: pd.DataFrame, axes: _Axes) -> tuple[float, float]:
    """Smallest and largest value of the measurements on the horizontal axis."""
    require_columns(frame, ["label", axes.x, axes.y], "the measurements have")
    return float(frame[axes.x].min()), float(frame[axes.x].max())


def _grid(frame: pd.DataFrame, axes: _Axes) -> FloatArray:
    """Values at equal ratios over the range of the measurements."""
    return np.unique(np.round(np.geomspace(*_range(frame, axes), MODEL_POINTS), 3))


def _predicted(name: str, model: Model, grid: FloatArray) -> pd.DataFrame:
    """Predictions of the model where it is valid; MetricError if it is valid nowhere."""
    rows = []
    reason = ""
    for x in grid.tolist():
        try:
            rows.append((name, x, float(np.asarray(model(np.array(x))))))
        except MetricError as error:
            reason = str(error)
    if not rows:
        raise MetricError(f"the model {name} is valid nowhere on this axis: {reason}")
    return pd.DataFrame(rows, columns=["label", "x", "y"])


def _chart(
    frame: pd.DataFrame, models: Mapping[str, Model], axes: _Axes, grid: FloatArray, title: str
) -> alt.LayerChart:
    runs = frame.rename(columns={axes.x: "x", axes.y: "y"})[["label", "x", "y"]]
    means = runs.groupby(["label", "x"], sort=False, as_index=False)["y"].mean()
    lines = [means.assign(kind=MEASURED)]
    lines += [_predicted(n, model, grid).assign(kind=PREDICTED) for n, model in models.items()]
    labels = [str(v) for v in dict.fromkeys([*runs["label"], *models])]
    shown = legend_choice()
    x = alt.X("x:Q", title=axes.x_title, scale=axes.x_scale, axis=axes.x_axis)
    y = alt.Y("y:Q", title=axes.y_title, scale=axes.y_scale)
    colour = alt.Color("label:N", scale=theme.colour_scale(labels))
    tooltip = [
        alt.Tooltip("label:N", title="Controller"),
        alt.Tooltip("x:Q", title=axes.x_title, format=".4~g"),
        alt.Tooltip("y:Q", title=axes.y_title, format=".4~g"),
    ]
    line = (
        alt.Chart(inline(pd.concat(lines)))
        .mark_line(strokeWidth=1.8)
        .encode(
            x=x,
            y=y,
            color=colour,
            strokeDash=alt.StrokeDash(
                "kind:N", scale=alt.Scale(domain=[MEASURED, PREDICTED], range=[[1, 0], [5, 4]])
            ),
            opacity=unless_hidden(shown, 1.0, 0.08),
        )
    )
    points = (
        alt.Chart(inline(runs))
        .mark_point(filled=True, size=40)
        .encode(x=x, y=y, color=colour, tooltip=tooltip, opacity=unless_hidden(shown, 0.8, 0.05))
    )
    return LayerChart(layer=[line.add_params(shown), points, hover(line, tooltip)]).properties(
        width=WIDTH, height=HEIGHT, **heading(title, MEANING, WIDTH)
    )
