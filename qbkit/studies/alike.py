"""What flows that are compared must have in common."""

from __future__ import annotations

from collections.abc import Iterable

from qbkit.errors import SpecError
from qbkit.spec.flow import Flow

SAME = ("bytes", "direction", "app")
"""Fields in which a flow and those that it is compared with must not differ."""


def require_same(tested: Flow, others: Iterable[Flow], names: Iterable[str] = SAME) -> None:
    """Raise SpecError for a flow that ends earlier, goes another way, or has other data to send."""
    for other in others:
        for name in names:
            ours, theirs = (getattr(flow, name) for flow in (tested, other))
            if ours != theirs:
                raise SpecError(
                    f"{tested.name} has {_words(name, ours)} and {other.name} has "
                    f"{_words(name, theirs)}, so they cannot be compared; give both the same, or "
                    f"leave out {name}"
                )


def _words(name: str, value: object) -> str:
    return f"no {name}" if value is None else f"{name}={value}"
