"""Display of charts without internet: each displayed chart contains a compressed copy of Vega.

JupyterLab's renderer supports Vega-Lite up to 5, but Altair 6 emits Vega-Lite 6. Altair's default
renderer fetches its scripts from a CDN. So qbkit's charts display as an HTML fragment with the
specification and vl-convert's Vega bundle (gzip, 0.4 MB). It works in JupyterLab, in VS Code and in
nbconvert's HTML, and needs nothing else.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.resources import files
from typing import Any

import altair as alt

from qbkit.files import write_whole
from qbkit.plots import theme
from qbkit.settings import cache_folder

RENDERER = "qbkit"
EMBED_OPTIONS = {
    "mode": "vega-lite",
    # Thousands of points: the canvas follows a brush where SVG stutters.
    "renderer": "canvas",
    # The editor would be a web page on the internet.
    "actions": {"export": True, "source": False, "compiled": False, "editor": False},
}
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


def chart_fragment(spec: dict[str, Any]) -> str:
    """Self-contained HTML fragment that draws a Vega-Lite specification."""
    version = vegalite_version()
    template = (files("qbkit.plots") / "embed.html").read_text(encoding="utf-8")
    parts = {
        "@VERSION@": version,
        "@OPTIONS@": script_json(EMBED_OPTIONS),
        "@BUNDLE@": _bundle(version),
        # Last, so that text inside the specification cannot be taken for a placeholder.
        "@SPEC@": script_json(spec),
    }
    for mark, text in parts.items():
        template = template.replace(mark, text)
    return template


def chart_page(spec: dict[str, Any]) -> str:
    """HTML page that contains the `chart_fragment`."""
    return PAGE.format(title="qbkit chart", fragment=chart_fragment(spec))


def script_json(value: object) -> str:
    """JSON that is safe inside a ``<script>`` element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def vegalite_version() -> str:
    """``major.minor`` of the Vega-Lite that the installed Altair writes."""
    return ".".join(alt.VEGALITE_VERSION.split(".")[:2])


def mimebundle(spec: dict[str, Any], **_metadata: Any) -> dict[str, str]:
    """MIME bundle that displays a Vega-Lite specification in a notebook."""
    return {"text/html": chart_fragment(spec), "text/plain": "<qbkit chart>"}


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
