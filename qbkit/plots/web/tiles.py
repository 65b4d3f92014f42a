"""What the charts of HTTP/3 against HTTP/2 share: tiles of differences, and protocols' colours."""

from __future__ import annotations

import altair as alt

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


def protocol_colour() -> alt.Color:
    """The colours of the two protocols."""
    scale = alt.Scale(domain=list(PROTOCOLS), range=[theme.REFERENCE_COLOUR, theme.PALETTE[1]])
    return alt.Color("protocol:N", scale=scale)
