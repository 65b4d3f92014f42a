"""Charts as files, without internet."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt

from qbkit.errors import StoreError
from qbkit.files import write_whole
from qbkit.plots import theme
from qbkit.plots.render import chart_page

SCALE = 2
"""Pixels of a PNG per pixel of the chart: sharp in print and on dense screens."""


def save_chart(chart: alt.TopLevelMixin, path: str | Path) -> Path:
    """Write a chart as ``.png``, ``.svg``, ``.pdf``, ``.html`` or ``.json``, and return the path.

    The HTML page contains Vega and needs no internet. The file is written atomically. Raises
    StoreError for another file extension and for a folder that cannot be written.
    """
    path = Path(path)
    ending = path.suffix.lower().removeprefix(".")
    if ending not in WRITERS:
        allowed = ", ".join("." + name for name in WRITERS)
        raise StoreError(f"a chart cannot be saved as {path.name!r}; choose from {allowed}")
    theme.register()
    with alt.theme.enable(theme.THEME):
        content = WRITERS[ending](chart)
    try:
        write_whole(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{path} cannot be written: {reason}; choose another folder") from None
    return path


def _rendered(ending: str) -> Callable[[Any], bytes]:
    def render(chart: Any) -> bytes:
        buffer = io.BytesIO()
        chart.save(buffer, format=ending, scale_factor=SCALE if ending == "png" else 1)
        return buffer.getvalue()

    return render


def _svg(chart: Any) -> bytes:
    buffer = io.StringIO()
    chart.save(buffer, format="svg")
    return buffer.getvalue().encode()


WRITERS: dict[str, Callable[[Any], bytes]] = {
    "png": _rendered("png"),
    "svg": _svg,
    "pdf": _rendered("pdf"),
    "html": lambda chart: chart_page(chart.to_dict()).encode(),
    "json": lambda chart: chart.to_json(indent=None).encode(),
}
