"""The knobs of the controllers: their values, what is allowed, and which controller has which."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

WINDOWED = ("cubic", "reno")
CONTROLLERS = (*WINDOWED, "bbr")


@dataclass(frozen=True)
class Knobs:
    """The values for one flow; those here are of a flow that sets nothing."""

    initial_window_packets: int = 10
    emulated_flows: int = 1
    beta: float | None = None
    """Multiplicative decrease of one flow; None: the controller's own."""
    pacing: bool = True
    hystart: bool = True
    pacing_gain_percent: float = 100.0
    first_rtt_ms: float | None = None
    """What the model is told of the first round trip; None: the truth."""
    ack_every_packets: int = 2


@dataclass(frozen=True)
class Knob:
    """What one does, how its value is read, and the controllers that have it."""

    what: str
    read: Callable[[str], Any]
    """Raises ValueError for what is not allowed."""
    allowed: str
    controllers: tuple[str, ...] = CONTROLLERS


def _whole(high: int) -> tuple[Callable[[str], int], str]:
    """Reads 1 to ``high``."""

    def read(text: str) -> int:
        value = int(text)
        if not 1 <= value <= high:
            raise ValueError(text)
        return value

    return read, f"a whole number from 1 to {high}"


def _number(low: float, high: float) -> tuple[Callable[[str], float], str]:
    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:  # nor is NaN
            raise ValueError(text)
        return value

    return read, f"a number from {low:g} to {high:g}"


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


SWITCH = (_truth, "true or false")

KNOBS = {
    "initial_window_packets": Knob("initial congestion window (10)", *_whole(1000)),
    "emulated_flows": Knob("flows it behaves like: chromium's 2 (1)", *_whole(100), WINDOWED),
    "beta": Knob(
        "part of one flow's window that a loss leaves (CUBIC 0.7, Reno 0.5)",
        *_number(0.05, 0.95),
        WINDOWED,
    ),
    "pacing": Knob("false: send whole windows at once", *SWITCH, WINDOWED),
    "hystart": Knob("false: slow start ends with a loss only", *SWITCH, WINDOWED),
    "pacing_gain_percent": Knob(
        "BBR's pacing rate, scaled: mvfst's is 120 (100)", *_number(10, 1000), ("bbr",)
    ),
    "first_rtt_ms": Knob(
        "what BBR is told of the first round trip, in place of the truth",
        *_number(0.1, 10_000),
        ("bbr",),
    ),
    "ack_every_packets": Knob("the receiver's packets per ACK (2)", *_whole(1000)),
}


def read_knobs(words: Iterable[str], controller: str | None = None) -> Knobs:
    """Knobs from ``name=value`` words; ValueError with one sentence for what cannot be.

    A receiver does not know the ``controller`` of its flow and takes the knobs of all.
    """
    values = {}
    for word in words:
        name, _, text = word.partition("=")
        knob = KNOBS.get(name)
        if knob is None or controller not in (None, *knob.controllers):
            of = f"qbkit:{controller}" if controller else "qbkit"
            raise ValueError(f"{of} has no option {name}; supported: {_supported(controller)}")
        try:
            values[name] = knob.read(text)
        except ValueError:
            raise ValueError(f"the option {name} is {text}; it must be {knob.allowed}") from None
    return Knobs(**values)


def _supported(controller: str | None) -> str:
    known = (n for n, knob in KNOBS.items() if controller in (None, *knob.controllers))
    return ", ".join(sorted(known))
