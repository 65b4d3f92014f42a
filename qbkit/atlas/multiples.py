"""Small panels that look alike on all pages: envelopes by setting, and lone flows over time.

Altair takes a second for a chart. So it makes each specification once, and each page has its own
table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import altair as alt
import xarray as xr

from qbkit.metrics.envelopes.envelope import Envelope
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.data import inline, long_table
from qbkit.plots.envelopes.plane import TOOLTIP, X, Y, coordinates, corners, thinned
from qbkit.plots.flows.gallery import QUANTITIES
from qbkit.plots.flows.series import Series, rows_of

WIDTH, HEIGHT, COLUMNS = 250, 170, 4
SIDES = {"reference": theme.REFERENCE_COLOUR, "test": theme.PALETTE[1]}
"""Side → colour; the reference is drawn first."""
DATA = "table"


def envelope_panels(pairs: Mapping[str, tuple[Envelope, Envelope]]) -> dict[str, Any]:
    """Specification of a panel for each title, with the test's envelope over the reference's."""
    parts = (
        part
        for title, (test, reference) in pairs.items()
        for side, envelope in (("reference", reference), ("test", test))
        for part in _parts({"panel": title, "side": side}, envelope)
    )
    return _with(_envelopes(), long_table(parts))


def lone_panels(test: xr.Dataset, reference: xr.Dataset | None) -> dict[str, Any]:
    """Specification of a panel for each quantity of a lone flow over time, beside the reference."""
    sides = {"reference": reference, "test": test}
    series = [Series(side, run, 0, "1") for side, run in sides.items() if run is not None]
    rows = rows_of(series)
    return _with(_over_time(tuple(name for name in QUANTITIES if name in rows)), rows)


def _with(spec: dict[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
    return {**spec, "data": {"name": DATA, **inline(rows).to_dict()}}


def _parts(
    where: dict[str, str], envelope: Envelope
) -> Iterator[tuple[dict[str, object], dict[str, Any]]]:
    """Each hull (1, 2, …) with its corners, and the points, which are of no hull."""
    for number, hull in enumerate(envelope.hulls, 1):
        yield {**where, "hull": str(number)}, corners(hull)
    yield {**where, "hull": "", "corner": 0}, coordinates(thinned(envelope.points))


@cache
def _envelopes() -> dict[str, Any]:
    """The chart of the envelopes without its table."""
    base = alt.Chart().encode(x=X, y=Y, color=_colour())
    hulls = base.transform_filter("datum.hull !== ''").encode(detail="hull:N", order="corner:Q")
    points = base.transform_filter("datum.hull === ''").encode(
        tooltip=[alt.Tooltip("side:N", title="Side"), *TOOLTIP]
    )
    layers = alt.layer(
        hulls.mark_line(filled=True, stroke=None, fillOpacity=0.14),
        hulls.mark_line(strokeWidth=1.8),
        points.mark_circle(size=14, opacity=0.55),
    ).properties(width=WIDTH, height=HEIGHT)
    header = alt.Header(title=None, labelFontSize=12, labelFontWeight="bold", labelAnchor="start")
    panel = alt.Facet("panel:N", sort=None, header=header)
    chart = layers.facet(facet=panel, columns=COLUMNS, data=alt.NamedData(DATA))
    return _specification(chart.resolve_scale(x="independent", y="independent"))


@cache
def _over_time(quantities: tuple[str, ...]) -> dict[str, Any]:
    """The chart of lone flows over time without its table."""
    panels = [
        alt.Chart(width=WIDTH * COLUMNS // len(quantities), height=HEIGHT)
        .mark_line(strokeWidth=1.2)
        .encode(
            x=alt.X("time_s:Q", title="Time (s)"),
            y=alt.Y(f"{name}:Q", title=QUANTITIES[name]),
            color=_colour("label"),
            tooltip=[
                alt.Tooltip("label:N", title="Side"),
                alt.Tooltip("time_s:Q", title="Time (s)", format=".1f"),
                alt.Tooltip(f"{name}:Q", title=QUANTITIES[name], format=".2f"),
            ],
        )
        for name in quantities
    ]
    return _specification(alt.hconcat(*panels, data=alt.NamedData(DATA)))


def _colour(field: str = "side") -> alt.Color:
    scale = alt.Scale(domain=[*SIDES], range=[*SIDES.values()])
    return alt.Color(f"{field}:N", legend=None, scale=scale)


def _specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    theme.register()
    with alt.theme.enable(theme.THEME):
        return chart.to_dict(validate=False)
