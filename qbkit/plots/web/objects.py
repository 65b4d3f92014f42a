"""HTTP/3 against HTTP/2 for single objects: heat maps, and what lies behind each cell.

After Yu and Benson, "Dissecting Performance of Production QUIC", WWW '21, figures 4 to 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from qbkit.errors import MetricError
from qbkit.metrics.web.loads import TIME, client_consistency, web_differences
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import HConcatChart, LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.drawing.pointer import cell_choice
from qbkit.plots.web.tiles import (
    DIFFERENCE,
    difference_columns,
    difference_tips,
    protocol_colour,
    tile_colour,
    tile_label,
    tile_numbers,
)

CELL_WIDTH, CELL_HEIGHT = 74, 34
DETAIL_WIDTH, DETAIL_HEIGHT = 300, 240
UNITS = ((1_000_000, "MB"), (1_000, "KB"), (1, "B"))
OPACITY = 0.85
LABEL_LINE = 18
"""Room for the second line of a column's name, which Vega draws towards the cells."""


def web_objects_chart(
    table: pd.DataFrame,
    curves: pd.DataFrame,
    *,
    base_rtt_ms: float,
    title: str = "HTTP/3 against HTTP/2, time to last byte",
) -> alt.VConcatChart:
    """Heat map of the difference of medians; a click on a cell shows its loads below.

    ``table`` is from `qbkit.metrics.web_table`, with one client for each protocol, and ``curves``
    has the columns of that table's settings, ``protocol``, ``time_s`` and ``bytes``: what the
    clients of the median loads had acknowledged (`qbkit.metrics.acked_table`). ``base_rtt_ms`` is
    the RTT without extra delay. Hover over a cell for medians and bootstrap interval. Raises
    MetricError for a table without a setting that has two loads of each protocol.
    """
    cells = web_differences(table)
    if cells.empty:
        raise MetricError("no setting has two loads of each protocol; run more seeds")
    columns = _column_order(cells, base_rtt_ms)
    rows = list(dict.fromkeys(_row(c.server, c.object_bytes) for c in cells.itertuples()))
    chosen = cell_choice("cell", row=rows[min(1, len(rows) - 1)], column=columns[-1])
    data = {**_places(cells, base_rtt_ms), **difference_columns(cells)}
    map_ = _heat_map(data, columns, rows, difference_tips())
    details = HConcatChart(
        hconcat=[_acked(curves, chosen, base_rtt_ms), _retransmissions(table, chosen, base_rtt_ms)]
    )
    return (
        VConcatChart(vconcat=[map_.add_params(chosen), details])
        .resolve_scale(color="independent")
        .properties(**heading(title, ["Click a cell.", *DIFFERENCE], CELL_WIDTH * len(columns)))
    )


def client_consistency_chart(
    table: pd.DataFrame, *, base_rtt_ms: float, title: str = "Clients of one protocol"
) -> alt.LayerChart:
    """Heat map of each client's median over the best client's, per server and object (figure 8).

    ``table`` is from `qbkit.metrics.web_table`. Raises MetricError where no setting has two clients
    of one protocol.
    """
    cells = client_consistency(table)
    several = cells.groupby(["server", "object_bytes", "loss_percent", "rtt_ms", "protocol"])
    cells = cells[several["client"].transform("size") > 1]
    if cells.empty:
        raise MetricError("no setting has two clients with the same protocol")
    data = {
        "column": [_column(c.loss_percent, c.rtt_ms, base_rtt_ms) for c in cells.itertuples()],
        "row": [
            f"{_row(c.server, c.object_bytes)} · {c.protocol} · {c.client}"
            for c in cells.itertuples()
        ],
        "percent": cells["difference_percent"].to_numpy(float),
        "label": [tile_label(value, "{:.0f}") for value in cells["difference_percent"]],
        "median": cells["median_s"].to_numpy(float),
        "loads": cells["loads"].to_numpy(int),
    }
    tips = [
        alt.Tooltip("percent:Q", title="Over the best client (%)", format=".1f"),
        alt.Tooltip("median:Q", title="Median (s)", format=".3f"),
        alt.Tooltip("loads:Q", title="Loads"),
    ]
    columns = _column_order(cells, base_rtt_ms)
    sentences = (
        "Per cent above the best client.",
        "Compared are the medians: that of the client, and the lowest of any client.",
    )
    return _heat_map(data, columns, list(dict.fromkeys(data["row"])), tips).properties(
        **heading(title, sentences, CELL_WIDTH * len(columns))
    )


def _heat_map(
    data: dict[str, Any], columns: list[str], rows: list[str], tips: Sequence[alt.Tooltip]
) -> alt.LayerChart:
    """Coloured cells with their numbers; ``data`` has column, row, percent and label."""
    base = alt.Chart(inline(data)).encode(
        x=alt.X(
            "column:N",
            sort=columns,
            title="extra loss, extra delay",
            axis=alt.Axis(
                orient="top",
                labelAngle=0,
                labelExpr="split(datum.label, ', ')",
                labelPadding=LABEL_LINE,
                ticks=False,
                domain=False,
            ),
        ),
        y=alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labelLimit=320)),
    )
    tiles = base.mark_rect(stroke=theme.GRID, cursor="pointer").encode(
        color=tile_colour(), tooltip=list(tips)
    )
    return LayerChart(layer=[tiles, tile_numbers(base)]).properties(
        width=CELL_WIDTH * len(columns), height=CELL_HEIGHT * len(rows)
    )


def _acked(curves: pd.DataFrame, chosen: alt.Parameter, base_rtt_ms: float) -> alt.Chart:
    """What the client had acknowledged over time, of the chosen cell's median loads."""
    data = {
        **_places(curves, base_rtt_ms),
        "protocol": curves["protocol"].tolist(),
        "time_s": curves["time_s"].to_numpy(float),
        "kb": curves["bytes"].to_numpy(float) / 1e3,
    }
    return (
        alt.Chart(inline(data), title=_small("Bytes acknowledged, median loads"))
        .mark_line(point=alt.OverlayMarkDef(size=14), interpolate="step-after")
        .encode(
            x=alt.X("time_s:Q", title="Time since the client's first packet (s)"),
            y=alt.Y("kb:Q", title="Received when the ACK was sent (kB)"),
            color=protocol_colour(),
        )
        .transform_filter(chosen)
        .properties(width=DETAIL_WIDTH, height=DETAIL_HEIGHT)
    )


def _retransmissions(table: pd.DataFrame, chosen: alt.Parameter, base_rtt_ms: float) -> alt.Chart:
    """Time to last byte over the offset of the first retransmission, of the chosen cell."""
    known = table[np.isfinite(table["first_retransmission_offset_bytes"])]
    data = {
        **_places(known, base_rtt_ms),
        "protocol": known["protocol"].tolist(),
        "seed": known["seed"].to_numpy(int),
        "kb": known["first_retransmission_offset_bytes"].to_numpy(float) / 1e3,
        "time_s": known[TIME].to_numpy(float),
        "lost": known["lost_packets"].to_numpy(int),
    }
    tips = [
        alt.Tooltip("protocol:N", title="Protocol"),
        alt.Tooltip("seed:Q", title="Seed"),
        alt.Tooltip("kb:Q", title="First retransmission at (kB)", format=".1f"),
        alt.Tooltip("time_s:Q", title="Time to last byte (s)", format=".3f"),
        alt.Tooltip("lost:Q", title="Lost packets"),
    ]
    return (
        alt.Chart(inline(data), title=_small("First retransmission, all loads with a loss"))
        .mark_circle(size=38, opacity=OPACITY)
        .encode(
            x=alt.X("kb:Q", title="Data offset of the first retransmission (kB)"),
            y=alt.Y("time_s:Q", title="Time to last byte (s)").scale(domainMin=0),
            color=protocol_colour(),
            tooltip=tips,
        )
        .transform_filter(chosen)
        .properties(width=DETAIL_WIDTH, height=DETAIL_HEIGHT)
    )


def _small(title: str) -> alt.TitleParams:
    """Title of a panel, which must not be wider than the panel in a narrow cell."""
    return alt.TitleParams(title, fontSize=12)


def _places(frame: pd.DataFrame, base_rtt_ms: float) -> dict[str, list[str]]:
    """Row and column of each line of a frame with the columns of a setting."""
    pairs = zip(frame["loss_percent"], frame["rtt_ms"], strict=True)
    names = zip(frame["server"], frame["object_bytes"], strict=True)
    return {
        "column": [_column(loss, rtt_ms, base_rtt_ms) for loss, rtt_ms in pairs],
        "row": [_row(server, size) for server, size in names],
    }


def _column_order(cells: pd.DataFrame, base_rtt_ms: float) -> list[str]:
    """The columns, delay by delay, the loss rising in each."""
    pairs: Iterable[Any] = sorted(set(zip(cells["rtt_ms"], cells["loss_percent"], strict=True)))
    return [_column(loss, rtt_ms, base_rtt_ms) for rtt_ms, loss in pairs]


def _column(loss_percent: float, rtt_ms: float, base_rtt_ms: float) -> str:
    return f"{loss_percent:g} %, +{rtt_ms - base_rtt_ms:g} ms"


def _row(server: str, object_bytes: float) -> str:
    return f"{server} · {_size(object_bytes)}"


def _size(object_bytes: float) -> str:
    factor, unit = next((f, u) for f, u in UNITS if object_bytes >= f)
    return f"{object_bytes / factor:g} {unit}"
