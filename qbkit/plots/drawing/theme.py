"""The look of qbkit's charts: one Vega-Lite theme, and distinct colours.

The font is Arial or the metrically compatible Liberation Sans, which vl-convert includes, so lines
of text break at the same places offline as in a browser. The colours are those of Okabe and Ito
(2008, "Color Universal Design") without yellow, which is hard to see on white; grey is reserved for
the reference.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import altair as alt

from qbkit.errors import MetricError

THEME = "qbkit"
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
REFERENCE_COLOUR = "#6B7280"
PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#5B2A86",  # violet
    "#8C510A",  # brown
)
INK = "#1F2933"
QUIET_INK = "#52606D"
GRID = "#E4E7EB"
ON_TILE = "#10151A"
"""Numbers on light tiles, which stay light on a dark page."""
GROUND = "#FFFFFF"
"""Drawn over marks in the colour of the page: gaps between tiles, rims of points."""
AXIS = "#9AA5B1"
INK_ON_DARK: dict[str, str | None] = {
    INK: "#E3E8ED",
    QUIET_INK: "#AEB9C4",
    GRID: "#2C343C",
    GROUND: None,
}
"""Colour on a white page → colour on a dark one; None is the page's own."""
LEAST_LIGHTNESS_ON_DARK = 0.58
LIGHTENED = 40
"""Colours of labels that have a lighter one on a dark page."""
GOLDEN_TURN = 0.618033988749895


def colours(labels: Sequence[str], reference: str | None = None) -> list[str]:
    """One colour (``#RRGGBB``) per label, all distinct; the ``reference`` label is grey.

    Raises MetricError for a reference that is none of the labels.
    """
    if reference is not None and reference not in labels:
        known = ", ".join(labels)
        raise MetricError(f"the reference {reference!r} is not among what is drawn: {known}")
    free = _distinct()
    return [REFERENCE_COLOUR if label == reference else next(free) for label in labels]


def colour_scale(labels: Sequence[str], reference: str | None = None) -> alt.Scale:
    """Colour scale that gives each label its own colour, in this order in the legend.

    Raises MetricError for a reference that is none of the labels.
    """
    return alt.Scale(domain=list(labels), range=colours(labels, reference))


def _distinct() -> Iterator[str]:
    """The palette, then hues a golden turn apart in three lightnesses, without repetition."""
    used = {REFERENCE_COLOUR, *PALETTE}
    yield from PALETTE
    number = 0
    while True:
        lightness = (0.36, 0.5, 0.64)[number % 3]
        colour = _hex((0.03 + number * GOLDEN_TURN) % 1.0, lightness, 0.62)
        number += 1
        if colour not in used:
            used.add(colour)
            yield colour


def dark_colours() -> dict[str, str | None]:
    """`INK_ON_DARK`, and for each dark colour of a label a lighter one of the same hue."""
    found = dict(INK_ON_DARK)
    for colour in (REFERENCE_COLOUR, *islice(_distinct(), LIGHTENED)):
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
        if lightness < LEAST_LIGHTNESS_ON_DARK:
            found[colour] = _hex(hue, LEAST_LIGHTNESS_ON_DARK, min(saturation, 0.75))
    return found


def _hex(hue: float, lightness: float, saturation: float) -> str:
    parts = colorsys.hls_to_rgb(hue, lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02X}" for part in parts)


def theme() -> dict[str, Any]:
    """The Vega-Lite configuration of every qbkit chart."""
    return {
        "config": {
            "background": "white",
            "font": FONT,
            "padding": 12,
            "view": {"stroke": None, "continuousWidth": 420, "continuousHeight": 300},
            "title": {
                "anchor": "start",
                "frame": "group",
                "color": INK,
                "fontSize": 15,
                "fontWeight": 600,
                "subtitleColor": QUIET_INK,
                "subtitleFontSize": 11,
                "subtitleLineHeight": 15,
                "subtitlePadding": 5,
                "offset": 12,
            },
            "axis": {
                "domainColor": AXIS,
                "tickColor": AXIS,
                "tickSize": 4,
                "gridColor": GRID,
                "gridWidth": 0.7,
                "labelColor": QUIET_INK,
                "labelFontSize": 11,
                "labelPadding": 4,
                "labelFlush": False,
                "titleColor": INK,
                "titleFontSize": 11.5,
                "titleFontWeight": 500,
                "titlePadding": 8,
            },
            "header": {"labelColor": INK, "titleColor": INK},
            "legend": {
                "orient": "top",
                "direction": "horizontal",
                "columns": 4,
                "offset": 6,
                "title": None,
                "labelColor": INK,
                "labelFontSize": 11.5,
                "labelLimit": 260,
                "symbolStrokeWidth": 2.2,
                "symbolBaseFillColor": QUIET_INK,
                "symbolBaseStrokeColor": QUIET_INK,
                "titleColor": QUIET_INK,
                "titleFontSize": 11,
                "titleFontWeight": "normal",
                "gradientThickness": 9,
                "gradientLength": 110,
                "symbolSize": 90,
            },
            "line": {"strokeWidth": 1.4, "strokeJoin": "round", "strokeCap": "round"},
            "rule": {"strokeWidth": 1.2},
            "text": {"color": INK},
        }
    }


def register() -> None:
    """Register the theme with Altair as ``qbkit`` without enabling it; may be called again."""
    if THEME not in alt.theme.names():
        alt.theme.register(THEME, enable=False)(lambda: alt.theme.ThemeConfig(theme()))  # type: ignore[misc]
