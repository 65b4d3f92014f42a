"""Pages of three sizes, made from a seed: the same seed gives the same bytes.

The sizes are the upper limits of the three classes of Yu and Benson (WWW '21). A page asks for its
resources as ordinary pages do: style sheets and one script stop the parser, a style sheet asks for
the fonts and a background, and the last script asks for the last third of the images and for more
scripts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbkit.stacks.toolchains.certificate import BROWSER_NAME
from qbkit.stacks.web.pages import fonts, images, text
from qbkit.stacks.web.pages.page import Page, Resource
from qbkit.stacks.web.pages.text import Need


@dataclass(frozen=True)
class Shape:
    """Size of a page, and how many resources it has of each kind."""

    size_bytes: int
    css: int
    js: int
    font: int
    image: int
    late_js: int
    """Scripts that the last script asks for."""

    @property
    def late_image(self) -> int:
        """Images that the last script asks for."""
        return self.image // 3


SHAPES = {
    "small": Shape(470_000, css=2, js=4, font=1, image=9, late_js=0),
    "medium": Shape(1_540_000, css=3, js=8, font=2, image=24, late_js=2),
    "large": Shape(2_830_000, css=4, js=13, font=3, image=44, late_js=3),
}
SHARES = {"css": 0.05, "js": 0.28, "font": 0.06, "image": 0.58}
"""Of all bytes; the document has the rest."""
MAIN_SHARE = 0.15
"""Of all bytes, in the main image."""
LEAST_BYTES = 1500
ENDS = {"css": "css", "js": "js", "font": "ttf", "image": "jpg"}
TYPES = {"css": "text/css", "js": "text/javascript", "font": "font/ttf", "image": "image/jpeg"}
MAIN_PIXELS, PIXELS = (1040, 660), (240, 104)
STYLE = """
body {margin: 0 auto; width: 780px; font: 15px sans-serif}
.menu {height: 40px}
.main {width: 520px; height: 330px; float: left; margin-right: 12px}
.thumb {width: 240px; height: 104px; object-fit: cover; margin: 2px}
h1 {margin: 6px 0} p {margin: 8px 0}
"""


def generate(size: str, seed: int) -> Page:
    """The page of that size and seed; raises KeyError for a size not in `SHAPES`."""
    shape = SHAPES[size]
    rng = np.random.default_rng([seed, shape.size_bytes])
    found = [
        Resource(url(kind, number), TYPES[kind], body, initiator(kind, number, shape))
        for kind in ("css", "js", "font", "image")
        for number, body in enumerate(_bodies(kind, shape, rng))
    ]
    left_bytes = shape.size_bytes - sum(len(resource.body) for resource in found)
    body = _document(shape, left_bytes, rng)
    document = Resource(url("html", 0), "text/html; charset=utf-8", body)
    return Page(f"{size}-{seed}", (document, *found), url("image", 0))


def url(kind: str, number: int) -> str:
    """Address of a page's resource."""
    name = f"{kind}/{number}.{ENDS[kind]}" if kind in ENDS else "index.html"
    return f"https://{BROWSER_NAME}/{name}"


def initiator(kind: str, number: int, shape: Shape) -> str:
    """URL of the resource that asks for this one."""
    late = (kind == "js" and shape.js - 1 - shape.late_js <= number < shape.js - 1) or (
        kind == "image" and number >= shape.image - shape.late_image
    )
    if late:
        return url("js", shape.js - 1)
    if kind == "font" or (kind == "image" and number == _background(shape)):
        return url("css", 0)
    return url("html", 0)


def _background(shape: Shape) -> int:
    """Number of the image that the first style sheet asks for."""
    return shape.image - shape.late_image - 1


def _needs(asking: str, shape: Shape) -> list[Need]:
    """Everything that one resource asks for."""
    return [
        Need(url(kind, number), kind)
        for kind in ENDS
        for number in range(getattr(shape, kind))
        if initiator(kind, number, shape) == asking
    ]


def _bodies(kind: str, shape: Shape, rng: np.random.Generator) -> list[bytes]:
    """The bodies of all resources of a kind; their sizes are log-normal, as on the web."""
    count = getattr(shape, kind)
    main = [round(shape.size_bytes * MAIN_SHARE)] if kind == "image" else []
    weights = rng.lognormal(0, 0.25 if kind == "font" else 0.8, count - len(main))
    spare_bytes = shape.size_bytes * SHARES[kind] - sum(main) - LEAST_BYTES * len(weights)
    parts = LEAST_BYTES + (spare_bytes * weights / weights.sum()).astype(int)
    sizes = [*main, *map(int, parts)]
    return [_body(kind, number, size, shape, rng) for number, size in enumerate(sizes)]


def _body(kind: str, number: int, size: int, shape: Shape, rng: np.random.Generator) -> bytes:
    needs = _needs(url(kind, number), shape)
    if kind == "css":
        return text.css(needs, size, rng)
    if kind == "js":
        return text.script(needs, size, rng)
    if kind == "font":
        return fonts.font(f"{text.FONT_FAMILY}{number}", size, rng)
    return images.jpeg(*(PIXELS if number else MAIN_PIXELS), size, rng)


def _document(shape: Shape, size_bytes: int, rng: np.random.Generator) -> bytes:
    """The HTML: menu, main image with pictures beside it, then text with a picture now and then."""
    needs = _needs(url("html", 0), shape)
    styles, scripts, pictures = (
        [need.url for need in needs if need.kind == kind] for kind in ("css", "js", "image")
    )
    first, *others = scripts[:-1]
    head = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page</title>',
        '<link rel="icon" href="data:,">',
        *(f'<link rel="stylesheet" href="{address}">' for address in styles),
        f'<style>{STYLE}</style><script src="{first}"></script>',
        *(f'<script async src="{address}"></script>' for address in others),
        f'</head><body><div class="menu back0">{text.words(6, rng)}</div>',
        f'<h1>{text.words(4, rng)}</h1><img class="main" src="{pictures[0]}" alt="">',
    ]
    tail = f'<div id="more"></div><script src="{scripts[-1]}"></script></body></html>\n'
    beside, below = pictures[1:4], pictures[4:]
    body = [_image(address) for address in beside]
    for address in below:
        body.append(f"<p>{text.paragraph(rng)}</p>{_image(address)}")
    page = "\n".join([*head, *body, tail])
    return text.padded(page, size_bytes, "<!--", "-->", rng)


def _image(address: str) -> str:
    return f'<img class="thumb" src="{address}" alt="">'
