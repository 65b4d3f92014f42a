"""The numbers of one section of an evaluation: the sender beside the standard controllers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from qbkit.errors import MetricError
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import VConcatChart
from qbkit.plots.drawing.data import inline

WIDTH, ROW_HEIGHT = 480, 15
TESTED_COLOUR, OTHER_COLOURS = "#D55E00", ("#0072B2", "#56B4E9", "#7B8794")
SENTENCE = "Dots: means; ticks: seeds."


def section_chart(
    values: pd.DataFrame, senders: Sequence[str], *, title: str = "Section"
) -> VConcatChart:
    """A panel for each number that was measured, with a row for each sender.

    ``values`` has the columns panel, sender and value, a row per seed; the first of ``senders`` is
    the one under test. Raises MetricError without a value.
    """
    known = values[values["value"].notna()]
    if known.empty:
        raise MetricError("there is no number to draw; run the evaluation first")
    panels = [_panel(name, part, senders) for name, part in known.groupby("panel", sort=False)]
    return VConcatChart(vconcat=panels, spacing=8).properties(**heading(title, [SENTENCE], WIDTH))


def _panel(name: object, values: pd.DataFrame, senders: Sequence[str]) -> Any:
    further = [OTHER_COLOURS[-1]] * len(senders)  # not the tested one's again
    colours = [TESTED_COLOUR, *OTHER_COLOURS, *further][: len(senders)]
    order = [sender for sender in senders if sender in set(values["sender"])]
    columns = {"sender": list(values["sender"]), "value": list(values["value"])}
    base = alt.Chart(inline(columns)).encode(
        y=alt.Y("sender:N", sort=order, title=None),
        color=alt.Color(
            "sender:N", scale=alt.Scale(domain=list(senders), range=colours), legend=None
        ),
        tooltip=["sender:N", "value:Q"],
    )
    number = alt.X("value:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    seeds = base.mark_tick(thickness=1.5, opacity=0.7, size=11).encode(x=number)
    means = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("mean(value):Q", title=None), tooltip=["sender:N", "mean(value):Q"]
    )
    words = alt.TitleParams(str(name), anchor="start", fontSize=11, fontWeight="normal", offset=2)
    return alt.layer(seeds, means).properties(
        width=WIDTH, height=ROW_HEIGHT * len(order), title=words
    )
