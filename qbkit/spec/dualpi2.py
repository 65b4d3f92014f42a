"""Options of the queue discipline dualpi2 (RFC 9332), as its netlink attributes.

``tc`` knows them from iproute2 6.17 on; qbkit sets them itself, so that any version will do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
TIMES = {"target": 3, "tupdate": 4, "step_thresh": 8}
"""Options that are times → their attribute, in us (linux/pkt_sched.h)."""
GAINS = {"alpha": 5, "beta": 6}
"""Gains in Hz → their attribute, in 1/256 Hz."""
GAIN_UNITS = 256
SMALL = {"coupling_factor": 10, "classic_protection": 13}
"""Whole numbers of one byte."""
CLASSES = {"l4s_ect": 1, "any_ect": 3}
"""Flags: which packets enter the L4S queue → value of the attribute `ECN_MASK`."""
LIMIT, ECN_MASK = 1, 14
OPTIONS = frozenset({*TIMES, *GAINS, *SMALL, *CLASSES})


def attributes(limit_packets: int, options: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """(attribute, bytes, value) of the buffer and of each option; ValueError for a bad value."""
    found = [(LIMIT, 4, limit_packets)]
    for name, value in sorted(options.items()):
        if name in TIMES:
            found.append((TIMES[name], 4, _time_us(name, value)))
        elif name in GAINS:
            found.append((GAINS[name], 4, round(_number(name, value) * GAIN_UNITS)))
        elif name in SMALL:
            found.append((SMALL[name], 1, _byte(name, value)))
        elif value is True:
            found.append((ECN_MASK, 1, CLASSES[name]))
    return found


def _time_us(name: str, value: Any) -> int:
    match = TIME.fullmatch(str(value))
    if not match:
        raise ValueError(f"dualpi2's {name} is {value!r}; write a time such as 1ms or 500us")
    return round(float(match[1]) * UNITS_US[match[2]])


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 256:
        raise ValueError(f"dualpi2's {name} is {value!r}; write a number above 0 and below 256")
    return float(value)


def _byte(name: str, value: Any) -> int:
    if _number(name, value) != int(value):
        raise ValueError(f"dualpi2's {name} is {value!r}; write a whole number")
    return int(value)
