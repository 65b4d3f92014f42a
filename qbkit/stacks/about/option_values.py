"""What the value of a stack's option may be, by the unit in its name and what is said of it."""

from __future__ import annotations

import re

from qbkit.errors import SpecError

COUNT = re.compile(r".*_(packets|bytes)|packet_threshold")
MEASURE = re.compile(r".*_(ms|us|kbps|mbps|percent|gain)")
SAID = re.compile(r"(?:^|; )(\w+): ")
"""Values in the description of an option, as in ``true: ask for ECN; accurate: …``."""
FLAGS = ("true", "false")


def require_value(stack: str, name: str, described: str, value: str | float | bool) -> None:
    """Raise SpecError for a value that an option cannot have.

    Drivers report most such values, but only once their guest has booted, and some ignore them.
    """
    said = SAID.findall(described) or (["true"] if name == "qlog" else [])
    if COUNT.fullmatch(name):
        fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
        what = "give a whole number from 1 on"
    elif MEASURE.fullmatch(name):
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        what = "give a number from 0 on"
    elif said:
        fits = isinstance(value, bool) or value in said
        what = f"write {' or '.join(said if {*said} - {*FLAGS} else FLAGS)}"
    else:
        return
    if not fits:
        raise SpecError(f"{stack}'s option {name} is {value!r}; {what}")
