"""What the charts of HTTP/3 against HTTP/2 share: tiles of differences, and protocols' colours."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from qbkit.plots.drawing import theme

LABELLED_PERCENT = 5.0
"""Smaller differences have no number, as in the paper's figures."""
MOST_PERCENT = 50.0
"""The colours end at this difference."""
DARK_PERCENT = 38.0
"""Tiles beyond this difference are so dark that their number must be white."""
PROTOCOLS = ("h2", "h3")
DIFFERENCE = (
    "Blue: H3 is faster.",
    "In brackets: 0 is in the 95 % interval.",
    f"Differences below {LABELLED_PERCENT:g} % have no number.",
    "The difference is (median of H3 − median of H2) / median of H2.",
)
"""What a tile shows, in order of importance."""


def tile_colour() -> alt.Color:
    """Blue below and orange above no difference; the tiles are alike on light and dark pages."""
    scale = alt.Scale(scheme="blueorange", domain=[-MOST_PERCENT, MOST_PERCENT], clamp=True)
    return alt.Color("percent:Q", scale=scale, legend=alt.Legend(title="%", orient="right"))


def tile_numbers(base: alt.Chart) -> alt.Chart:
    """The column ``label`` of each tile, readable on its colour."""
    dark = f"abs(datum.percent) > {DARK_PERCENT:g}"
    ink = alt.condition(dark, alt.value("white"), alt.value(theme.ON_TILE))
    return base.mark_text(fontSize=12).encode(text="label:N", color=ink)


def tile_label(percent: float, form: str = "{:+.0f}") -> str:
    """The number in a tile; none below `LABELLED_PERCENT`."""
    text = form.format(percent).replace("-", "−")
    return text if abs(percent) >= LABELLED_PERCENT else ""


def _difference_label(percent: float, low: float, high: float) -> str:
    """The number in a tile, in brackets where the interval has differences of both signs."""
    text = tile_label(percent)
    return f"({text})" if text and low <= 0 <= high else text


def difference_columns(cells: pd.DataFrame) -> dict[str, Any]:
    """What a tile has of a row of differences, with `difference_tips`."""
    names = ("difference_percent", "low_percent", "high_percent")
    percent, low, high = (cells[name].to_numpy(float) for name in names)
    return {
        "percent": percent,
        "low": low,
        "high": high,
        "label": list(map(_difference_label, percent, low, high)),
        "h2": cells["h2_median_s"].to_numpy(float),
        "h3": cells["h3_median_s"].to_numpy(float),
        "h2_loads": cells["h2_loads"].to_numpy(int),
        "h3_loads": cells["h3_loads"].to_numpy(int),
    }


def difference_tips() -> list[alt.Tooltip]:
    """Tooltip of a tile with `difference_columns`."""
    return [
        alt.Tooltip("percent:Q", title="H3 against H2 (%)", format="+.1f"),
        alt.Tooltip("low:Q", title="95 % interval from (%)", format="+.1f"),
        alt.Tooltip("high:Q", title="to (%)", format="+.1f"),
        alt.Tooltip("h2:Q", title="Median of H2 (s)", format=".3f"),
        alt.Tooltip("h3:Q", title="Median of H3 (s)", format=".3f"),
        alt.Tooltip("h2_loads:Q", title="Loads by H2"),
        alt.Tooltip("h3_loads:Q", title="Loads by H3"),
    ]


def protocol_colour() -> alt.Color:
    """The colours of the two protocols."""
    scale = alt.Scale(domain=list(PROTOCOLS), range=[theme.REFERENCE_COLOUR, theme.PALETTE[1]])
    return alt.Color("protocol:N", scale=scale)
