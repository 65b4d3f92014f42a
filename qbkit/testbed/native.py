"""The small C programs of the testbed, compiled once into the cache."""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.build import compile_c

SOURCES = Path(__file__).parent / "native"


def init() -> Path:
    """First program of the guest."""
    return compile_c(SOURCES / "init.c", "init")


def capture() -> Path:
    """Captures both sides of the bottleneck."""
    return compile_c(SOURCES / "capture.c", "capture")


def getrandom() -> Path:
    """Library that gives the guest its seeded randomness."""
    return compile_c(SOURCES / "getrandom.c", "getrandom.so", shared=True)
