"""The noise floor: conformance of a controller with itself, by the number of seeds."""

from __future__ import annotations

import altair as alt
import pandas as pd

from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline, require_columns
from qbkit.plots.drawing.pointer import legend_choice, unless_hidden

COLUMNS = ("controller", "seeds", "conformance", "low", "high")
WIDTH, HEIGHT = 460, 280
Y_TITLE = "Conformance with itself"
MEANING = (
    "A test below the band is less like the controller than the controller itself.",
    "Line: mean conformance between two disjoint sets of that many seeds. Band: its interval.",
)


def noise_floor_chart(
    frame: pd.DataFrame, *, title: str = "Noise floor", definition: str = ""
) -> alt.LayerChart:
    """Self-conformance against the number of seeds, with its interval, per controller.

    ``frame`` has one row per controller and number of seeds: ``controller`` (its label), ``seeds``
    (trials per side), ``conformance`` and the interval's ``low`` and ``high``, all in [0, 1]; NaN
    is left out. The subtitle names the ``definition``. Raises MetricError for a frame without these
    columns or without rows.
    """
    require_columns(frame, COLUMNS, "the noise floor has")
    data = inline(frame[[*COLUMNS]])
    labels = [str(v) for v in dict.fromkeys(frame["controller"])]
    scale = theme.colour_scale(labels)
    shown = legend_choice("controller")
    x = alt.X("seeds:Q", title="Seeds per side").axis(tickMinStep=1, format="d")
    y = alt.Y("conformance:Q", title=Y_TITLE).scale(domain=[0, 1])
    base = alt.Chart(data).encode(x=x.scale(zero=False, nice=False, padding=12))
    band = base.mark_area().encode(
        y=alt.Y("low:Q", title=Y_TITLE).scale(domain=[0, 1]),
        y2="high:Q",
        color=alt.Color("controller:N", scale=scale),
        fillOpacity=unless_hidden(shown, 0.14),
    )
    line = base.mark_line(point=alt.OverlayMarkDef(size=38), strokeWidth=1.8).encode(
        y=y,
        color=alt.Color("controller:N", scale=scale),
        opacity=unless_hidden(shown, 1.0, 0.08),
        tooltip=[
            alt.Tooltip("controller:N", title="Controller"),
            alt.Tooltip("seeds:Q", title="Seeds per side"),
            alt.Tooltip("conformance:Q", title="Conformance", format=".3f"),
            alt.Tooltip("low:Q", title="Interval from", format=".3f"),
            alt.Tooltip("high:Q", title="Interval to", format=".3f"),
        ],
    )
    sentences = [*MEANING, *([f"Definition: {definition}."] if definition else [])]
    return LayerChart(layer=[band, line.add_params(shown)]).properties(
        width=WIDTH, height=HEIGHT, **heading(title, sentences, WIDTH)
    )
