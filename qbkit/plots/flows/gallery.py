"""Small multiples of many flows, each of a run of its own, on shared scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import Chart, ConcatChart, LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.drawing.pointer import hover
from qbkit.plots.flows.series import Series, rows_of
from qbkit.plots.flows.timeline import averaging

WIDTH, HEIGHT = 124, 78
QUANTITIES = {
    "cwnd_kb": "Cong. window (kB)",
    "throughput_mbps": "Throughput (Mbit/s)",
    "queue_delay_ms": "Queueing delay (ms)",
}
"""Column of the data → axis title; one row of panels each, from cause to effect."""
HEADROOM = 1.04


def gallery_chart(
    runs: Mapping[str, xr.Dataset],
    *,
    reference: str | None = None,
    columns: int = 6,
    title: str | None = None,
) -> alt.VConcatChart:
    """One column of panels per run: congestion window, throughput and queueing delay over time.

    ``runs`` maps a label to a run, whose first flow is drawn; without a ``title``, that says
    whether it was alone. All panels of a quantity share one
    scale, and each shows the run labelled ``reference`` in grey in the background. After
    ``columns`` runs a new block of panels begins. Raises MetricError without a run, or if the
    reference is not among the runs.
    """
    if not runs:
        raise MetricError("there is no run to draw; give at least one")
    series = [Series(label, ds, 0, "1") for label, ds in runs.items()]
    rows = rows_of(series)
    data = inline(rows)
    drawn = {name: np.array(rows[name], dtype=float) for name in QUANTITIES if name in rows}
    tops = {name: float(np.nanmax(values)) * HEADROOM for name, values in drawn.items()}
    end_s = max(float(s.ds.attrs["duration_s"]) for s in series)
    panels = _Panels(
        data, tops, end_s, dict(zip(runs, theme.colours([*runs], reference), strict=True))
    )
    labels = list(runs)
    blocks = [
        panels.block(labels[i : i + columns], reference) for i in range(0, len(labels), columns)
    ]
    others = reference is not None and len(labels) > 1
    words = [f"Grey in each panel: {reference}."] if others else []
    words.append(averaging(series))
    if title is None:
        alone = all(ds.sizes["flow"] == 1 for ds in runs.values())
        title = "Alone on the link" if alone else "The first flow of each run"
    width = WIDTH * min(columns, max(len(labels), 3))
    return VConcatChart(vconcat=blocks, spacing=26, **heading(title, words, width))


class _Panels:
    """Data, scales and colours that all panels of a gallery share."""

    def __init__(
        self, data: alt.InlineData, tops: dict[str, float], end_s: float, colours: dict[str, str]
    ) -> None:
        self.data, self.tops, self.end_s, self.colours = data, tops, end_s, colours

    def block(self, labels: Sequence[str], reference: str | None) -> alt.ConcatChart:
        """One row per quantity and one column per label, names on top, time axes at the bottom."""
        names = list(self.tops)
        panels = [
            self._panel(
                name,
                label,
                reference,
                named=name == names[0],
                timed=name == names[-1],
                scaled=label == labels[0],
            )
            for name in names
            for label in labels
        ]
        spacing = {"row": 8, "column": 10}
        return ConcatChart(concat=panels, columns=len(labels), align="each", spacing=spacing)

    def _panel(
        self,
        name: str,
        label: str,
        reference: str | None,
        *,
        named: bool,
        timed: bool,
        scaled: bool,
    ) -> alt.LayerChart:
        x = alt.X(
            "time_s:Q",
            title="Time (s)" if timed else None,
            axis=alt.Axis(labels=timed, ticks=timed, tickCount=4),
            scale=alt.Scale(domain=[0, self.end_s], nice=False),
        )
        y = alt.Y(
            f"{name}:Q",
            title=QUANTITIES[name] if scaled else None,
            axis=alt.Axis(labels=scaled, ticks=scaled, tickCount=3, titleFontSize=10),
            scale=alt.Scale(domain=[0, self.tops[name]], nice=False),
        )
        behind = [] if reference in (None, label) else [(reference, theme.REFERENCE_COLOUR, 0.5)]
        layers = [
            Chart(self.data)
            .transform_filter(alt.datum.label == who)
            .mark_line(color=colour, opacity=opacity, strokeWidth=1.1)
            .encode(x=x, y=y)
            for who, colour, opacity in [*behind, (label, self.colours[label], 1.0)]
        ]
        tooltip = [
            alt.Tooltip("label:N", title="Flow"),
            alt.Tooltip("time_s:Q", title="Time (s)", format=".1f"),
            alt.Tooltip(f"{name}:Q", title=QUANTITIES[name], format=".2f"),
        ]
        layers.append(hover(layers[-1], tooltip))
        name_of_run = alt.TitleParams(
            label, fontSize=11, color=self.colours[label], anchor="middle", offset=4
        )
        title = name_of_run if named else alt.Undefined
        return LayerChart(layer=layers, width=WIDTH, height=HEIGHT, title=title)
