"""Display of charts without internet: each displayed chart contains a compressed copy of Vega.

JupyterLab's renderer supports Vega-Lite up to 5, but Altair 6 emits Vega-Lite 6. Altair's default
renderer fetches its scripts from a CDN. So qbkit's charts display as an HTML fragment with the
specification and vl-convert's Vega bundle (gzip, 0.4 MB). It works in JupyterLab, in VS Code and in
nbconvert's HTML, and needs nothing else.

The fragment fits the panels to the width of the cell through the width signals of Vega-Lite, and
takes dark colours on a dark ground, at once when the theme changes. Title and subtitle are HTML, so
that their lines break where the cell ends; what a chart's description says is folded below them.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from html import escape
from importlib import metadata
from importlib.resources import files
from typing import Any

import altair as alt

from qbkit.files import write_whole
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.pointer import without_hints
from qbkit.settings import CHARTS, cache_folder

RENDERER = "qbkit"
EMBED_OPTIONS = {
    "mode": "vega-lite",
    # Thousands of points: the canvas follows a brush where SVG stutters.
    "renderer": "canvas",
    # The editor would be a web page on the internet.
    "actions": {"export": True, "source": False, "compiled": False, "editor": False},
}
WAITING = (
    "An interactive chart appears here once this notebook is trusted (File, Trust Notebook) and "
    "its first chart is displayed."
)
ON_A_PAGE = "An interactive chart; it needs JavaScript."
"""The same for a page outside of a notebook."""
SHARED = """
(() => {
  const pages = (window.qbkitCharts = window.qbkitCharts || {});
  const loaded = (pages["@VERSION@"] = pages["@VERSION@"] || {});
  loaded.begun = true;
  if (loaded.found) loaded.found(window.vegaEmbed);
  else loaded.embed = Promise.resolve(window.vegaEmbed);
})();
"""
"""After Vega in a script: the charts of the page that have none draw themselves with it."""
BUNDLE = re.compile(r'(?<=const packed = ")[A-Za-z0-9+/=]+(?=";)')
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="UTF-8"><title>{title}</title></head>
<body style="margin:1.5rem;background:white">
{fragment}
</body>
</html>
"""


def enable() -> None:
    """Give all Altair charts of this process qbkit's look, and show them without internet.

    qbkit's charts need no such call. It enables Altair's theme and renderer ``qbkit`` for charts
    that the user makes or joins.
    """
    theme.register()
    alt.renderers.register(RENDERER, mimebundle)
    alt.theme.enable(theme.THEME)
    alt.renderers.enable(RENDERER)


def chart_fragment(spec: dict[str, Any], *, bundled: bool = True, waiting: str = WAITING) -> str:
    """HTML fragment that draws a Vega-Lite specification; ``waiting`` is its text until then.

    It needs nothing else. Unless ``bundled``, it draws itself with the Vega of another chart of the
    page, or of a `shared_script`.
    """
    version = vegalite_version()
    package = files("qbkit.plots.drawing")
    head, rest = _headed(spec)
    parts = {
        "@STYLE@": (package / "chart.css").read_text(encoding="utf-8"),
        "@WAITING@": escape(waiting),
        "@VERSION@": version,
        "@OPTIONS@": script_json(EMBED_OPTIONS),
        "@DARK@": script_json(theme.dark_colours()),
        "@INK@": theme.INK,
        "@DARKINK@": str(theme.INK_ON_DARK[theme.INK]),
        "@QUIET@": theme.QUIET_INK,
        "@DARKQUIET@": str(theme.INK_ON_DARK[theme.QUIET_INK]),
        "@BUNDLE@": _bundle(version) if bundled else "",
        "@SPEC@": _packed(script_json(rest).encode()),
        # Last, so that text of the chart cannot be taken for a placeholder.
        "@HEAD@": head,
    }
    fragment = (package / "embed.html").read_text(encoding="utf-8")
    for mark, text in parts.items():
        fragment = fragment.replace(mark, text)
    return fragment


def page_fragment(spec: dict[str, Any]) -> str:
    """The `chart_fragment` for a page that is no notebook."""
    return chart_fragment(spec, waiting=ON_A_PAGE)


def shared_script() -> str:
    """JavaScript with Vega for all charts of a page that have no bundle; load it anywhere in it."""
    version = vegalite_version()
    vega = gzip.decompress(base64.b64decode(_bundle(version))).decode()
    return vega + SHARED.replace("@VERSION@", version)


def without_bundle(fragment: str) -> str:
    """A `chart_fragment` that draws itself with the Vega of another one on the same page."""
    return BUNDLE.sub("", fragment)


def _headed(spec: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The chart's title, subtitle and description as HTML, and the specification without title.

    The description, one sentence a line, is folded below the subtitle. The specification also
    loses its background, so that the page's own ground shows.
    """
    config = {**spec.get("config", {}), "background": "transparent"}
    spec = {**spec, "config": config}
    rest = {name: value for name, value in spec.items() if name != "title"}
    title, lines = _title(spec)
    if not title:
        return "", spec
    words = _lines(lines)
    if more := spec.get("description"):
        words += f"<details><summary>More</summary>{_lines(more.splitlines())}</details>"
    head = f'<div class="qbkit-title">{escape(title)}</div>'
    return head + f'<div class="qbkit-subtitle">{words}</div>', rest


def _title(spec: dict[str, Any]) -> tuple[str, list[str]]:
    """The chart's title in one line, if it has one, and the lines of its subtitle."""
    title = spec.get("title") or {}
    title = {"text": title} if isinstance(title, str) else title
    if not isinstance(title.get("text"), str):
        return "", []
    lines = title.get("subtitle", [])
    return title["text"], [lines] if isinstance(lines, str) else lines


def _lines(sentences: Sequence[str]) -> str:
    return "".join(f"<div>{escape(sentence)}</div>" for sentence in sentences if sentence)


def _packed(content: bytes) -> str:
    """Content in gzip and base64; the same text each time."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def chart_page(spec: dict[str, Any]) -> str:
    """HTML page that contains the `chart_fragment`."""
    return PAGE.format(title="qbkit chart", fragment=page_fragment(spec))


def script_json(value: object) -> str:
    """JSON that is safe inside a ``<script>`` element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def vegalite_version() -> str:
    """``major.minor`` of the Vega-Lite that the installed Altair writes."""
    return ".".join(alt.VEGALITE_VERSION.split(".")[:2])


def mimebundle(spec: dict[str, Any], **_metadata: Any) -> dict[str, str]:
    """MIME bundle that displays a specification in a notebook: HTML, or see `settings.CHARTS`.

    As plain text, a chart is its title and subtitle.
    """
    title, lines = _title(spec)
    words = f": {'; '.join([title, *lines])}" if title else ""
    text = {"text/plain": f"<qbkit chart{words}>"}
    if os.environ.get(CHARTS) == "png":
        return {"image/png": _picture(spec), **text}
    return {"text/html": chart_fragment(spec), **text}


def show_html(output: Any, html: str) -> None:
    """Replace what an output widget shows; this also works outside of the kernel's main thread."""
    shown = {"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}
    output.outputs = (shown,)


def _picture(spec: dict[str, Any]) -> str:
    """A PNG in base64."""
    import vl_convert

    version: Any = vegalite_version()
    png = vl_convert.vegalite_to_png(without_hints(spec), vl_version=version)
    return base64.b64encode(png).decode()


@cache
def _bundle(version: str) -> str:
    """Vega, Vega-Lite and vega-embed: gzip, base64; the same bytes each time."""
    import vl_convert

    kept = cache_folder() / "vega" / f"{version}-{metadata.version('vl-convert-python')}.js.gz"
    try:
        packed = kept.read_bytes()
    except OSError:
        script = vl_convert.javascript_bundle(None, vl_version=version)  # type: ignore[arg-type]
        packed = gzip.compress(script.encode(), 9, mtime=0)
        # vl-convert takes 2.5 s to build the bundle; the cache saves that in later notebooks.
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, packed)
    return base64.b64encode(packed).decode()
