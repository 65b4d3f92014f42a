"""What a reader points at: tooltips, the legend, and over time a brush, a zoom and a rule."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import altair as alt

from qbkit.plots.drawing import theme

DRAG = "[pointerdown[{key}event.shiftKey], window:pointerup] > window:pointermove!"
WHEEL = "wheel![event.ctrlKey || event.metaKey]"
"""The wheel alone scrolls the page; a pinch on a touchpad comes with Ctrl."""
LEFT = "window:mouseout"
"""When the pointer leaves the canvas; a ``pointerout`` also comes at each mark of another layer."""
POINTS = 400
"""Times that can be pointed at, over the whole axis."""
SIZE = 70
"""Area of an invisible point in square pixels: within 5 pixels of it, its tooltip appears."""
HINT = "Drag: mark a span. Ctrl + wheel: zoom. Shift + drag: move. Double-click: reset."
"""What a chart with `pointed_times` can do."""
HINTS = re.compile(r"(?:(?:Drag|Double-click|Click|Move the slider)\b|(?:Ctrl|Shift) \+)[^.]*\. ?")
"""Sentences of a subtitle that say what the reader can do with the chart."""


def without_hints(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification whose subtitle does not say what a reader can do: a picture can nothing."""
    title = spec.get("title")
    if not isinstance(title, dict) or not isinstance(title.get("subtitle"), str):
        return spec
    return {**spec, "title": {**title, "subtitle": HINTS.sub("", title["subtitle"]).strip()}}


def hover(line: alt.Chart, tooltip: Sequence[alt.Tooltip]) -> alt.Chart:
    """Invisible points of a line chart, with a tooltip each; a layer to put above the line.

    A line itself knows no single point.
    """
    points = line.copy()
    points.params = points.name = alt.Undefined  # a name is that of one view
    kept = {name: getattr(line.encoding, name) for name in ("x", "y")}
    points.encoding = alt.FacetedEncoding(**kept, tooltip=list(tooltip))
    return points.mark_circle(size=SIZE, opacity=0)


def legend_choice(field: str = "label") -> alt.Parameter:
    """Selection of the labels clicked in the legend; all labels before the first click."""
    return alt.selection_point(fields=[field], bind="legend", name="shown")


def cell_choice(name: str, **first: str) -> alt.Parameter:
    """Selection of the cell of a map that was clicked last; before that the one with these values.

    One cell is always chosen.
    """
    return alt.selection_point(name=name, fields=[*first], value=[first], toggle=False, empty=False)


def unless_hidden(shown: alt.Parameter, opacity: float, hidden: float = 0.0) -> Any:
    """Opacity of a label; ``hidden`` while another label is chosen in the legend."""
    return alt.when(shown).then(alt.value(opacity)).otherwise(alt.value(hidden))


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


def pointed_times(
    panel: str,
    x: alt.X,
    colour: alt.Color,
    span_s: tuple[float, float],
    *selections: alt.Parameter,
) -> alt.Chart:
    """Invisible points over time, of which the nearest is pointed at; the lowest layer of a panel.

    It has all selections of its panel, as Altair gives those of one layer to all that have any, and
    the colour to which that of the legend is bound. ``panel`` is its name: Altair gives views that
    are alike the same one. Tooltips are of the layers above: Vega shows no text in the tooltip of a
    nearest point.
    """
    pointed = alt.selection_point(
        fields=["time_s"], name="pointed", nearest=True, on="pointermove", clear=LEFT
    )
    start_s, end_s = span_s
    step_s = (end_s - start_s) / POINTS
    return (
        alt.Chart(alt.sequence(start_s, end_s + step_s / 2, step_s, as_="time_s"), name=panel)
        .mark_circle(opacity=0)
        .encode(x=x, y=alt.value(0), color=colour.legend(symbolOpacity=1))
        .add_params(span_brush(), time_zoom(), pointed, *selections)
    )


def marked_span() -> alt.Chart:
    """The brushed span, for every panel: Vega-Lite shows a brush only where it was drawn."""
    return (
        _selected("span", from_s=0, to_s=1)
        .mark_rect(color=theme.AXIS, opacity=0.22, clip=True)
        .encode(x=alt.X("from_s:Q"), x2="to_s:Q")
    )


def pointer_rule() -> alt.Chart:
    """A rule at the pointer, found by `pointed_times`, for every panel."""
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
