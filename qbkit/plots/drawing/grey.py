"""Labels that differ without colour, for grey printers and readers who see fewer colours.

A line has a dash for each label, a point a shape. In the charts of connections over time, dashes
tell kinds of lines apart (window and threshold); there each line has its label's shape here and
there. The legend shows what the panels below it use.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

DASHES = (
    *([1, 0], [6, 2.5], [1.5, 2], [7, 2, 1.5, 2], [10, 3], [3, 1.5]),
    *([8, 2, 1, 2, 1, 2], [1, 4], [12, 2, 4, 2], [4, 4], [5, 1, 1, 1], [2, 1]),
)
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down"),
    *("wedge", "triangle-left", "arrow", "triangle-right"),
    # Five-pointed star and hourglass.
    "M0,-1L0.3,-0.4L1,-0.3L0.5,0.2L0.6,0.9L0,0.55L-0.6,0.9L-0.5,0.2L-1,-0.3L-0.3,-0.4Z",
    "M-0.8,-0.8L0.8,-0.8L-0.8,0.8L0.8,0.8Z",
)
MARKERS = 7
"""Points with the label's shape on each line."""
MARKER_SIZE = 14
LONG_STROKE = {"symbolType": "M-4,0H4", "labelOffset": 16}
"""A line in the legend that is long enough to show its dashes."""
GROUPS = ("layer", "hconcat", "vconcat", "concat")
LEGENDS = ("color", "shape", "strokeDash")
OWN_LEGENDS = dict.fromkeys(LEGENDS, "independent")

Spec = dict[str, Any]


def distinguish(spec: Spec) -> None:
    """Give each label of a specification a dash or a shape beside its colour, in place."""
    scales = spec.get("resolve", {}).get("scale", {})
    if scales.get("shape") == "independent":
        scales["color"] = "independent"
        _with_markers(spec)
        return
    for unit in units(spec):
        _dash_or_shape(unit)
    parts = spec.get("hconcat", [spec])
    shapes = [part for part in parts if _has_shapes(part)]
    if 0 < len(shapes) < len(parts):
        # Hulls have the dashes of the lines beside them: one legend is enough.
        spec.setdefault("resolve", {}).setdefault("scale", {}).update(OWN_LEGENDS)
        for part in shapes:
            _unnamed(part)
    for part in parts:
        if part in shapes:
            _leave_dashes_out(part)
        else:
            _lengthen(part)


def units(view: Spec) -> Iterator[Spec]:
    """All views that have a mark."""
    if "mark" in view:
        yield view
    for part in parts_of(view):
        yield from units(part)


def parts_of(view: Spec) -> Iterator[Spec]:
    """The views that a view consists of."""
    for group in GROUPS:
        yield from view.get(group, [])


def mark_of(unit: Spec) -> str:
    """The type of a view's mark."""
    mark = unit["mark"]
    return str(mark if isinstance(mark, str) else mark["type"])


def _labels(unit: Spec) -> list[str] | None:
    """The labels that colours stand for; None where colour is no name."""
    colour = unit.get("encoding", {}).get("color", {})
    labels = colour.get("scale", {}).get("domain") if "field" in colour else None
    return labels if isinstance(labels, list) and colour["type"] != "quantitative" else None


def _is_line(unit: Spec) -> bool:
    return mark_of(unit) == "line" and not unit["mark"].get("filled")


def _is_points(unit: Spec) -> bool:
    return mark_of(unit) in ("circle", "point")


def _all_points_of(line: Spec, other: Spec) -> bool:
    """Whether a view draws every point of a line."""
    same = other.get("data") == line.get("data") and "transform" not in other
    return same and _is_points(other)


def _dash_or_shape(unit: Spec) -> None:
    labels, encoding = _labels(unit), unit.get("encoding", {})
    if labels is None:
        return
    if _is_line(unit) and "strokeDash" not in encoding:
        encoding["strokeDash"] = _by_label(unit, labels, DASHES)
    if _is_points(unit) and "shape" not in encoding:
        _shape(unit, labels)


def _shape(unit: Spec, labels: list[str]) -> None:
    """Points in the shapes of their labels."""
    unit["mark"] = {"filled": True, **unit["mark"], "type": "point"}
    unit["mark"].pop("shape", None)
    unit["encoding"]["shape"] = _by_label(unit, labels, SHAPES)


def _by_label(unit: Spec, labels: list[str], styles: tuple[Any, ...]) -> Spec:
    field = unit["encoding"]["color"]["field"]
    chosen = [styles[i % len(styles)] for i in range(len(labels))]
    return {"field": field, "type": "nominal", "scale": {"domain": labels, "range": chosen}}


def _has_shapes(view: Spec) -> bool:
    return any(_is_by_label(unit, "shape") for unit in units(view))


def _is_by_label(unit: Spec, channel: str) -> bool:
    encoding = unit.get("encoding", {})
    field = encoding.get(channel, {}).get("field")
    return field is not None and field == encoding.get("color", {}).get("field")


def _leave_dashes_out(view: Spec) -> None:
    """Shapes alone in the legend: dashes would notch them."""
    for unit in units(view):
        if _is_by_label(unit, "strokeDash"):
            dash = unit["encoding"]["strokeDash"]
            dash["legend"] = None
            # Vega-Lite joins, and leaves out, the legends of scales with the same domain.
            dash["scale"]["domain"] = [*dash["scale"]["domain"], ""]
            dash["scale"]["range"] = [*dash["scale"]["range"], [1, 0]]


def _lengthen(view: Spec) -> None:
    """Lines in the legend that show their dashes."""
    for unit in units(view):
        for name in ("color", "strokeDash"):
            channel = unit.get("encoding", {}).get(name, {})
            if _is_by_label(unit, "strokeDash") and channel.get("legend", {}) is not None:
                channel["legend"] = {**channel.get("legend", {}), **LONG_STROKE}


def _with_markers(spec: Spec) -> None:
    """Shapes on all lines and points of labels, and their legend above the first such panel."""
    named = False
    for panel in _panels(spec):
        layers = []
        for unit in panel["layer"]:
            layers.append(unit)
            labels = _labels(unit)
            if labels is None:
                continue
            if _is_line(unit) and not any(_all_points_of(unit, other) for other in panel["layer"]):
                layers.append(_markers(unit, labels))
            elif _is_points(unit) and "shape" not in unit["encoding"]:
                _shape(unit, labels)
        panel["layer"] = layers
        shaped = _has_shapes(panel)
        if named or not shaped:
            _unnamed(panel)
        named = named or shaped


def _panels(view: Spec) -> Iterator[Spec]:
    """All views that consist of layers."""
    if "layer" in view:
        yield view
        return
    for part in parts_of(view):
        yield from _panels(part)


def _markers(line: Spec, labels: list[str]) -> Spec:
    """Some points of a line, not the same ones for each label, in the label's shape."""
    encoding = {name: line["encoding"][name] for name in ("x", "y", "color")}
    field = encoding["color"]["field"]
    dash = line["encoding"].get("strokeDash", {}).get("field")
    groups = [field, *([dash] if dash else [])]
    step = f"ceil(datum.rows / {MARKERS})"
    place = f"(indexof({labels!r}, datum['{field}']) + 0.5) / {len(labels)}"
    points: Spec = {
        **{name: line[name] for name in ("data", "transform") if name in line},
        "mark": {"type": "point", "size": MARKER_SIZE, "opacity": 1},
        "encoding": copy.deepcopy(encoding),
    }
    points["transform"] = [
        *points.get("transform", []),
        {"joinaggregate": [{"op": "count", "as": "rows"}], "groupby": groups},
        {"window": [{"op": "row_number", "as": "row"}], "groupby": groups},
        {"filter": f"(datum.row - 1) % {step} == floor({step} * {place})"},
    ]
    _shape(points, labels)
    return points


def _unnamed(panel: Spec) -> None:
    """Leave the labels out of a panel's legends."""
    for unit in units(panel):
        for name in LEGENDS:
            if _is_by_label(unit, name):
                unit["encoding"][name]["legend"] = None
