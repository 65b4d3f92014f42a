"""Draws the gallery of charts: a picture of each chart of the executed tutorials.

A chart's name is that of the function which the cell calls. A picture is drawn again when its
chart has changed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import vl_convert
from executed_notebooks import TUTORIALS, tutorials
from PIL import Image
from sphinx.application import Sphinx

from qbkit.plots.drawing.render import vegalite_version

PICTURES = Path(__file__).parents[1] / "_static" / "gallery"
PAGE = Path(__file__).parents[1] / "_generated" / "gallery.md"
CALL = re.compile(r"plots\.(\w+_chart)\b|\.plot\.(\w+)\(|\w\.(chart)\(\)|\.chart\((section)\)")
SPEC = re.compile(r'const chart = "([A-Za-z0-9+/=]+)"')
OTHER_NAMES = {
    "chart": "what_if_chart",  # the first one is that of `qb.what_if`
    "envelope": "envelope_chart",
    "linked": "linked_chart",
    "section": "section_chart",
    "timeline": "timeline_chart",
}
"""What `run.qb.plot`, `study.plot` and results call."""
CARD = """:::{{grid-item-card}} {title}
:img-top: _static/gallery/{name}.png
:img-alt: {title} chart
:link: /tutorials/{tutorial}
:link-type: doc

{{py:obj}}`qbkit.plots.{name}` in {tutorial}
:::
"""


def draw_all(_app: Sphinx) -> None:
    """Write the pictures, and the cards that docs/gallery.md includes."""
    PICTURES.mkdir(exist_ok=True)
    PAGE.parent.mkdir(exist_ok=True)
    cards = {}
    for tutorial in tutorials():
        for name, spec in _charts(TUTORIALS / tutorial.name):
            if name not in cards:
                _draw(name, spec)
                title = name.removesuffix("_chart").replace("_", " ").capitalize()
                cards[name] = CARD.format(title=title, name=name, tutorial=tutorial.stem)
    PAGE.write_text("::::{grid} 1 2 3 3\n:gutter: 3\n\n" + "\n".join(cards.values()) + "::::\n")


def _charts(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and specification of the charts in the outputs of an executed notebook."""
    for cell in nbformat.read(path, as_version=4).cells:
        calls = CALL.findall(cell.source)
        for output in cell.get("outputs", []):
            packed = SPEC.search(output.get("data", {}).get("text/html", ""))
            if packed and calls:
                (name,) = filter(None, calls[0])
                yield (
                    OTHER_NAMES.get(name, name),
                    json.loads(gzip.decompress(base64.b64decode(packed[1]))),
                )


def _draw(name: str, spec: dict[str, Any]) -> None:
    key = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:16]
    path, kept = PICTURES / f"{name}.png", PICTURES / f"{name}.key"
    if path.exists() and kept.exists() and kept.read_text() == key:
        return
    spec = {**spec, "config": {**spec.get("config", {}), "background": "white"}}
    version: Any = vegalite_version()
    picture = Image.open(io.BytesIO(vl_convert.vegalite_to_png(spec, vl_version=version)))
    picture.thumbnail((900, 1350))
    square = picture.crop((0, 0, picture.width, min(picture.height, picture.width)))
    square.convert("RGB").save(path)
    kept.write_text(key)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx, after the tutorials were executed."""
    app.connect("builder-inited", draw_all, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
