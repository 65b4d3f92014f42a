"""Tooltips of lines: a line itself knows no single point, so invisible points lie on it."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

SIZE = 70
"""Area of a point in square pixels: within 5 pixels of it, its tooltip appears."""


def hover(line: alt.Chart, tooltip: Sequence[alt.Tooltip]) -> alt.Chart:
    """Invisible points of a line chart, with a tooltip each; a layer to put above the line."""
    points = line.copy()
    points.params = points.name = alt.Undefined  # a name is that of one view
    kept = {name: getattr(line.encoding, name) for name in ("x", "y")}
    points.encoding = alt.FacetedEncoding(**kept, tooltip=list(tooltip))
    return points.mark_circle(size=SIZE, opacity=0)
