"""Pages recorded elsewhere: an HTTP Archive, an archive of Web Page Replay, or a folder of files.

Hosts, sizes, types and who asked for what are kept. A body that the recording holds is served as
it was. Where it lacks the body, one of the same size and type is made that asks for the same
resources.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import mimetypes
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from socket import socket
from typing import Any, cast
from urllib.parse import quote, urldefrag, urlsplit

import numpy as np

from qbkit.errors import SpecError
from qbkit.stacks.certificate import BROWSER_NAME
from qbkit.stacks.pages import images, text
from qbkit.stacks.pages.page import Page, Resource, kind_of, read
from qbkit.stacks.pages.text import Need
from qbkit.stacks.site import MANIFEST

FORMS = "an HTTP Archive (.har), an archive of Web Page Replay (.wprgo) or a folder with index.html"
KEPT_HEADERS = ("location", "access-control-allow-origin")
"""Headers that matter to the load. Bodies are served decoded: archives hold them so, or are decoded
here where this can be done."""
NO_CONTENT, LEAST_FAILURE = 204, 400
PIXELS = (300, 200)
DAMAGE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError),
    *(zlib.error, HTTPException, RecursionError),
)
"""What reading a file that is no recording raises."""


@dataclass(frozen=True)
class _Entry:
    """A response of a recording; ``body`` is None where it was not recorded."""

    url: str
    status: int
    media_type: str
    size_bytes: int
    body: bytes | None
    initiator: str
    headers: tuple[tuple[str, str], ...]


def recorded_page(path: Path) -> Page:
    """The page of a recording; raises SpecError for a file that is none, in one sentence."""
    if path.is_dir():
        return read(path) if (path / MANIFEST).exists() else _folder(path)
    readers: dict[str, Callable[[Path], list[_Entry]]] = {".har": _har, ".wprgo": _replay}
    if path.suffix not in readers or not path.is_file():
        what = "there is no such file" if not path.exists() else "it is none"
        raise SpecError(f"{path} should be {FORMS}; {what}")
    try:
        entries = readers[path.suffix](path)
    except DAMAGE as error:
        raise SpecError(f"{path} is damaged or no recording: {_brief(error)}") from None
    return Page(path.stem, tuple(_resources(_usable(entries, path))))


def _usable(entries: Iterable[_Entry], path: Path) -> list[_Entry]:
    """One entry per https URL, the document first; failed ones are served as empty."""
    found: dict[str, _Entry] = {}
    for entry in entries:
        url = urldefrag(entry.url)[0]
        if url.startswith("http:"):
            url = "https:" + url.removeprefix("http:")
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            continue
        if parts.port is not None:
            url = parts._replace(netloc=parts.hostname).geturl()
        kept = replace(entry, url=url)
        if not 200 <= entry.status < LEAST_FAILURE:
            kept = replace(kept, status=NO_CONTENT, body=b"", size_bytes=0)
        if url not in found or (found[url].body is None and kept.body is not None):
            found[url] = kept
    document = next((e for e in found.values() if kind_of(e.media_type) == "html"), None)
    if document is None:
        raise SpecError(f"{path} holds no HTML document, so there is nothing to load")
    return [document, *(entry for entry in found.values() if entry is not document)]


def _resources(entries: list[_Entry]) -> Iterable[Resource]:
    """Resources with all bodies; who is not known to have asked was asked for by the document."""
    urls = {entry.url for entry in entries}
    document = entries[0].url
    asked = {
        entry.url: entry.initiator if entry.initiator in urls - {entry.url} else document
        for entry in entries[1:]
    }
    for number, entry in enumerate(entries):
        body = entry.body
        if body is None:
            needs = [
                Need(other.url, kind_of(other.media_type))
                for other in entries[1:]
                if asked[other.url] == entry.url
            ]
            body = _made(entry, needs, np.random.default_rng([number, entry.size_bytes]))
        initiator = asked.get(entry.url, "")
        yield Resource(entry.url, entry.media_type, body, initiator, entry.headers, entry.status)


def _made(entry: _Entry, needs: list[Need], rng: np.random.Generator) -> bytes:
    """A body of the right size and type; longer where its requests alone take more."""
    kind = kind_of(entry.media_type)
    if kind == "html":
        return text.html(needs, entry.size_bytes, rng)
    if kind == "css":
        return text.css(needs, entry.size_bytes, rng)
    if kind == "js":
        return text.script(needs, entry.size_bytes, rng)
    if kind == "image" and "svg" not in entry.media_type:
        return images.jpeg(*PIXELS, entry.size_bytes, rng)
    return images.filler(entry.size_bytes, rng)


def _har(path: Path) -> list[_Entry]:
    """The entries of an HTTP Archive 1.2, with Chrome's ``_initiator`` where there is one."""
    log = json.loads(path.read_text())["log"]
    found = []
    for entry in log["entries"]:
        response, content = entry["response"], entry["response"]["content"]
        body = _har_body(content)
        size = len(body) if body is not None else _har_bytes(response)
        media_type = content.get("mimeType") or "application/octet-stream"
        url = entry["request"]["url"]
        found.append(
            _Entry(
                url,
                int(response["status"]),
                media_type,
                size,
                body,
                _har_initiator(entry.get("_initiator")),
                _kept((header["name"], header["value"]) for header in response["headers"]),
            )
        )
    return found


def _har_body(content: Mapping[str, Any]) -> bytes | None:
    """The decoded body, or None where the archive has none."""
    text_found = content.get("text")
    if not text_found:
        return None
    if content.get("encoding") == "base64":
        return base64.b64decode(text_found)
    return str(text_found).encode()


def _har_bytes(response: Mapping[str, Any]) -> int:
    """Bytes on the wire where they are known, else those of the decoded body."""
    sent = int(response.get("bodySize", -1))
    return sent if sent > 0 else max(0, int(response["content"].get("size", 0)))


def _kept(headers: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    """The headers to serve."""
    found = ((name.lower(), str(value)) for name, value in headers)
    return tuple((name, value) for name, value in found if name in KEPT_HEADERS)


def _har_initiator(found: Any) -> str:
    """URL of what asked, from Chrome's object or a plain URL."""
    if isinstance(found, str):
        return found
    if not isinstance(found, Mapping):
        return ""
    stack = found.get("stack")
    while isinstance(stack, Mapping):
        for frame in stack.get("callFrames", []):
            if frame.get("url"):
                return str(frame["url"])
        stack = stack.get("parent")
    return str(found.get("url", ""))


def _replay(path: Path) -> list[_Entry]:
    """The entries of Web Page Replay's archive: gzipped JSON of responses by host and URL.

    It does not say who asked for what, but it holds every body, which does.
    """
    archive = json.loads(gzip.decompress(path.read_bytes()))
    found = []
    for by_url in archive["Requests"].values():
        for url, recorded in by_url.items():
            data = base64.b64decode(recorded[0]["SerializedResponse"])
            response = HTTPResponse(cast(socket, _Bytes(data)))
            response.begin()
            body, encoding = response.read(), response.getheader("content-encoding", "")
            if encoding in ("gzip", "deflate"):
                body = zlib.decompress(body, wbits=zlib.MAX_WBITS | 32)
                encoding = ""
            headers = _kept(response.getheaders())
            if encoding:  # the browser decodes it
                headers = (*headers, ("content-encoding", encoding))
            media_type = response.getheader("content-type", "application/octet-stream")
            found.append(_Entry(url, response.status, media_type, len(body), body, "", headers))
    return found


class _Bytes:
    """What http.client reads instead of a socket."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        """The data as a file."""
        return io.BytesIO(self.data)


def _folder(path: Path) -> Page:
    """A folder of a static site, on one host; raises SpecError without index.html."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    first = path / "index.html"
    if first not in files:
        raise SpecError(f"{path} should be {FORMS}; it has no index.html")
    found: list[Resource] = []
    for file in [first, *(file for file in files if file != first)]:
        name = quote(file.relative_to(path).as_posix())
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        document = f"https://{BROWSER_NAME}/{first.name}" if found else ""
        found.append(
            Resource(f"https://{BROWSER_NAME}/{name}", media_type, file.read_bytes(), document)
        )
    return Page(path.name, tuple(found))


def _brief(error: Exception) -> str:
    return f"{type(error).__name__} {str(error).splitlines()[0][:80] if str(error) else ''}".strip()
