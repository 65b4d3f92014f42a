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

SOURCES = Path(__file__).parent / "native"
AGENT_SOURCES = Path(__file__).parent / "guest"
PYTHON = Path("/usr/bin/python3")
"""The system's Python, which runs the agent with the system's Mininet."""
AGENT_COMPILER = Path(__file__).parent / "guest_code.py"


def init() -> Path:
    """The guest's first program."""
    return compile_c(SOURCES / "init.c", "init")


def capture() -> Path:
    """Program that captures both sides of the bottleneck."""
    return compile_c(SOURCES / "capture.c", "capture")


def sections() -> Path:
    """Library with which one ``ip`` or ``tc`` configures all nodes."""
    return compile_c(SOURCES / "sections.c", "sections.so", shared=True)


def getrandom() -> Path:
    """Library that gives the guest its seeded randomness."""
    return compile_c(SOURCES / "getrandom.c", "getrandom.so", shared=True)


def agent() -> Path:
    """Folder of the agent's byte code; compiling its source in every guest would cost 15 ms."""
    sources = [*AGENT_SOURCES.rglob("*.py"), AGENT_COMPILER]

    def make(folder: Path) -> None:
        run_tool([PYTHON, "-I", AGENT_COMPILER, AGENT_SOURCES, folder], "the agent's byte code")

    return build_once("agent", fingerprint(sources, python_identity(PYTHON)), make)
