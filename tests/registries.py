"""Package registries, which a test may need and a machine may not reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from qbkit.errors import StackNotReady
from qbkit.stacks import Stack


def build_or_skip(stack: Stack, released: Callable[[], Iterable[str]]) -> None:
    """Build a stack; skip the test if its registry cannot even list what it has."""
    try:
        stack.build()
    except StackNotReady as error:
        try:
            released()
        except StackNotReady:
            pytest.skip(f"the registry of {stack.name} cannot be reached: {error}")
        raise
