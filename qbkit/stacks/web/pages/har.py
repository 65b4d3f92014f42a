"""Entries of an HTTP Archive 1.2, as browsers and proxies write it.

They differ: byte order marks, members that are absent or null, a status of 0 for what came from a
cache or by server push, methods that load nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from qbkit.opening import open_plain
from qbkit.spec.web import MOST_OBJECT_BYTES
from qbkit.stacks.web.pages.entries import LACKING, NOT_MODIFIED, PAGES_NOTE, Entry, Notes, kept
from qbkit.stacks.web.site import BINARY

LOADING = ("GET", "POST")
"""Methods whose responses are part of a page."""
LEAST_PART, BOM_BYTES = 0.9, 3
"""A body is whole with this part of its size; tools may shorten ends of lines."""
UNKNOWN_TYPES = ("", "x-unknown")


def har_entries(path: Path, notes: Notes) -> list[Entry]:
    """The entries that have an address and a response; raises ValueError with a few words."""
    with open_plain(path, lambda where: notes.update({f"damaged {where}": 1})) as file:
        entries = _entries_of(file.read())
    found = []
    pages: set[str] = set()
    for entry in entries:
        try:
            if str(entry["request"].get("method") or LOADING[0]).upper() in LOADING:
                found.append(_entry(entry))
                pages |= {str(entry["pageref"])} if entry.get("pageref") else set()
            else:
                notes[f"entries left out, whose method is not {' or '.join(LOADING)}"] += 1
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            notes[LACKING] += 1
    if len(pages) > 1:
        notes[PAGES_NOTE] = len(pages)
    return found


def _entries_of(data: bytes) -> list[Any]:
    try:
        document = json.loads(data)  # in UTF-8, UTF-16 or UTF-32, with a byte order mark or without
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8 or UTF-16") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"from line {error.lineno}, column {error.colno} on it is not JSON"
        ) from None
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise ValueError("it has no list log.entries")
    return entries


def _entry(entry: Mapping[str, Any]) -> Entry:
    """An entry; raises one of the errors of missing or wrong members."""
    url, response = str(entry["request"]["url"]), entry["response"]
    content = response.get("content") or {}
    headers = {
        str(header["name"]).lower(): _first_line(str(header["value"]))
        for header in response.get("headers") or []
    }
    body = _whole(_body(content), content)
    return Entry(
        url=url,
        status=int(response.get("status") or 0),
        media_type=_media_type(str(content.get("mimeType") or ""), headers, url),
        size_bytes=len(body) if body is not None else _size_bytes(response, content),
        body=body,
        initiator=_initiator(entry.get("_initiator")),
        headers=kept(headers),
        location=headers.get("location") or str(response.get("redirectURL") or ""),
        sent_bytes=_sent_bytes(response, content, body),
    )


def _first_line(value: str) -> str:
    """The header, or the first of several, which Chrome joins by line ends."""
    return next(iter(value.replace("\0", "").splitlines()), "").strip()


def _media_type(found: str, headers: Mapping[str, str], url: str) -> str:
    """The type of the content, of the header, or by the ending of the address."""
    for name in (_first_line(found), headers.get("content-type", "")):
        if name.strip().lower() not in UNKNOWN_TYPES:
            return name
    return mimetypes.guess_type(urlsplit(url).path)[0] or BINARY


def _body(content: Mapping[str, Any]) -> bytes | None:
    """The decoded body, or None where the archive has none."""
    text = content.get("text")
    if not text or not isinstance(text, str):
        return None
    if content.get("encoding") != "base64":
        return text.encode(errors="surrogatepass")
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


def _whole(body: bytes | None, content: Mapping[str, Any]) -> bytes | None:
    """The body; None where the archive has a part of it only, as those of Firefox may.

    As UTF-8 it may be shorter than it was: without the byte order mark, and half as long as UTF-16.
    """
    wide = "utf-16" in str(content.get("mimeType")).lower()
    least = (LEAST_PART / 2 if wide else LEAST_PART) * int(content.get("size") or 0)
    return None if body is None or len(body) + BOM_BYTES < least else body


def _size_bytes(response: Mapping[str, Any], content: Mapping[str, Any]) -> int:
    """Bytes on the wire where they are known, else those of the decoded body, as from a cache."""
    sent = 0 if response.get("status") == NOT_MODIFIED else int(response.get("bodySize") or 0)
    size = sent if sent > 0 else max(0, int(content.get("size") or 0))
    if size > MOST_OBJECT_BYTES:
        raise ValueError("a server would keep it in memory")
    return size


def _sent_bytes(
    response: Mapping[str, Any], content: Mapping[str, Any], body: bytes | None
) -> int | None:
    """Bytes on the wire, 0 if they are unknown; None if there is no size and no body at all.

    Where headers are compressed, Chrome does not separate a body's size from that of the response.
    """
    cached = response.get("status") == NOT_MODIFIED
    sizes = [response.get("bodySize"), response.get("_transferSize"), content.get("size")]
    body_bytes, response_bytes, plain_bytes = (_number(size) for size in sizes)
    if body is None and (cached or body_bytes < 0) and plain_bytes < (1 if cached else 0):
        return None
    return 0 if cached else max(body_bytes, 0) or max(response_bytes, 0)


def _number(size: Any) -> int:
    """A size; HAR's -1 where there is none."""
    return -1 if size is None else int(size)


def _initiator(found: Any) -> str:
    """URL of what asked, from Chrome's object or a plain URL."""
    if isinstance(found, str):
        return found
    if not isinstance(found, Mapping):
        return ""
    stack = found.get("stack")
    while isinstance(stack, Mapping):
        for url in _frame_urls(stack.get("callFrames")):
            return url
        stack = stack.get("parent")
    return str(found.get("url") or "")


def _frame_urls(frames: Any) -> Iterable[str]:
    """The addresses of a stack's frames that have one, innermost first."""
    for frame in frames if isinstance(frames, list) else []:
        if isinstance(frame, Mapping) and frame.get("url"):
            yield str(frame["url"])
