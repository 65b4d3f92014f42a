"""HTML, CSS and JavaScript of an exact size that ask for other resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "ren",
    "tu",
    "sa",
    "vel",
    "dor",
    "pin",
    "as",
    "que",
    "ta",
    "ler",
    "mo",
    "ni",
    "bra",
    "cu",
    "est",
    "por",
    "ga",
]
FONT_FAMILY = "Page"


@dataclass(frozen=True)
class Need:
    """A resource that a text asks for, and how."""

    url: str
    kind: str


def words(count: int, rng: np.random.Generator) -> str:
    """Invented words of two to four syllables."""
    found = []
    for length in rng.integers(2, 5, count):
        found.append("".join(SYLLABLES[i] for i in rng.integers(0, len(SYLLABLES), length)))
    return " ".join(found)


def paragraph(rng: np.random.Generator) -> str:
    """About six lines of text."""
    return words(60, rng).capitalize() + "."


def padded(text: str, size_bytes: int, start: str, end: str, rng: np.random.Generator) -> bytes:
    """The text with a comment or spaces behind it, of this size; the text if that is longer."""
    body = text.encode()
    spare = size_bytes - len(body) - len(start) - len(end)
    if spare <= 0:
        return body.ljust(size_bytes)
    filling = words(spare // 6 + 1, rng)
    while len(filling) < spare:
        filling += " " + words(20, rng)
    return body + (start + filling[:spare] + end).encode()


def html(needs: Sequence[Need], size_bytes: int, rng: np.random.Generator) -> bytes:
    """A document that asks for everything by the usual elements, with text between the images."""
    head, body = ["<!doctype html><html><head>", '<link rel="icon" href="data:,">'], []
    for number, need in enumerate(needs):
        if need.kind == "css":
            head.append(f'<link rel="stylesheet" href="{need.url}">')
        elif need.kind == "js":
            head.append(f'<script async src="{need.url}"></script>')
        elif need.kind == "font":
            rule = f"@font-face {{font-family: F{number}; src: url({need.url})}}"
            head.append(f"<style>{rule} .f{number} {{font-family: F{number}}}</style>")
            body.append(f'<p class="f{number}">{words(12, rng)}</p>')
        elif need.kind == "image":
            body.append(f'<img src="{need.url}" alt="">')
        elif need.kind == "html":
            body.append(f'<iframe src="{need.url}"></iframe>')
        else:
            body.append(f"<script>{_from_script(need)}</script>")
    text = "\n".join([*head, "</head><body>", paragraph(rng), *body, "</body></html>\n"])
    return padded(text, size_bytes, "<!--", "-->", rng)


def css(needs: Sequence[Need], size_bytes: int, rng: np.random.Generator) -> bytes:
    """Rules, with the fonts and pictures that they need."""
    fonts = [need.url for need in needs if need.kind == "font"]
    rules = [
        f"@font-face {{font-family: {FONT_FAMILY}{i}; font-display: swap; src: url({url})}}"
        for i, url in enumerate(fonts)
    ]
    rules += [f"@import url({need.url});" for need in needs if need.kind == "css"]
    rules.sort(key=lambda rule: not rule.startswith("@import"))
    families = ["h1, .menu", "p", "h2"]
    rules += [
        f"{where} {{font-family: {FONT_FAMILY}{i}, sans-serif}}"
        for i, where in zip(range(len(fonts)), families, strict=False)
    ]
    for i, need in enumerate(need for need in needs if need.kind == "image"):
        rules.append(f".back{i} {{background-image: url({need.url})}}")
    text = "\n".join(rules) + "\n"
    while len(text) < size_bytes - 200:
        name, colour = words(1, rng), rng.integers(0, 256, 3)
        text += f".{name} {{color: rgb({colour[0]}, {colour[1]}, {colour[2]}); margin: 4px}}\n"
    return padded(text, size_bytes, "/*", "*/", rng)


def script(needs: Sequence[Need], size_bytes: int, rng: np.random.Generator) -> bytes:
    """Functions that are hardly called, and requests for the needs when the script runs."""
    lines = ["(() => {"]
    for need in needs:
        lines.append(_from_script(need))
    for number in range(max(1, (size_bytes - 400) // 400)):
        a, b = (words(1, rng) for _ in range(2))
        lines.append(f"function {a}{number}(x) {{ const {b} = x * {number}; return [{b}, x]; }}")
        if sum(map(len, lines)) > size_bytes - 400:
            break
    lines.append("})();")
    return padded("\n".join(lines) + "\n", size_bytes, "/*", "*/", rng)


def _from_script(need: Need) -> str:
    if need.kind == "image":
        return (
            f'{{const i = new Image(); i.src = "{need.url}"; i.className = "thumb"; '
            '(document.getElementById("more") || document.body).append(i);}'
        )
    if need.kind == "js":
        return (
            '{const s = document.createElement("script"); '
            f's.src = "{need.url}"; document.head.append(s);}}'
        )
    if need.kind == "css":
        return (
            '{const l = document.createElement("link"); l.rel = "stylesheet"; '
            f'l.href = "{need.url}"; document.head.append(l);}}'
        )
    return f'fetch("{need.url}", {{mode: "no-cors"}}).catch(() => {{}});'
