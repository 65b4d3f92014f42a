"""Options of controllers: what they do, how a value is read, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """One option: ``Flow("qbkit:cubic", options={name: value})``."""

    what: str
    default: Any
    read: Callable[[str], Any]
    """The value of a text; ValueError for what is not allowed."""
    allowed: str
    """What is, in words."""


def whole(what: str, default: int, low: int = 1, high: int = 1000) -> Option:
    """A whole number."""

    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return Option(what, default, read, f"a whole number from {low} to {high}")


def number(what: str, default: float | None, low: float, high: float) -> Option:
    """A number; None as the default stands for the controller's own choice."""

    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:  # NaN fails too
            raise ValueError(text)
        return value

    return Option(what, default, read, f"a number from {low:g} to {high:g}")


def switch(what: str, default: bool) -> Option:
    """True or false."""

    def read(text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError(text)
        return text == "true"

    return Option(what, default, read, "true or false")


COMMON = {
    "initial_window_packets": whole("initial congestion window (10)", 10),
    "ack_every_packets": whole("the receiver's packets per ACK (2)", 2),
}
"""Options of every controller; the second is the receiver's."""


def defaults(options: Mapping[str, Option], **values: Any) -> dict[str, Any]:
    """The values of a flow that sets only ``values``."""
    return {name: option.default for name, option in options.items()} | values


def read_options(words: Iterable[str], options: Mapping[str, Option], owner: str) -> dict[str, Any]:
    """The values of all options from ``name=value`` words.

    Raises ValueError with one sentence for an unknown name or a bad value; ``owner`` is who has the
    options (``qbkit:cubic``).
    """
    values = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in options:
            known = ", ".join(sorted(options))
            raise ValueError(f"{owner} has no option {name}; supported: {known}")
        try:
            values[name] = options[name].read(text)
        except ValueError:
            allowed = options[name].allowed
            raise ValueError(f"the option {name} is {text}; it must be {allowed}") from None
    return defaults(options, **values)
