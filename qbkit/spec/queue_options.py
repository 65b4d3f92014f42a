"""The options of each queue discipline, and which values ``tc`` takes for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from qbkit.spec import dualpi2

RATE = re.compile(r"\d+(?:\.\d+)?[kmg]?bit")


class Kind(NamedTuple):
    """What a value may be."""

    what: str
    most: float = 2**31 - 1

    def has(self, value: Any) -> bool:
        """Whether a value is of this kind."""
        if self is FLAG:
            return isinstance(value, bool)
        if self is TIME:
            return bool(dualpi2.TIME.fullmatch(str(value)))
        if self.what == SPEED.what:
            return bool(RATE.fullmatch(str(value)))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return 0 < value <= self.most and (self is PART or value == int(value))


FLAG = Kind("true or false")
TIME = Kind("a time such as 5ms or 500us")
SPEED = Kind("a rate such as 10mbit")
PART = Kind("a number above 0, at most 1", 1)
COUNT = Kind("a whole number from 1 on")


def _count(most: int) -> Kind:
    return Kind(f"a whole number from 1 to {most}", most)


_ECN = {"ecn": FLAG, "noecn": FLAG}
_PIE = {"target": TIME, "tupdate": TIME, "alpha": _count(32), "beta": _count(32), **_ECN}
_CODEL = {"target": TIME, "interval": TIME, **_ECN}
_CAKE = ("besteffort", "diffserv4", "flowblind", "flows", "triple-isolate", "ack-filter")
_FQ = ("flow_limit", "quantum", "initial_quantum", "buckets")

QDISC_OPTIONS: dict[str, dict[str, Kind | None]] = {
    "fifo": {},
    "fq": {**dict.fromkeys(_FQ, COUNT), "maxrate": SPEED},
    "fq_codel": {**_CODEL, "flows": _count(65536), "quantum": COUNT},
    "codel": {**_CODEL},
    "cake": {**dict.fromkeys(_CAKE, FLAG), "rtt": TIME},
    "pie": {**_PIE},
    "red": {
        **dict.fromkeys(("min", "max", "burst"), COUNT),
        **dict.fromkeys(("ecn", "adaptive", "harddrop"), FLAG),
        "probability": PART,
    },
    "sfq": {"quantum": COUNT, "perturb": COUNT, "divisor": _count(65536), "depth": _count(127)},
    "fq_pie": {**_PIE, "flows": _count(65536), "quantum": COUNT, "ecn_prob": _count(100)},
    "dualpi2": {**dict.fromkeys(dualpi2.OPTIONS), **dict.fromkeys(dualpi2.CLASSES, FLAG)},
}
"""Queue discipline → its options and their kinds; None where `qbkit.spec.dualpi2` looks."""
ONE_OF = (
    ("ecn", "noecn"),
    ("besteffort", "diffserv4"),
    ("flowblind", "flows", "triple-isolate"),
    tuple(dualpi2.CLASSES),
)
"""Flags of which the last one would win."""


def require(qdisc: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that a queue discipline has not, or a value that it cannot."""
    known = QDISC_OPTIONS[qdisc]
    if unknown := sorted(set(options) - set(known)):
        allowed = ", ".join(sorted(known)) or "none"
        raise ValueError(f"{qdisc} has no option {', '.join(unknown)}; allowed: {allowed}")
    for name, value in options.items():
        kind = known[name]
        if kind and not kind.has(value):
            raise ValueError(f"{qdisc}'s option {name} is {value!r}; write {kind.what}")
    for names in ONE_OF:
        if len(both := [name for name in names if options.get(name) is True]) > 1:
            raise ValueError(f"{qdisc} cannot have {' and '.join(both)}; keep one")


RED_PACKET_BYTES = 1000
"""``avpkt`` of tc-red(8): what RED counts as a packet."""


def red_thresholds(queue_bytes: int, options: Mapping[str, Any]) -> tuple[int, int]:
    """RED's least and largest mean queue in bytes, by default a quarter and three of the buffer.

    Raises ValueError if they are not in order, or tc finds no weight for the mean.
    """
    low, high = options.get("min", queue_bytes // 4), options.get("max", queue_bytes * 3 // 4)
    if not low < high <= queue_bytes:
        raise ValueError(
            f"red's min is {low} and its max {high} bytes; min must be below max, and max at most "
            f"the buffer of {queue_bytes} bytes"
        )
    if low < RED_PACKET_BYTES:
        raise ValueError(
            f"red's min is {low} bytes, by default a quarter of the buffer; it must be at least "
            f"{RED_PACKET_BYTES}, so raise min or the buffer"
        )
    least = low // RED_PACKET_BYTES + 1
    if "burst" in options and options["burst"] < least:
        raise ValueError(
            f"red's burst is {options['burst']} packets; with min at {low} bytes it must be at "
            f"least {least}"
        )
    return low, high
