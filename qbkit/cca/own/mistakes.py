"""What a controller of a user would do in vain, found when it is registered.

The checks are here and not in `qbkit.cca.Controller`, whose text is part of the name of each run of
a controller: runs that are stored keep their names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from qbkit.cca.controller import Controller
from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean

EVENT = "on_"
REPLACED = ("min_rtt_ms", "delivery_rate_mbps")
"""Values that qbkit records, and that a controller may log in its place."""
RECORDED = (
    *("cwnd_bytes", "bytes_in_flight", "ssthresh_bytes", "srtt_ms", "latest_rtt_ms"),
    *("pacing_rate_mbps", "lost_packets", "spurious_losses", "retransmits"),
)
"""Other values that qbkit records of a sender."""
OF_DATASET = (
    *("ack", "bottleneck", "bottleneck_direction", "controller", "direction", "flow", "label"),
    *("object", "packet", "sample", "stack", "state", "time", "time_ns", "time_s"),
)
"""Names of a dataset's dimensions and coordinates, and of the columns that each sample has."""
TAKEN = {*RECORDED, *OF_DATASET}
"""Names that a controller cannot log."""


def require_events(kind: type[Controller], name: str) -> None:
    """Raise SpecError for a method that begins with ``on_`` and is no event."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("qbkit.cca.")]
    known = {method for base in ours for method in _handlers(base)}
    events = [*_handlers(Controller)]
    for base in kind.__mro__:
        for method in _handlers(base):
            if method not in known:
                raise SpecError(
                    f"controller {name!r} has a method {method}, which is no event"
                    f"{did_you_mean(method, events)}; events are {', '.join(events)}, and a "
                    f"method that is none has a name without {EVENT}"
                )


def require_free_names(text: str, name: str) -> None:
    """Raise SpecError for a ``log(NAME=…)`` in the source of a controller whose name is taken."""
    for word in _logged(text):
        if word in TAKEN:
            raise SpecError(f"controller {name!r} {taken(word)}")


def taken(word: str) -> str:
    """That a controller logs a name which it cannot log, as what follows its own name."""
    return f"logs {word}, a name that qbkit uses itself; choose another name, such as my_{word}"


def _handlers(kind: type) -> Iterator[str]:
    return (n for n, value in vars(kind).items() if n.startswith(EVENT) and callable(value))


def _logged(text: str) -> Iterator[str]:
    """The names in the calls of a method ``log``."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "log"
        ):
            words = (word.arg for word in node.keywords)
            yield from (word for word in words if word and word != "state")
