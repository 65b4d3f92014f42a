"""Charts as files, without internet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt

from qbkit.arguments import as_path
from qbkit.files import require_ending, write_whole, writing
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.paper import paper_spec
from qbkit.plots.drawing.pointer import without_hints
from qbkit.plots.drawing.render import chart_page, vegalite_version

SCALE = 2
"""Pixels of a PNG per pixel of the chart: sharp on dense screens."""
PRINT_PPI = 600
"""Pixels per inch of a PNG for a paper, as journals ask for drawings of lines."""


def save_chart(chart: alt.TopLevelMixin, path: str | Path, *, width: str | None = None) -> Path:
    """Write a chart as ``.png``, ``.svg``, ``.pdf``, ``.html`` or ``.json``, and return the path.

    The HTML page contains Vega and needs no internet. The file is written atomically. ``width``
    makes it a figure for a paper, as wide as a ``"column"`` (241 points) or the ``"text"`` (506
    points): without title and readouts, with a dash or a shape for each label beside its colour,
    with fewer points (`qbkit.plots.drawing.paper`), and as a PNG with `PRINT_PPI` pixels per inch.
    Raises StoreError for another file extension and for a folder that cannot be written,
    MetricError for another width.
    """
    path = as_path(path)
    ending = ending_of(path)
    theme.register()
    with alt.theme.enable(theme.THEME):
        spec = chart.to_dict()
    if width is None:
        content = WRITERS[ending](spec)
    else:
        content = {**WRITERS, "png": PRINTED}[ending](paper_spec(spec, width))
    with writing(path):
        write_whole(path, content)
    return path


def ending_of(path: Path) -> str:
    """The ending of a chart's file, in small letters; StoreError for one that no chart has."""
    return require_ending(path, "a chart", [f".{name}" for name in WRITERS]).removeprefix(".")


def _rendered(ending: str, **how: Any) -> Callable[[dict[str, Any]], bytes]:
    def render(spec: dict[str, Any]) -> bytes:
        import vl_convert

        convert = getattr(vl_convert, f"vegalite_to_{ending}")
        content = convert(without_hints(spec), vl_version=vegalite_version(), **how)
        return content.encode() if isinstance(content, str) else bytes(content)

    return render


WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "png": _rendered("png", scale=SCALE),
    "svg": _rendered("svg"),
    "pdf": _rendered("pdf"),
    "html": lambda spec: chart_page(spec).encode(),
    "json": lambda spec: json.dumps(spec).encode(),
}
PRINTED = _rendered("png", ppi=PRINT_PPI)
