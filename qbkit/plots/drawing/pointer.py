"""What charts over time share: a brush, a zoom, and a rule that follows the pointer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import altair as alt

from qbkit.plots.drawing import theme

DRAG = "[pointerdown[{key}event.shiftKey], window:pointerup] > window:pointermove!"
WHEEL = "wheel![event.ctrlKey || event.metaKey]"
"""The wheel alone scrolls the page; a pinch on a touchpad comes with Ctrl."""
HINT = "Drag: mark a span. Ctrl + wheel: zoom. Shift + drag: move. Double-click: reset."
"""What a chart with `span_brush` and `time_zoom` can do."""


@contextmanager
def one_brush() -> Iterator[None]:
    """Suppress Altair's warning about charts that share a selection, which is intended here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        yield


def span_brush() -> alt.Parameter:
    """The brush over time; its mark is invisible because `marked_span` draws it in all panels."""
    mark = alt.BrushConfig(fill="white", fillOpacity=0.0, strokeOpacity=0.0)
    drag = DRAG.format(key="!")
    return alt.selection_interval(encodings=["x"], name="span", mark=mark, on=drag, zoom=False)


def time_zoom() -> alt.Parameter:
    """The view over time, of all panels together."""
    move = DRAG.format(key="")
    return alt.selection_interval(
        encodings=["x"], name="zoom", bind="scales", zoom=WHEEL, translate=move
    )


def pointed_time() -> alt.Parameter:
    """The time of the point that is nearest to the pointer."""
    return alt.selection_point(
        fields=["time_s"], name="pointed", nearest=True, on="pointermove", clear="pointerout"
    )


def marked_span() -> alt.Chart:
    """The brushed span, for every panel: Vega-Lite shows a brush only where it was drawn."""
    return (
        _selected("span", from_s=0, to_s=1)
        .mark_rect(color=theme.AXIS, opacity=0.22, clip=True)
        .encode(x=alt.X("from_s:Q"), x2="to_s:Q")
    )


def pointer_rule() -> alt.Chart:
    """A rule at the `pointed_time`, for every panel."""
    return (
        _selected("pointed", at_s=0)
        .mark_rule(color=theme.QUIET_INK, strokeWidth=0.8, clip=True)
        .encode(x=alt.X("at_s:Q"))
    )


def _selected(name: str, **places: int) -> alt.Chart:
    """One row with times of a selection, by field and place in it; none if nothing is selected."""
    chart = alt.Chart(alt.InlineData(values=[{}]))
    for field, place in places.items():
        value = f"isValid({name}.time_s) ? {name}.time_s[{place}] : null"
        chart = chart.transform_calculate(**{field: value})
    return chart.transform_filter(f"isValid(datum.{next(iter(places))})")
