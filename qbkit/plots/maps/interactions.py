"""Throughput ratios of all pairs of implementations; a click shows the two flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.maps.interactions import (
    FIRST,
    SECOND,
    SEED,
    TRIAL,
    dominance,
    expectations,
    interactions,
    pair_trials,
    squared,
)
from qbkit.metrics.maps.shares import settle_s, settled_throughput_mbps
from qbkit.metrics.verdicts.reasons import interval_text
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import HConcatChart, LayerChart, VConcatChart
from qbkit.plots.drawing.data import PRINTED, inline, long_table
from qbkit.plots.drawing.pointer import cell_choice, hover, one_brush
from qbkit.plots.maps.conformance_map import tile_legend
from qbkit.traces.arrays import FloatArray

CELL = 27
DETAIL_WIDTH, DETAIL_HEIGHT = 330, 190
STRIP_HEIGHT = 22
PALE = 0.72
"""Opacity of the number of a pair whose winner is open: weaker, and legible."""
SCALE = alt.Scale(scheme="blueorange", domain=[0, 1])
SIDES = (theme.PALETTE[1], theme.PALETTE[0])
"""Colours of the row's flow and the column's flow, as of ratios above and below one half."""
HOVER = [
    alt.Tooltip("name:N", title="Flow"),
    alt.Tooltip("time_s:Q", title="Time (s)", format=".1f"),
    alt.Tooltip("throughput_mbps:Q", title="Throughput (Mbit/s)", format=".2f"),
]
MAX_ROWS = 24_000
"""Most rows of all series in one chart."""


def interaction_chart(
    cube: xr.Dataset, *, title: str = "Throughput ratios of all pairs"
) -> alt.HConcatChart:
    """The matrix T_x / (T_x + T_y), x in the row, y in the column (IMC'22, Figure 5).

    ``cube`` is that of a sweep over ``flows.0`` and ``flows.1``, with one value of every other
    field except ``seed``. Rows and columns are ordered by dominance, the most dominant first. A
    click on a cell shows the throughput of the two flows over time (of the first seed), and the
    ratio of each trial. Raises MetricError if the cube has another dimension.
    """
    found = interactions(cube)
    names = [str(n) for n in dominance(found.throughput_ratio)[FIRST].values]
    chosen = cell_choice("pair", row=names[0], column=names[-1])
    matrix = _matrix(found, names, names, chosen)
    sentences = [
        "Orange: the row takes more than the column.",
        "Click a cell to see its two flows (of the first seed).",
        "Ordered by the mean ratio against all others.",
    ]
    if settle_s(cube):
        sentences.append(f"Shares from {settle_s(cube):g} s on; before that the flows settle.")
    details = [_detail(cube, chosen)]
    if int(found.trials.max()) > 1:
        sentences.append("Pale numbers: the 95 % interval over trials includes 0.5.")
        details.append(_strip(cube, chosen))
    width = CELL * len(names) + DETAIL_WIDTH
    with one_brush():
        beside = VConcatChart(vconcat=details, spacing=12)
        chart = HConcatChart(hconcat=[matrix, beside], spacing=28)
    return chart.resolve_scale(color="independent").properties(**heading(title, sentences, width))


def expectation_chart(
    cube: xr.Dataset, *, title: str = "CUBIC against BBR: expected and seen"
) -> alt.LayerChart:
    """The CUBIC × BBR part of the matrix; a frame marks pairs whose winner is not as expected.

    The expected ratio is that of the kernel's CUBIC against the kernel's BBR (IETF 118 slides).
    ``cube`` is as in `interaction_chart`. Raises MetricError if it lacks either of the two.
    """
    found = interactions(cube)
    seen = expectations(found.throughput_ratio)
    cubic = [str(n) for n in seen[FIRST].values]
    bbr = [str(n) for n in seen[SECOND].values]
    expected = seen.attrs["expected"]
    count = int(seen.reversed.sum())
    sentences = [
        f"Framed: the winner is reversed ({count} of {int(np.isfinite(seen.values).sum())} pairs).",
        f"The kernel's CUBIC gets {expected:.2f} from the kernel's BBR.",
    ]
    return _matrix(found, cubic, bbr, None, framed=seen.reversed).properties(
        **heading(title, sentences, max(420, CELL * len(bbr)))
    )


def _matrix(
    found: xr.Dataset,
    rows: Sequence[str],
    columns: Sequence[str],
    chosen: alt.Parameter | None,
    framed: xr.DataArray | None = None,
) -> alt.LayerChart:
    """Tiles in colours that diverge from one half, each with its number."""
    places = [(x, y) for x in rows for y in columns]
    some = found.transpose(FIRST, SECOND).sel({FIRST: list(rows), SECOND: list(columns)})
    low, high = some.throughput_ratio_low.values.ravel(), some.throughput_ratio_high.values.ravel()
    table: dict[str, Any] = {
        "row": [x for x, _ in places],
        "column": [y for _, y in places],
        "ratio": some.throughput_ratio.values.ravel().astype(float),
        "undecided": (low <= 0.5) & (high >= 0.5),
        "interval": [interval_text(limits).strip() for limits in zip(low, high, strict=True)],
        "wins": _wins(some),
    }
    if framed is not None:
        table["framed"] = framed.transpose(FIRST, SECOND).values.ravel().astype(bool)
    bare: dict[str, Any] = {
        "domain": False,
        "ticks": False,
        "labelLimit": 200,
        "labelFontSize": 10.5,
    }
    base = alt.Chart(inline(table, PRINTED)).encode(
        x=alt.X("column:N", sort=list(columns), title=None).axis(
            orient="top", labelAngle=-90, labelAlign="left", **bare
        ),
        y=alt.Y("row:N", sort=list(rows), title=None).axis(**bare),
    )
    known = base.transform_filter("isValid(datum.ratio)")
    tiles = known.mark_rect(stroke=theme.GROUND, strokeWidth=1).encode(
        color=alt.Color("ratio:Q", scale=SCALE, legend=tile_legend("Share of the row")),
        tooltip=[
            alt.Tooltip("row:N", title="Row"),
            alt.Tooltip("column:N", title="Column"),
            alt.Tooltip("ratio:Q", title="Throughput ratio", format=".3f"),
            alt.Tooltip("interval:N", title="95 % interval"),
            alt.Tooltip("wins:N", title="Trials that the row wins"),
        ],
    )
    words = known.transform_calculate(words="replace(format(datum.ratio, '.2f'), /^0/, '')")
    numbers = words.mark_text(fontSize=9.5, tooltip=None).encode(
        text="words:N",
        color=alt.condition(
            "abs(datum.ratio - 0.5) > 0.33", alt.value("white"), alt.value(theme.ON_TILE)
        ),
        opacity=alt.condition(alt.datum.undecided, alt.value(PALE), alt.value(1)),
    )
    frame = base.mark_rect(fill=None, stroke=theme.INK, strokeWidth=2)
    layers = [tiles if chosen is None else tiles.add_params(chosen), numbers]
    if framed is not None:
        layers.append(frame.transform_filter(alt.datum.framed))
    if chosen is not None:
        layers.append(frame.transform_filter(chosen))
    return LayerChart(layer=layers).properties(width=CELL * len(columns), height=CELL * len(rows))


def _wins(found: xr.Dataset) -> list[str]:
    """What hovers show of P(win): trials that the row wins, of how many."""
    wins = (found.win_share * found.trials).values.ravel()
    trials = found.trials.values.ravel()
    return [f"{won:g} of {count}" for won, count in zip(wins, trials, strict=True)]


def _strip(cube: xr.Dataset, chosen: alt.Parameter) -> alt.LayerChart:
    """The throughput ratio of each trial of the chosen pair."""
    each = pair_trials(cube).transpose(FIRST, SECOND, TRIAL)
    known = np.argwhere(np.isfinite(each.values))
    names = [str(name) for name in each[FIRST].values]
    table = {
        "row": [names[x] for x, _, _ in known],
        "column": [names[y] for _, y, _ in known],
        "trial": each.values[np.isfinite(each.values)],
    }
    x = alt.X("trial:Q", title="Throughput ratio of each trial").scale(domain=[0, 1])
    ticks = (
        alt.Chart(inline(table))
        .transform_filter(chosen)
        .mark_tick(thickness=2, size=STRIP_HEIGHT, color=theme.INK)
        .encode(x=x, tooltip=[alt.Tooltip("trial:Q", title="Throughput ratio", format=".3f")])
    )
    draw = alt.Chart(inline({"draw": [0.5]})).mark_rule(strokeDash=[3, 3]).encode(x="draw:Q")
    return LayerChart(layer=[draw, ticks]).properties(width=DETAIL_WIDTH, height=STRIP_HEIGHT)


def _detail(cube: xr.Dataset, chosen: alt.Parameter) -> alt.LayerChart:
    """Throughput of the chosen pair over time, with both names above in their colours."""
    series = _series(cube)
    colour = alt.Color("side:N", legend=None).scale(domain=["row", "column"], range=list(SIDES))
    lines = (
        alt.Chart(series)
        .transform_filter(chosen)
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("time_s:Q", title="Time (s)").scale(nice=False),
            y=alt.Y("throughput_mbps:Q", title="Throughput (Mbit/s)").scale(zero=True),
            color=colour,
        )
    )
    # Not the mean of the series, whose steps are coarser and end earlier.
    means = _means(cube)
    captions = [
        alt.Chart(means)
        .transform_filter(chosen)
        .transform_filter(alt.datum.side == side)
        .transform_calculate(words="datum.name + '  ' + format(datum.mean, '.1f') + ' Mbit/s'")
        .mark_text(align="left", baseline="bottom", fontSize=12, fontWeight=600)
        .encode(x=alt.value(0), y=alt.value(y), text="words:N", color=colour)
        for side, y in (("row", -24), ("column", -8))
    ]
    return alt.LayerChart(layer=[lines, hover(lines, HOVER), *captions]).properties(
        width=DETAIL_WIDTH, height=DETAIL_HEIGHT
    )


def _means(cube: xr.Dataset) -> alt.InlineData:
    """Mean throughput of both flows of each pair, that of which the ratios are."""
    mbps = _first_trial(settled_throughput_mbps(cube))
    return inline(long_table((where, {"mean": [mean]}) for where, mean in _sides(mbps)), PRINTED)


def _series(cube: xr.Dataset) -> alt.InlineData:
    """Throughput of both flows of each pair over time, in steps for which there is room."""
    mbps = _first_trial(cube["series_throughput_mbps"])
    pairs = mbps.sizes[FIRST] * mbps.sizes[SECOND]
    factor = max(1, -(-4 * mbps.sizes["time"] * pairs // 2 // MAX_ROWS))
    coarse = mbps.coarsen(time=factor, boundary="trim").mean()
    time_s = coarse["time"].values
    parts = [(where, {"time_s": time_s, "throughput_mbps": flow}) for where, flow in _sides(coarse)]
    if not parts:
        raise MetricError("the cube has no series of a pair; run the sweep first")
    return inline(long_table(parts))


def _first_trial(values: xr.DataArray) -> xr.DataArray:
    return values.isel({SEED: 0}) if SEED in values.dims else values


def _sides(mbps: xr.DataArray) -> Iterator[tuple[dict[str, str], FloatArray]]:
    """What either flow of each pair gets, in the order of the run, and mirrored without another.

    Further flows of the runs are left out.
    """
    mbps = squared(mbps.isel(flow=slice(2))).transpose(FIRST, SECOND, "flow", ...)
    names, values = [str(n) for n in mbps[FIRST].values], mbps.values
    known = np.isfinite(values).reshape(len(names), len(names), -1).any(axis=2)
    for i, j in np.argwhere(known):
        ways = [(names[i], names[j], values[i, j])]
        if i != j and not known[j, i]:
            ways.append((names[j], names[i], values[i, j][::-1]))
        for row, column, flows in ways:
            for side, name, flow in zip(("row", "column"), (row, column), flows, strict=True):
                yield {"row": row, "column": column, "side": side, "name": name}, flow
