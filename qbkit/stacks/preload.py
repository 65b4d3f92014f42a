"""A library that is preloaded into other people's programs to avoid useless system calls."""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.build import compile_c, fingerprint

SOURCE = Path(__file__).parent / "drivers/preload/fewer_calls.c"
MOUNT = "/run/qb/stacks/preload"
ENV = {"LD_PRELOAD": f"{MOUNT}/fewer_calls.so"}


def version() -> str:
    """Version of the library; part of the version of each stack that preloads it."""
    return f"preload {fingerprint([SOURCE])}"


def mounts() -> dict[str, Path]:
    """The folder of the library, compiled if it is missing."""
    return {MOUNT: compile_c(SOURCE, "fewer_calls.so", shared=True).parent}
