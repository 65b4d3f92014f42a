"""Data offset of the first retransmission against transfer time, over many transfers.

After Yu and Benson, "Dissecting Performance of Production QUIC", WWW '21, figure 6.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from qbkit.errors import MetricError
from qbkit.metrics.flows.retransmissions import Regression, regression
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline, long_table, require_columns
from qbkit.plots.drawing.pointer import hover, legend_choice, unless_hidden

COLUMNS = ("label", "offset_bytes", "time_s")
WIDTH, HEIGHT = 460, 320
MAX_DOTS = 4000
LINE_POINTS = 40
LEVEL = 0.95
BAND = "A dot is a transfer; the band is the 95 % confidence of the line."


def retransmission_chart(
    transfers: pd.DataFrame,
    *,
    reference: str | None = None,
    title: str = "First retransmission and transfer time",
) -> alt.LayerChart:
    """One dot per transfer, and per label the regression line with its 95 % confidence band.

    ``transfers`` has one row per transfer: ``label``, ``offset_bytes`` of the first retransmission
    (NaN: none) and ``time_s``, as from `qbkit.metrics.flows.retransmissions.transfer_table`. The
    subtitle has slope and r² of each line, and the number of transfers without a retransmission.
    Raises MetricError for a frame without these columns, or if nothing was retransmitted at all.
    """
    require_columns(transfers, COLUMNS, "the transfers have")
    known = transfers[np.isfinite(transfers["offset_bytes"]) & np.isfinite(transfers["time_s"])]
    if known.empty:
        raise MetricError("no transfer has a retransmission; try more loss or more bytes")
    labels = [str(label) for label in dict.fromkeys(transfers["label"])]
    scale = theme.colour_scale(labels, reference)
    shown = legend_choice()
    fits, sentences = _fits(transfers, labels)
    layers = [*_lines(known, fits, scale, shown), _dots(known, scale, shown).add_params(shown)]
    return LayerChart(layer=layers).properties(
        width=WIDTH, height=HEIGHT, **heading(title, [BAND, *sentences], WIDTH)
    )


def _fits(transfers: pd.DataFrame, labels: list[str]) -> tuple[dict[str, Regression], list[str]]:
    """The regression of each label that has one, and a sentence about each label."""
    fits, sentences = {}, []
    for label in labels:
        mine = transfers[transfers["label"] == label]
        offset = mine["offset_bytes"].to_numpy(float)
        without = int(np.isnan(offset).sum())
        rest = f"; {without} of {len(mine)} without a retransmission" if without else ""
        try:
            fit = regression(offset, mine["time_s"].to_numpy(float))
        except MetricError as error:
            sentences.append(f"{label}: {error}{rest}.")
            continue
        fits[label] = fit
        slope = f"{fit.slope_s_per_byte * 1e5:+.2g}".replace("-", "−")
        sentences.append(
            f"{label}: {slope} s per 100 kB, r² = {fit.r_squared:.2f} "
            f"(p = {fit.p_value:.2g}, {fit.transfers} transfers){rest}."
        )
    return fits, sentences


def _lines(
    known: pd.DataFrame, fits: dict[str, Regression], scale: alt.Scale, shown: alt.Parameter
) -> list[alt.Chart]:
    parts = []
    for label, fit in fits.items():
        offset = known.loc[known["label"] == label, "offset_bytes"]
        x = np.linspace(offset.min(), offset.max(), LINE_POINTS)
        line, half = fit.line_s(x), fit.band_s(x, LEVEL)
        own = {"offset_kb": x / 1e3, "time_s": line, "low": line - half, "high": line + half}
        parts.append(({"label": label}, own))
    if not fits:
        return []
    base = alt.Chart(inline(long_table(parts))).encode(x=X, color=alt.Color("label:N", scale=scale))
    band = base.mark_area(clip=True).encode(
        y=_y("low"), y2="high:Q", fillOpacity=unless_hidden(shown, 0.13, 0.0)
    )
    line = base.mark_line(strokeWidth=1.8, clip=True).encode(
        y=_y("time_s"), opacity=unless_hidden(shown, 1.0, 0.06)
    )
    tooltip = [
        alt.Tooltip("label:N", title="Regression of"),
        alt.Tooltip("offset_kb:Q", title="First retransmission at (kB)", format=".1f"),
        alt.Tooltip("time_s:Q", title="Transfer time by the line (s)", format=".3f"),
    ]
    return [band, line, hover(line, tooltip)]


def _dots(known: pd.DataFrame, scale: alt.Scale, shown: alt.Parameter) -> alt.Chart:
    if len(known) > MAX_DOTS:
        known = known.sample(MAX_DOTS, random_state=0)
    data = known.assign(label=known["label"].astype(str), offset_kb=known["offset_bytes"] / 1e3)
    tooltip = [
        alt.Tooltip("label:N", title="Transfer by"),
        alt.Tooltip("offset_kb:Q", title="First retransmission at (kB)", format=".1f"),
        alt.Tooltip("time_s:Q", title="Transfer time (s)", format=".3f"),
    ]
    return (
        alt.Chart(inline(data[["label", "offset_kb", "time_s"]]))
        .mark_circle(size=30)
        .encode(
            x=X,
            y=_y("time_s"),
            color=alt.Color("label:N", scale=scale),
            opacity=unless_hidden(shown, 0.75, 0.05),
            tooltip=tooltip,
        )
    )


X = alt.X("offset_kb:Q", title="Data offset of the first retransmission (kB)").scale(zero=False)


def _y(field: str) -> alt.Y:
    return alt.Y(f"{field}:Q", title="Transfer time (s)").scale(domainMin=0)
