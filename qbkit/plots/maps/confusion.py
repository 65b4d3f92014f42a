"""What a classifier answers, for each right answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from qbkit.errors import MetricError
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline

CELL = 44
LEAST_WIDTH = 380
DARK_PART = 0.5
"""Above it, a tile's number is white."""


def confusion_chart(
    answers: pd.DataFrame, *, title: str = "Right answers, and those given"
) -> LayerChart:
    """Tiles: of the connections with a right answer (row), which part got each answer (column).

    ``answers`` has the columns ``right`` and ``answer``, a row per connection; names are in order
    of their number, "unknown" last. Raises MetricError without a row.
    """
    if answers.empty:
        raise MetricError("there is no answer to draw; give a row for each connection")
    counts = answers.groupby(["right", "answer"]).size().rename("count").reset_index()
    counts["part"] = counts["count"] / counts.groupby("right")["count"].transform("sum")
    order = _ordered(pd.concat([answers["right"], answers["answer"]]))
    bare: dict[str, Any] = {"domain": False, "ticks": False}
    base = alt.Chart(inline({str(name): list(counts[name]) for name in counts})).encode(
        x=alt.X("answer:N", sort=order, title="Answer").axis(orient="top", labelAngle=0, **bare),
        y=alt.Y("right:N", sort=order, title="Right").axis(**bare),
        tooltip=["right:N", "answer:N", "count:Q", alt.Tooltip("part:Q", format=".0%")],
    )
    tiles = base.mark_rect(stroke=theme.GROUND).encode(
        color=alt.Color("part:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None)
    )
    numbers = base.mark_text(fontSize=11).encode(
        text="count:Q",
        color=alt.condition(alt.datum.part > DARK_PART, alt.value("white"), alt.value("black")),
    )
    width = max(CELL * answers["answer"].nunique(), LEAST_WIDTH)
    right = float((answers["right"] == answers["answer"]).mean())
    sentences = [f"{len(answers)} connections, {100 * right:.0f} % answered right."]
    return LayerChart(layer=[tiles, numbers]).properties(
        width=width,
        height=0.6 * CELL * answers["right"].nunique(),
        **heading(title, sentences, width),
    )


def _ordered(names: pd.Series) -> Sequence[str]:
    """The distinct names, most frequent first, and "unknown" last."""
    found = [str(name) for name in names.value_counts().index]
    return sorted(found, key=lambda name: name == "unknown")
