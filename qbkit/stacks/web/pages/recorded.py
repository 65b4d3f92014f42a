"""Pages recorded elsewhere: an HTTP Archive, an archive of Web Page Replay, or a folder of files.

Hosts, sizes, types and who asked for what are kept. A body that the recording holds is served as
it was. Where it lacks the body, one of the same size and type is made that asks for the same
resources.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np

from qbkit.errors import SpecError
from qbkit.stacks.toolchains.certificate import BROWSER_NAME
from qbkit.stacks.web.pages import images, text
from qbkit.stacks.web.pages.entries import (
    HTTP_NOTE,
    OUTSIDE,
    PATH_SAFE,
    Entry,
    Notes,
    chosen,
    end_of,
)
from qbkit.stacks.web.pages.har import har_entries
from qbkit.stacks.web.pages.page import Page, Resource, kind_of, read
from qbkit.stacks.web.pages.replay import replay_entries
from qbkit.stacks.web.pages.text import Need
from qbkit.stacks.web.site import BINARY, MANIFEST

FORMS = "an HTTP Archive (.har), an archive of Web Page Replay (.wprgo) or a folder with index.html"
COMPRESSED = (".gz", ".zst", ".xz", ".bz2")
MADE_NOTE = "bodies that were not recorded as a whole; others of their size and type are served"
NAME_SAFE = PATH_SAFE.translate(str.maketrans("", "", "%?#\\"))
"""Of a file's name, what browsers leave as it is when a page asks for it."""
PIXELS = (300, 200)
ASKING = ("html", "css", "js")
UPGRADE = ("content-security-policy", "upgrade-insecure-requests")
"""Lets a browser ask by https for what a recorded document asks for by http."""
ANYONE = ("access-control-allow-origin", "*")
"""Without it a browser takes no font from another host."""


def recorded_page(path: Path) -> Page:
    """The page of a recording, with warnings of what was left out or changed.

    Raises SpecError for a file that is none, in one sentence.
    """
    if path.is_dir():
        return read(path) if (path / MANIFEST).exists() else _folder(path)
    readers: dict[str, Callable[[Path, Notes], list[Entry]]] = {
        ".har": har_entries,
        ".wprgo": replay_entries,
    }
    kind = next((end for end in reversed(path.suffixes) if end not in COMPRESSED), "")
    if kind not in readers or not path.is_file():
        what = "there is no such file" if not path.exists() else "it is none"
        raise SpecError(f"{path} should be {FORMS}; {what}")
    notes = Notes()
    try:
        found, document = chosen(readers[kind](path, notes), notes)
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SpecError(f"{path} is damaged or no recording: {error}") from None
    if not document:
        why = f" ({'; '.join(_counted(notes))})" if notes else ""
        raise SpecError(f"{path} holds no HTML document that loaded{why}, so nothing can be loaded")
    resources = tuple(_resources(found, document, notes))
    outside = Notes({what: notes.pop(what) for what in OUTSIDE if what in notes})
    warnings, more = (tuple(f"{path.name}: {n}" for n in _counted(c)) for c in (notes, outside))
    return Page(path.stem, resources, warnings=warnings, notes=more)


def _counted(notes: Notes) -> list[str]:
    return [f"{what}: {count}" for what, count in notes.items()]


def _resources(found: Mapping[str, Entry], document: str, notes: Notes) -> Iterable[Resource]:
    """Resources with all bodies, the document first.

    A redirect asks for where it leads. Who is not known to have asked was asked for by the document
    at the end of the redirects.
    """
    page = end_of(document, found)
    asked = {url: _asker(entry, found) or page for url, entry in found.items()}
    asked |= {entry.location: url for url, entry in found.items() if entry.location}
    asked[document] = ""
    upgraded = HTTP_NOTE in notes
    for number, url in enumerate([document, *(url for url in found if url != document)]):
        entry = found[url]
        body = entry.body
        if body is None:
            notes[MADE_NOTE] += 1
            needs = [
                Need(other, kind_of(found[other].media_type))
                for other, by in asked.items()
                if by == url
            ]
            body = _made(entry, needs, np.random.default_rng([number, entry.size_bytes]))
        headers = _headers(entry, upgraded)
        yield Resource(url, entry.media_type, body, asked[url], headers, entry.status)


def _asker(entry: Entry, found: Mapping[str, Entry]) -> str:
    """URL of what asked for an entry; empty where that is unknown or cannot ask for anything."""
    url = end_of(entry.initiator, found)
    if not url or url == entry.url or found[url].failed:
        return ""
    return url if kind_of(found[url].media_type) in ASKING else ""


def _headers(entry: Entry, upgraded: bool) -> tuple[tuple[str, str], ...]:
    """The headers to serve an entry with."""
    headers = dict(entry.headers)
    if entry.location:
        headers["location"] = entry.location
    kind = kind_of(entry.media_type)
    if kind == "html" and upgraded:
        headers |= [UPGRADE]
    if kind == "font":
        headers = dict([ANYONE]) | headers
    return tuple(headers.items())


def _made(entry: Entry, needs: list[Need], rng: np.random.Generator) -> bytes:
    """A body of the right size and type; longer where its requests alone take more."""
    kind = "other" if entry.location else kind_of(entry.media_type)
    if kind == "html":
        return text.html(needs, entry.size_bytes, rng)
    if kind == "css":
        return text.css(needs, entry.size_bytes, rng)
    if kind == "js":
        return text.script(needs, entry.size_bytes, rng)
    if kind == "image" and "svg" not in entry.media_type:
        return images.jpeg(*PIXELS, entry.size_bytes, rng)
    return images.filler(entry.size_bytes, rng)


def _folder(path: Path) -> Page:
    """A folder of a static site, on one host; raises SpecError without index.html."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    first = path / "index.html"
    if first not in files:
        raise SpecError(f"{path} should be {FORMS}; it has no index.html")
    found: list[Resource] = []
    for file in [first, *(file for file in files if file != first)]:
        name = quote(file.relative_to(path).as_posix(), safe=NAME_SAFE)
        media_type = mimetypes.guess_type(file.name)[0] or BINARY
        document = f"https://{BROWSER_NAME}/{first.name}" if found else ""
        found.append(
            Resource(f"https://{BROWSER_NAME}/{name}", media_type, file.read_bytes(), document)
        )
    return Page(path.name, tuple(found))
