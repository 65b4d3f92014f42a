"""Charts for papers: as wide as a column or the text, and readable in grey.

Such a figure has no title (a caption says it), no brush, no tooltips and no readouts. Labels differ
by dashes or shapes (`qbkit.plots.drawing.grey`), so that neither a grey printer nor colour
blindness mixes them up. Points beyond `MAX_POINTS` of a label are thinned, so that a PDF stays
small; those in the corners of hulls are all drawn.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from qbkit.errors import MetricError
from qbkit.plots.drawing.grey import GROUPS, distinguish, mark_of, parts_of, units

WIDTHS_PT = {"column": 241, "text": 506}
"""Widths in the two-column styles of ACM and IEEE. A pixel of a chart is a point of its PDF."""
PANEL_PX = 100
"""Narrower views hold texts and keep their width."""
LEAST_WIDTH = 0.18
"""Smallest factor of a width: with less, tiles and ticks run into each other."""
LEAST_HEIGHT = 0.55
"""Smallest factor of a height: panels may become steeper, but not flat."""
FONT = 0.66
"""Factor of the sizes of texts in panels."""
MAX_POINTS = 200
"""Most points of a label in one panel, beside those in the corners of its hulls."""
PLACE = ("queue_delay_ms", "throughput_mbps")
"""Columns of the plane of envelopes."""
LEGEND_COLUMNS = (4, 3, 2, 1)
CONFIG: dict[str, dict[str, Any]] = {
    "legend": {
        "labelFontSize": 7.5,
        "titleFontSize": 7.5,
        "symbolSize": 30,
        "symbolStrokeWidth": 1.1,
        "columnPadding": 6,
        "rowPadding": 1,
        "offset": 3,
        "gradientThickness": 6,
        "gradientLength": 50,
        "layout": {"top": {"direction": "vertical", "anchor": "start", "margin": 2}},
    },
    "axis": {
        "labelFontSize": 7,
        "titleFontSize": 7.5,
        "titlePadding": 3,
        "labelPadding": 2,
        "tickSize": 3,
    },
    "title": {"fontSize": 7.5, "offset": 3},
}
"""Sizes in points; journals ask for 6 to 8."""
STROKE = 0.75
"""Factor of the widths of lines."""

Spec = dict[str, Any]


class TooNarrow(MetricError):
    """A chart does not fit into a width."""

    fitting: Sequence[str] = ()
    """The wider ones into which it does."""


def paper_spec(spec: Spec, width: str) -> Spec:
    """The specification of a chart as a figure of that width: ``column`` or ``text``.

    Raises MetricError for another width, and TooNarrow for a chart that does not fit.
    """
    if width not in WIDTHS_PT:
        raise MetricError(f"width = {width!r}: choose from {', '.join(WIDTHS_PT)}", refused=True)
    spec = copy.deepcopy(spec)
    spec.pop("title", None)
    chosen = {p["name"] for p in spec.get("params", []) if "select" in p}
    spec = _still(spec, chosen) or spec
    spec["params"] = [
        {name: value for name, value in p.items() if name != "bind"}
        for p in spec.get("params", [])
        if p["name"] not in chosen
    ]
    for unit in units(spec):
        _thinner(unit)
        _plain(unit)
    distinguish(spec)
    _small_titles(spec)
    _thin(spec)
    config = spec.setdefault("config", {})
    for name, part in CONFIG.items():
        config[name] = {**config.get(name, {}), **part}
    config["padding"] = 2
    if fitted := _as_wide(spec, WIDTHS_PT[width]):
        return fitted
    raise _too_narrow(spec, width)


def _too_narrow(spec: Spec, width: str) -> TooNarrow:
    wider = {name: points for name, points in WIDTHS_PT.items() if points > WIDTHS_PT[width]}
    fitting = [name for name, points in wider.items() if _as_wide(spec, points)]
    remedy = " or ".join([*(f"width = {name!r}" for name in fitting), "no width"])
    error = TooNarrow(
        f"the chart has too many columns for width = {width!r}; draw fewer, or give {remedy}",
        refused=True,
    )
    error.fitting = fitting
    return error


def _as_wide(spec: Spec, width_px: int) -> Spec | None:
    """The specification with that width, with as many columns of its legend as fit, or None."""
    for columns in LEGEND_COLUMNS:
        spec["config"]["legend"]["columns"] = columns
        fitted = _fitted(spec, width_px)
        if drawn_width_px(fitted) <= width_px:
            return fitted
    return None


def _still(view: Spec, chosen: set[str]) -> Spec | None:
    """A view without what only a selection shows; None if nothing is left of it."""
    for group in GROUPS:
        if group in view:
            parts = [part for each in view[group] if (part := _still(each, chosen))]
            view[group] = parts
            texts = all(mark_of(unit) == "text" for unit in units(view))
            return (
                view if parts and not (texts and view.get("width", PANEL_PX) < PANEL_PX) else None
            )
    if "mark" not in view:
        return view
    filters = json.dumps(view.get("transform", []))
    if any(re.search(rf'"param": "{name}"|\b{name}\.|\b{name}\)', filters) for name in chosen):
        return None
    if isinstance(view["mark"], dict) and view["mark"].get("opacity") == 0:
        return None
    view.pop("params", None)
    for channel in view.get("encoding", {}).values():
        if isinstance(channel, dict) and "condition" in channel:
            _settle(channel)
    view.get("encoding", {}).pop("tooltip", None)
    return view


def _settle(channel: Spec) -> None:
    """Replace the conditions on selections by what they are while nothing is selected."""
    conditions = channel.pop("condition")
    kept = []
    for condition in conditions if isinstance(conditions, list) else [conditions]:
        test = condition.get("test", condition)
        if "param" in condition or (isinstance(test, dict) and "param" in test):
            channel.update({k: v for k, v in condition.items() if k in ("value", "field")})
            break
        if not (isinstance(test, dict) and "param" in json.dumps(test)):
            kept.append(condition)
    if kept:
        channel["condition"] = kept if len(kept) > 1 else kept[0]


def _plain(unit: Spec) -> None:
    """Leave sizes of axes and legends to `CONFIG`."""
    for channel in unit.get("encoding", {}).values():
        for part in ("axis", "legend"):
            if isinstance(channel, dict) and isinstance(channel.get(part), dict):
                for size in ("labelFontSize", "titleFontSize", "gradientLength"):
                    channel[part].pop(size, None)


def _small_titles(view: Spec) -> None:
    """Titles of panels in the size of the other texts."""
    if isinstance(view.get("title"), dict):
        view["title"].pop("fontSize", None)
        view["title"].pop("subtitle", None)
    for part in parts_of(view):
        _small_titles(part)


def _thinner(unit: Spec) -> None:
    """Thinner lines, smaller points and smaller texts."""
    mark: Spec = {"type": unit["mark"]} if isinstance(unit["mark"], str) else unit["mark"]
    unit["mark"] = mark
    if mark["type"] == "text":
        mark["fontSize"] = FONT * mark.get("fontSize", 11)
    if "strokeWidth" in mark:
        mark["strokeWidth"] *= STROKE
    if "size" in mark:
        mark["size"] *= STROKE**2


def _thin(spec: Spec) -> None:
    """Keep every n-th row of tables that are drawn as points alone, and the corners of hulls."""
    used: dict[str, set[str]] = {}
    fields: dict[str, str] = {}
    for name, unit in _with_data(spec, None):
        used.setdefault(name, set()).add(mark_of(unit))
        fields[name] = unit.get("encoding", {}).get("color", {}).get("field", "")
    tables = {n: text for n, text in spec.get("datasets", {}).items() if isinstance(text, str)}
    corners = {place for text in tables.values() for place in _corners(text)}
    for name, marks in used.items():
        if marks == {"point"} and name in tables:
            spec["datasets"][name] = _fewer(tables[name], fields[name], corners)


def _corners(text: str) -> set[tuple[str, ...]]:
    """The places of the corners of the hulls in a table of `qbkit.plots.envelopes.plane`."""
    heading, *rows = csv.reader(io.StringIO(text))
    return {_place(heading, row) for row in rows} if "corner" in heading else set()


def _place(heading: list[str], row: list[str]) -> tuple[str, ...]:
    return tuple(row[heading.index(name)] for name in PLACE if name in heading)


def _with_data(view: Spec, data: str | None) -> Iterator[tuple[str, Spec]]:
    """The units with the name of the table that each draws."""
    data = view.get("data", {}).get("name", data)
    if "mark" in view and data:
        yield data, view
    for part in parts_of(view):
        yield from _with_data(part, data)


def _fewer(text: str, field: str, corners: set[tuple[str, ...]]) -> str:
    heading, *rows = csv.reader(io.StringIO(text))
    at = heading.index(field) if field in heading else None
    groups: dict[str, list[list[str]]] = {}
    for row in rows:
        groups.setdefault("" if at is None else row[at], []).append(row)
    thinned = io.StringIO()
    writer = csv.writer(thinned, lineterminator="\n")
    writer.writerow(heading)
    for group in groups.values():
        step = -(-len(group) // MAX_POINTS)
        kept = (
            row for i, row in enumerate(group) if not i % step or _place(heading, row) in corners
        )
        writer.writerows(kept)
    return thinned.getvalue()


def _fitted(spec: Spec, width_px: int) -> Spec:
    """The specification with its panels scaled until the whole chart has that width."""
    factor, (before, drawn) = 1.0, (0.0, 0.0)
    for _ in range(6):
        scaled = _scaled(spec, factor)
        now = drawn_width_px(scaled)
        if width_px - 2 <= now <= width_px or abs(now - drawn) < 0.5:
            break  # it fits, or a legend is wider than the panels
        slope = (now - drawn) / (factor - before) if drawn else now
        before, drawn = factor, now
        factor = max(LEAST_WIDTH, factor + (width_px - 1 - now) / slope)
    return scaled


def _scaled(spec: Spec, factor: float) -> Spec:
    """A copy with panels of ``factor`` times their width, and heights that follow to a degree."""
    if spec.get("width", 0) >= PANEL_PX:
        spec = {**spec, "width": round(spec["width"] * factor)}
    if isinstance(spec.get("height"), int | float):
        spec = {**spec, "height": round(spec["height"] * min(1.0, max(factor, LEAST_HEIGHT)))}
    for group in ("hconcat", "vconcat", "concat"):
        if group in spec:
            spec = {**spec, group: [_scaled(part, factor) for part in spec[group]]}
    return spec


def drawn_width_px(spec: Spec) -> float:
    """Width of a chart in pixels, axes and legends included."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    found = re.search(r'<svg[^>]*? width="([\d.]+)"', svg)
    return float(found.group(1)) if found else 0.0
