"""Writes the atlas: HTML that opens from a disk, with one script and one style for all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from altair.utils.schemapi import debug_mode

from qbkit import __version__
from qbkit.atlas import again
from qbkit.atlas.inferred import parameter_rows
from qbkit.atlas.pages import (
    causes_page,
    implementation_page,
    index_page,
    maps_page,
    pairs_page,
    shared_words,
    sweep_words,
)
from qbkit.atlas.published import Published, read_published
from qbkit.errors import StoreError
from qbkit.files import write_whole
from qbkit.metrics import map_sentence
from qbkit.plots.drawing.render import shared_script
from qbkit.plots.maps.conformance_map import setting_text

SCRIPT, STYLE = "atlas.js", "atlas.css"
FOLLOW_THEME = """
// Charts look at the page's ground again when an attribute of the page changes.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (now) => {
  document.documentElement.dataset.dark = now.matches;
});
"""


def write_atlas(data: str | Path, out: str | Path) -> Path:
    """Write a site of the published data in a folder, and return the path of its first page.

    It has the conformance maps, the interactions, the studies with their causes, and a page for
    each implementation. It needs no server and loads nothing from a network. Pages of
    implementations that the data no longer name are deleted. Raises StoreError if ``data`` holds no
    published sweep, and for a folder that cannot be written.
    """
    published, target = read_published(Path(data)), Path(out)
    try:
        (target / "implementations").mkdir(parents=True, exist_ok=True)
        written = {target / SCRIPT, target / STYLE}
        write_whole(target / SCRIPT, (shared_script() + FOLLOW_THEME).encode())
        write_whole(target / STYLE, (files("qbkit.atlas") / STYLE).read_bytes())
        for name, html in _pages(published):
            write_whole(target / name, html.encode())
            written.add(target / name)
        for old in {*target.glob("implementations/*.html")} - written:
            old.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{out} cannot be written: {reason}; choose another folder") from None
    return target / "index.html"


def _pages(published: Published) -> Iterator[tuple[str, str]]:
    """Path in the site and HTML of each page."""
    environment = _environment(published)
    shared = {
        "index.html": index_page,
        "conformance.html": maps_page,
        "interactions.html": pairs_page,
        "causes.html": causes_page,
    }
    # Altair would check each part of every chart as it is made, which the charts' own tests do.
    with debug_mode(False):
        for name, make in shared.items():
            template = environment.get_template(f"{name}.jinja")
            yield name, template.render(root="", **make(published))
        template = environment.get_template("implementation.html.jinja")
        for name in published.implementations:
            page = template.render(root="../", **implementation_page(published, name))
            yield page_of(name), page


def page_of(name: str) -> str:
    """Path of an implementation's page in the site."""
    return f"implementations/{re.sub(r'[^A-Za-z0-9.]+', '-', name)}.html"


def _environment(published: Published) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("qbkit.atlas"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        {
            "pages": {name: page_of(name) for name in published.implementations},
            "version": __version__,
            "published": published,
            "shared_words": shared_words,
            "sweep_words": sweep_words,
            "setting_text": setting_text,
            "map_sentence": map_sentence,
            "command": again.sweep_again,
            "releases_again": again.releases_again,
            "parameter_rows": parameter_rows,
        }
    )
    environment.filters.update({"to": _number, "signed": _signed})
    return environment


def _number(value: Any, decimals: int = 2) -> str:
    """A number with this many decimals; a dash for one that is unknown."""
    return "–" if value is None or value != value else f"{float(value):.{decimals}f}"


def _signed(value: Any, decimals: int = 1) -> str:
    """A number with a typographic sign; a dash for one that is unknown."""
    return "–" if value != value else f"{float(value):+.{decimals}f}".replace("-", "−")
