"""A library that is preloaded into programs of others, to spare system calls made in vain."""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.build import compile_c, fingerprint

SOURCE = Path(__file__).parent / "drivers/preload/fewer_calls.c"
MOUNT = "/run/qb/stacks/preload"
ENV = {"LD_PRELOAD": f"{MOUNT}/fewer_calls.so"}


def version() -> str:
    """Of the library; part of the version of each stack that it is preloaded into."""
    return f"preload {fingerprint([SOURCE])}"


def mounts() -> dict[str, Path]:
    """The folder of the library, compiled when it is not there yet."""
    return {MOUNT: compile_c(SOURCE, "fewer_calls.so", shared=True).parent}
