"""Writes the atlas: HTML that opens from a disk, with one script and one style for all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any

import jinja2
from altair.utils.schemapi import debug_mode
from markupsafe import Markup, escape
from nbconvert.filters import markdown2html

from qbkit import __version__, progress
from qbkit.atlas import again
from qbkit.atlas.answers import published_answers
from qbkit.atlas.claims import findings
from qbkit.atlas.inferred import parameter_rows
from qbkit.atlas.pages import (
    causes_page,
    implementation_page,
    index_page,
    maps_page,
    pairs_page,
    seconds_text,
    shared_words,
    sweep_words,
)
from qbkit.atlas.published import Published, read_published
from qbkit.atlas.shares import COMMAND as SHARES_AGAIN
from qbkit.atlas.shares import share_figures
from qbkit.atlas.standing import source_links
from qbkit.atlas.tiles import SHARE, tile_style
from qbkit.files import write_whole, writing
from qbkit.metrics import map_sentence
from qbkit.plots.drawing.captions import signed
from qbkit.plots.drawing.html import run_sentence
from qbkit.plots.drawing.render import shared_script
from qbkit.plots.maps.conformance_map import setting_text

CHARTS, OURS = "charts.js", ("atlas.js", "atlas.css")


def write_atlas(data: str | Path, out: str | Path) -> Path:
    """Write a site of the published data in a folder, and return the path of its first page.

    It has a verdict of each implementation and a page for it, the causes, the conformance maps and
    the interactions. It needs no server and loads nothing from a network. Pages of
    implementations that the data no longer name are deleted. Raises StoreError if ``data`` holds no
    published sweep, and for a folder that cannot be written.
    """
    target = Path(out)
    written = set()
    with progress.bar(unit="page", desc="atlas: reading", leave=False, disable=None) as bar:
        published = read_published(Path(data))
        bar.total = len(published.implementations)
        bar.set_description("atlas")
        _write(target / CHARTS, shared_script())
        for name in OURS:
            _write(target / name, (files("qbkit.atlas") / name).read_text(encoding="utf-8"))
        folder = again.REPRODUCE.format(escape(quote(Path(data).resolve().name)))
        for name, html in _pages(published):
            _write(target / name, html.replace(again.REPRODUCE.format("data"), folder))
            written.add(target / name)
            bar.update(name.startswith("implementations/"))
    for old in {*target.glob("implementations/*.html")} - written:
        old.unlink()
    return target / "index.html"


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())


def _pages(published: Published) -> Iterator[tuple[str, str]]:
    """Path in the site and HTML of each page."""
    environment = _environment(published)
    found = findings(published)
    answers = published_answers(published.folder)
    environment.globals["answers"] = answers
    environment.globals["has_findings"] = bool(found)
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
        if answers:
            template = environment.get_template("answers.html.jinja")
            shares = share_figures(published.folder)
            yield "answers.html", template.render(root="", tables=answers, shares=shares)
        if found:
            groups = {each.group: [f for f in found if f.group == each.group] for each in found}
            template = environment.get_template("findings.html.jinja")
            yield "findings.html", template.render(root="", groups=groups)
        template = environment.get_template("implementation.html.jinja")
        for name in published.implementations:
            mine = [each for each in found if name in each.about]
            shown = implementation_page(published, name)
            yield page_of(name), template.render(root="../", findings=mine, **shown)


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
            "run_sentence": run_sentence,
            "seconds_text": seconds_text,
            "source_links": source_links,
            "tile": tile_style,
            "share_tile": partial(tile_style, scale=SHARE),
            "shared_words": shared_words,
            "sweep_words": sweep_words,
            "setting_text": setting_text,
            "map_sentence": map_sentence,
            "command": again.sweep_again,
            "shares_again": SHARES_AGAIN,
            "releases_again": again.releases_again,
            "parameter_rows": parameter_rows,
        }
    )
    of_one_decimal = partial(signed, decimals=1)
    filters = {"to": _number, "signed": of_one_decimal, "code": _code, "markdown": markdown2html}
    environment.filters.update(filters)
    return environment


def _number(value: Any, decimals: int = 2) -> str:
    """A number with this many decimals; a dash for one that is unknown."""
    return "–" if value is None or value != value else f"{float(value):.{decimals}f}"


def _code(text: str) -> Markup:
    """Text whose words in backquotes are code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
