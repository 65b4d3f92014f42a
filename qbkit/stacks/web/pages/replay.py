"""Entries of an archive of Web Page Replay: gzipped JSON of responses by host and URL.

It does not say who asked for what, but it holds every body, which does.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from socket import socket
from typing import Any, cast

from qbkit.stacks.web.pages.entries import LACKING, Entry, Notes, kept
from qbkit.stacks.web.site import BINARY

DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What missing or wrong members raise."""


def replay_entries(path: Path, notes: Notes) -> list[Entry]:
    """The entries that have a response; raises ValueError with a few words."""
    data = path.read_bytes()
    try:
        archive = json.loads(gzip.decompress(data))
    except (OSError, EOFError, ValueError, zlib.error, RecursionError):
        raise ValueError("it is not gzipped JSON") from None
    found = []
    for url, recorded in _requests(archive):
        try:
            response = base64.b64decode(recorded[0]["SerializedResponse"])
            found.append(_entry(url, response))
        except (*DAMAGE, OSError, zlib.error, HTTPException):
            notes[LACKING] += 1
    return found


def _requests(archive: Any) -> Iterator[tuple[str, Any]]:
    """Addresses, and the list of requests of each."""
    try:
        for by_url in archive["Requests"].values():
            yield from by_url.items()
    except DAMAGE:
        raise ValueError("it has no responses by host and address") from None


def _entry(url: str, data: bytes) -> Entry:
    response = HTTPResponse(cast(socket, _Bytes(data)))
    response.begin()
    body, encoding = response.read(), response.getheader("content-encoding", "")
    if encoding in ("gzip", "deflate"):
        body = zlib.decompress(body, wbits=zlib.MAX_WBITS | 32)
        encoding = ""
    headers = {name.lower(): value for name, value in response.getheaders()}
    # The browser decodes what is still encoded.
    still = (("content-encoding", encoding),) if encoding else ()
    return Entry(
        url=url,
        status=response.status,
        media_type=headers.get("content-type", BINARY),
        size_bytes=len(body),
        body=body,
        initiator="",
        headers=(*kept(headers), *still),
        location=headers.get("location", ""),
    )


class _Bytes:
    """What http.client reads instead of a socket."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        """The data as a file."""
        return io.BytesIO(self.data)
