"""A driver's files, put together from several folders, some of which other drivers use too."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from qbkit.stacks.toolchains.build import build_once, fingerprint, run_tool

CHANGES = "changes.patch"
"""What a folder changes in the files of the folders before it."""


def put_together(sources: Iterable[Path], folder: Path) -> None:
    """Fill a folder with a driver's files; raises StackNotReady without the program ``patch``.

    The files of each source replace those of their names in earlier ones; then its
    ``changes.patch`` changes what is there.
    """
    for source in sources:
        apart = shutil.ignore_patterns(CHANGES, "__pycache__")
        shutil.copytree(source, folder, ignore=apart, dirs_exist_ok=True)
        if (changes := source / CHANGES).exists():
            how = ["--fuzz=0", "--no-backup-if-mismatch", "--strip=0"]
            words: list[str | Path] = ["patch", *how, "--directory", folder, "--input", changes]
            run_tool(words, f"the driver of {source.parent.name} {source.name}")


def files_of(sources: Iterable[Path]) -> Iterator[Path]:
    """All files of the folders."""
    return (path for source in sources for path in source.rglob("*") if path.is_file())


def together(name: str, sources: Sequence[Path]) -> Path:
    """The folder, in the cache, of a driver that consists of these folders."""
    key = fingerprint(files_of(sources))
    return build_once(name, key, lambda folder: put_together(sources, folder))
