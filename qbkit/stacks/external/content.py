"""What a user's program consists of: the name of a run changes with any of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from qbkit.stacks.toolchains.build import fingerprint, program_fingerprint

SYSTEM = Path("/usr")
"""The guest sees this machine's folder at the same path."""
MOST_SCRIPT_BYTES = 1_000_000
A_WORD = re.compile(rb"[\w.+/-]{1,200}")


def content_of(program: Path) -> str:
    """The fingerprint of a program, and of a script's parts."""
    parts = [program_fingerprint(part) for part in _script_parts(program)]
    own = program_fingerprint(program)
    return fingerprint([], own, *parts) if parts else own


def _script_parts(program: Path) -> list[Path]:
    """What a script names: modules and files of its folder, and programs by absolute paths.

    With what these name. Empty for a binary, and for this machine's own scripts.
    """
    program = program.resolve()
    found = [] if program.is_relative_to(SYSTEM) else [program]
    for file in found:  # it grows
        with file.open("rb") as opened:
            text = opened.read(MOST_SCRIPT_BYTES)
        if (file == program and not text.startswith(b"#!")) or b"\0" in text:
            continue
        words = sorted({word.decode() for word in A_WORD.findall(text)})
        named = (part for word in words for part in _named(word, file.parent, program.parent))
        found += dict.fromkeys(part for part in named if part not in found)
    return found[1:]


def _named(word: str, *folders: Path) -> Iterator[Path]:
    """The files that a word of a script may mean."""
    found = [Path(word)] if word.startswith("/") and os.access(word, os.X_OK) else []
    for folder in folders if word.strip("./") else ():
        module = folder / word.strip("./").replace(".", "/")
        found += [folder / word.lstrip("/"), module.with_name(f"{module.name}.py")]
        if os.access(module / "__init__.py", os.R_OK):
            found += sorted(module.rglob("*.py"))
    for file in found:
        if (
            os.access(file, os.R_OK)
            and file.is_file()
            and not file.resolve().is_relative_to(SYSTEM)
        ):
            yield file.resolve()
