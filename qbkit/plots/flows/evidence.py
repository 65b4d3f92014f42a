"""What a sender does at the moment at which it breaks a rule, beside its reference."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from qbkit.metrics.parameters.connection import Connection
from qbkit.metrics.parameters.model import bdp_packets
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline

WIDTH, HEIGHT = 560, 260
POINTS = 800
"""Of a line, each the median of what it stands for."""


def evidence_chart(
    connections: Mapping[str, Connection],
    span_s: tuple[float, float],
    *,
    moment: tuple[float, str],
    title: str,
    reference: str | None = None,
) -> alt.LayerChart:
    """What lone senders have in flight within a span of time, in BDP, by label.

    ``moment`` is a time in s and what happens then; a rule marks it.
    """
    parts = [_line(label, c, span_s) for label, c in connections.items()]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    at_s, words = moment
    x = alt.X("time_s:Q", title="Time (s)", scale=alt.Scale(domain=list(span_s), nice=False))
    lines = (
        alt.Chart(inline(columns))
        .mark_line(strokeWidth=1.5)
        .encode(
            x,
            alt.Y("in_flight_bdp:Q", title="In flight (BDP)"),
            alt.Color("label:N", title=None, scale=theme.colour_scale([*connections], reference)),
        )
    )
    mark = alt.Chart(inline({"time_s": [at_s], "words": [words]})).encode(x)
    ruled = [
        mark.mark_rule(color=theme.INK, strokeDash=[4, 3]),
        mark.mark_text(align="left", dx=5, color=theme.INK).encode(
            text="words:N", y=alt.value(HEIGHT - 10)
        ),
    ]
    head = heading(title, ["Each flow is alone; the dashed line is the moment."], WIDTH)
    return LayerChart(layer=[lines, *ruled]).properties(width=WIDTH, height=HEIGHT, **head)


def _line(label: str, c: Connection, span_s: tuple[float, float]) -> dict[str, np.ndarray]:
    inside = (c.grid_s >= span_s[0]) & (c.grid_s <= span_s[1])
    time_s, flight = c.grid_s[inside], c.in_flight_packets[inside] / bdp_packets(c)
    each = max(len(time_s) // POINTS, 1)
    whole = len(time_s) // each * each
    return {
        "time_s": time_s[:whole:each],
        "in_flight_bdp": np.median(flight[:whole].reshape(-1, each), axis=1),
        "label": np.full(whole // each, label),
    }
