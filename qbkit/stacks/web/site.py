"""What a server serves: a folder of files, mounted in the guest."""

from __future__ import annotations

import json
import mimetypes
import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from qbkit.stacks.toolchains.build import build_once, fingerprint

MOUNT = "/run/qb/site"
"""Where the guest sees the folder."""
WRITTEN_S = 1_767_225_600
"""When all files of a site were written, in seconds since 1970: the guest's first moment."""
MANIFEST = "page.json"
"""The list of a page's resources (see `qbkit.stacks.web.pages.page`)."""
NOTES = "=notes.json"
"""What is said of a page beside that, in a file that is no part of its version."""
OK, NO_CONTENT = 200, 204
BINARY = "application/octet-stream"


class File(NamedTuple):
    """One file of a site."""

    path: str
    """Path in the URL, with its leading slash."""
    guest_path: str
    """Path in the guest."""
    content_type: str
    """Media type; by the ending of its name where nothing else says it."""
    host: str = ""
    """The only host that serves it; empty for a site without names."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    """More headers of its response."""

    @property
    def plain(self) -> bool:
        """Whether a server finds it by its path, and sends it as any other file.

        An empty response in place of one that failed may be an empty file.
        """
        named = self.guest_path == f"{MOUNT}{self.path}"
        return named and not self.headers and self.status in (OK, NO_CONTENT)


@dataclass(frozen=True)
class Site:
    """A folder of this machine whose files a server serves under their paths."""

    folder: Path
    start: str
    """The path that the client asks for first."""
    hosts: tuple[str, ...] = ()
    """All its hosts, that of ``start`` first; empty for a site without names."""

    def files(self) -> list[File]:
        """Its files in the order of their paths, or as the list of a page has them."""
        if (self.folder / MANIFEST).exists():
            return self._listed()
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        names = [path.relative_to(self.folder).as_posix() for path in found]
        return [File(f"/{name}", f"{MOUNT}/{name}", _content_type(name)) for name in names]

    @property
    def size_bytes(self) -> int:
        """Size of its folder."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def warnings(self) -> list[str]:
        """What the recording of a page lacks and what was changed, one sentence each."""
        if not (self.folder / MANIFEST).exists():
            return []
        notes = self.folder / NOTES
        more = json.loads(notes.read_text()) if notes.exists() else []
        return [*json.loads((self.folder / MANIFEST).read_text()).get("warnings", []), *more]

    def _listed(self) -> list[File]:
        rows = json.loads((self.folder / MANIFEST).read_text())["resources"]
        return [
            File(
                row["path"],
                f"{MOUNT}/{row['file']}",
                row["media_type"],
                row["host"],
                row["status"],
                tuple((name, value) for name, value in row["headers"]),
            )
            for row in rows
        ]

    def version(self) -> str:
        """12 hexadecimal digits over the names and contents of its files."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        found = sorted(path for path in files if path.name != NOTES)
        return _version(tuple((path, path.stat().st_mtime_ns) for path in found), self.folder)


def object_site(size_bytes: int) -> Site:
    """A site of one object of exactly so many bytes, which cannot be compressed."""

    def write(folder: Path) -> None:
        (folder / str(size_bytes)).write_bytes(random.Random(size_bytes).randbytes(size_bytes))
        date(folder)

    return Site(build_once("web-object", f"{size_bytes}-{WRITTEN_S}", write), f"/{size_bytes}")


def date(folder: Path) -> None:
    """Give all files the same time: servers send it (Last-Modified, ETag), so runs depend on it."""
    for path in folder.rglob("*"):
        os.utime(path, (WRITTEN_S, WRITTEN_S))


@cache
def _version(files: tuple[tuple[Path, int], ...], folder: Path) -> str:
    """The version of a site, computed again only when a file changes."""
    paths = [path for path, _ in files]
    return fingerprint(paths, *(path.relative_to(folder).as_posix() for path in paths))


def _content_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or BINARY
