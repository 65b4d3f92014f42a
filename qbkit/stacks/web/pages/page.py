"""A page as a folder: ``page.json``, which lists the resources, and a file for each body."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from qbkit.errors import SpecError
from qbkit.stacks.web.site import MANIFEST, NOTES

VERSION = 1
Kind = Literal["html", "css", "js", "font", "image", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PLAIN = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+")
"""Paths that are file names too."""
MOST_NAME_BYTES = 255
TYPES: dict[str, Kind] = {
    "text/html": "html",
    "text/css": "css",
    "text/javascript": "js",
    "application/javascript": "js",
    "application/x-javascript": "js",
}
"""Media types → kinds; ``image/…`` and ``font/…`` are known by their first word."""


class Resource(NamedTuple):
    """One response of a page."""

    url: str
    """Absolute, with https and without a port."""
    media_type: str
    body: bytes
    initiator: str = ""
    """URL of the resource that asks for it; empty for the document."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that change what the body means (content-encoding, location)."""
    status: int = 200

    @property
    def host(self) -> str:
        """Its host, without a port."""
        host = urlsplit(self.url).hostname or ""
        return f"[{host}]" if ":" in host else host

    @property
    def path(self) -> str:
        """Its path with the query."""
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def kind(self) -> Kind:
        """What the browser uses it for."""
        return kind_of(self.media_type)


@dataclass(frozen=True)
class Page:
    """A document and everything that it needs; the document comes first."""

    name: str
    resources: tuple[Resource, ...]
    main_image: str = ""
    """URL of the image that is meant to be the largest contentful paint; empty if unknown."""
    warnings: tuple[str, ...] = ()
    """What its recording lacks and what was changed, with counts."""
    notes: tuple[str, ...] = ()
    """More of it, which is no part of the site's version."""

    @property
    def document(self) -> Resource:
        """What the browser is told to load."""
        return self.resources[0]

    @property
    def size_bytes(self) -> int:
        """Bytes of all bodies."""
        return sum(len(resource.body) for resource in self.resources)

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts, that of the document first."""
        return tuple(dict.fromkeys(resource.host for resource in self.resources))


def kind_of(media_type: str) -> Kind:
    """The kind of a media type, whatever its parameters are."""
    name = media_type.partition(";")[0].strip().lower()
    if name in TYPES:
        return TYPES[name]
    if name.startswith("image/"):
        return "image"
    if name.startswith("font/") or "font" in name:
        return "font"
    return "other"


def write(page: Page, folder: Path) -> None:
    """Write a page into an empty folder."""
    rows = []
    for name, resource in zip(_file_names(page), page.resources, strict=True):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(resource.body)
        rows.append(
            {
                "url": resource.url,
                "host": resource.host,
                "path": resource.path,
                "media_type": resource.media_type,
                "bytes": len(resource.body),
                "sha256": hashlib.sha256(resource.body).hexdigest(),
                "initiator": resource.initiator,
                "headers": [list(pair) for pair in resource.headers],
                "status": resource.status,
                "file": file.relative_to(folder).as_posix(),
            }
        )
    data = {
        "version": VERSION,
        "name": page.name,
        "main_image": page.main_image,
        "warnings": list(page.warnings),
        "bytes": page.size_bytes,
        "resources": rows,
    }
    (folder / MANIFEST).write_text(json.dumps(data, indent=1) + "\n")
    if page.notes:
        (folder / NOTES).write_text(json.dumps(list(page.notes)) + "\n")


def _file_names(page: Page) -> Iterator[str]:
    """Paths where these can be file names too, so that servers need no list; else numbers."""
    paths = [PurePosixPath(resource.path) for resource in page.resources]
    folders = {folder for path in paths for folder in path.parents}
    for number, (path, resource) in enumerate(zip(paths, page.resources, strict=True)):
        plain = len(page.hosts) == 1 and PLAIN.fullmatch(resource.path) and path not in folders
        free = path.name != MANIFEST and max(map(len, path.parts), default=0) <= MOST_NAME_BYTES
        yield resource.path[1:] if plain and free else f"={number:04d}"


def read(folder: Path) -> Page:
    """The page that `write` wrote; raises SpecError where the folder is no such page."""
    try:
        data = json.loads((folder / MANIFEST).read_text())
        if data["version"] != VERSION:
            raise SpecError(f"{folder} was written by another version of qbkit; write it again")
        resources = tuple(
            Resource(
                row["url"],
                row["media_type"],
                (folder / row["file"]).read_bytes(),
                row["initiator"],
                tuple((name, value) for name, value in row["headers"]),
                row["status"],
            )
            for row in data["resources"]
        )
        return Page(data["name"], resources, data["main_image"], tuple(data.get("warnings", ())))
    except OSError as error:
        raise SpecError(f"the page {folder} lacks {error.filename}; write it again") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SpecError(
            f"{folder / MANIFEST} is no list of a page's resources; write it again"
        ) from None
