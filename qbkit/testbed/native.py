"""The small programs of the testbed, compiled once into the cache."""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.toolchains.build import (
    build_once,
    compile_c,
    fingerprint,
    python_identity,
    run_tool,
)
from qbkit.testbed import guest_root

SOURCES = Path(__file__).parent / "native"
AGENT_SOURCES = Path(__file__).parent / "guest"
AGENT_COMPILER = Path(__file__).parent / "guest_code.py"


def capture() -> Path:
    """Program that captures both sides of the bottleneck."""
    return compile_c(SOURCES / "capture.c", "capture")


def sections() -> Path:
    """Library with which one ``ip`` or ``tc`` configures all nodes."""
    return compile_c(SOURCES / "sections.c", "sections.so", shared=True)


def getrandom() -> Path:
    """Library that gives the guest its seeded randomness."""
    return compile_c(SOURCES / "getrandom.c", "getrandom.so", shared=True)


def huge_pages() -> Path:
    """Library with which the guest's memory begins in huge pages."""
    return compile_c(SOURCES / "huge_pages.c", "huge_pages.so", shared=True)


def with_parent() -> Path:
    """Library with which the guest ends with the program that starts it, on one processor."""
    return compile_c(SOURCES / "with_parent.c", "with_parent.so", shared=True)


def agent(root: Path | None = None) -> Path:
    """Folder of the agent's byte code for the Python of a `guest_root`.

    Compiling its source in every guest would cost 15 ms.
    """
    python = guest_root.python(root)
    sources = [*AGENT_SOURCES.rglob("*.py"), AGENT_COMPILER]

    def make(folder: Path) -> None:
        run_tool([*python, "-I", AGENT_COMPILER, AGENT_SOURCES, folder], "the agent's byte code")

    return build_once("agent", fingerprint(sources, python_identity(Path(python[-1]))), make)
