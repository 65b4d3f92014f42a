"""The index of a folder of published files: what they are, and the SHA-256 of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from qbkit.arguments import as_path
from qbkit.errors import MISNAMED, SpecError, StoreError
from qbkit.files import write_whole
from qbkit.json_words import object_of

INDEX = "index.json"


def read_index(folder: str | Path, what: str) -> dict[str, Any]:
    """The index of a folder; StoreError where there is none, or where it is damaged."""
    path = as_path(folder) / INDEX
    try:
        index = object_of(path.read_bytes())
    except OSError as error:
        raise StoreError(
            f"there are no published {what} in {folder}: {error.strerror}",
            refused=isinstance(error, MISNAMED),
        ) from None
    except ValueError as error:
        raise StoreError(f"{path} is damaged: {error}; fetch it again") from None
    files = index.get("files")
    if not isinstance(files, dict) or not all(isinstance(facts, dict) for facts in files.values()):
        raise StoreError(f"{path} is damaged: it lists no files; fetch it again")
    return index


def write_index(
    folder: Path, files: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any] | None
) -> Path:
    """Write the index of a folder: its ``facts``, and those of each file; returns its path."""
    index = folder / INDEX
    index.write_text(json.dumps({**(facts or {}), "files": files}, indent=1) + "\n")
    return index


def require_file_names(names: Iterable[Any]) -> None:
    """Raise SpecError for a name of what is published that cannot be that of a file in a folder."""
    for name in names:
        if not isinstance(name, str) or not name or Path(name).name != name or "\0" in name:
            raise SpecError(
                f"{name!r} names what is published, and so its file; give a text without /"
            )


def name_in_index(path: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts of a published file to the index of its folder, beside those of others."""
    index = path.parent / INDEX
    known = read_index(path.parent, "files") if index.exists() else {"files": {}}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    known["files"][path.name] = {**facts, "sha256": digest}
    write_whole(index, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())


def published_files(folder: str | Path, what: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each file with its facts; StoreError for one that is lost or was changed."""
    for name, facts in read_index(folder, what)["files"].items():
        path = Path(folder) / name
        require_unchanged(path, path.read_bytes() if path.is_file() else None, facts)
        yield path, facts


def require_unchanged(path: Path, content: bytes | None, facts: dict[str, Any]) -> None:
    """Raise StoreError unless the content of a file has the SHA-256 among its facts."""
    if content is None or hashlib.sha256(content).hexdigest() != facts.get("sha256"):
        raise StoreError(f"{path} is not the file that was published; fetch it again")
