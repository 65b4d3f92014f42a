"""Known faults of stacks: ``data/faults.csv``, with the line of the source and the evidence."""

from __future__ import annotations

import csv
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from qbkit.spec import Flow

CLAUSE_END = re.compile(r"[:;.] | \(")
"""Where the first clause of a fault ends."""
TABLE = Path(__file__).parents[2] / "data/faults.csv"


class Fault(NamedTuple):
    """A mistake in a stack's source that was found and confirmed."""

    implementation: str
    """``stack:controller``."""
    version: str
    """Release that has it."""
    source: str
    """File and line."""
    fault: str
    """What the line does, in a sentence or two."""
    evidence: str
    """What was measured, with the line and without it."""
    without: str = ""
    """What the conformance becomes without the fault; empty where it was not measured."""

    def __str__(self) -> str:
        return f"{self.source} of {self.version}: {self.fault} {self.evidence}"

    @property
    def remedied(self) -> str:
        """What the conformance becomes, to end a line with: "; without the fault 0.81"."""
        return f"; without the fault {self.without}" if self.without else ""


def known_faults(flow: Flow | str) -> list[Fault]:
    """The faults of a flow's stack with its controller; none for a release or without the table."""
    name = flow.name if isinstance(flow, Flow) else flow.partition("?")[0]
    return [fault for fault in _faults() if fault.implementation == name]


def fault_line(faults: list[Fault]) -> str:
    """The first clause of the first fault, and how many more there are."""
    first = faults[0]
    what = CLAUSE_END.split(first.fault, maxsplit=1)[0].rstrip(".")
    others = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    if what[1:2].islower():  # not a name such as K
        what = what[:1].lower() + what[1:]
    return f"A known fault{others}, {first.source}: {what}."


def faults_html(faults: list[Fault]) -> dict[str, str]:
    """A list of the faults as HTML, by its title; empty without a fault."""
    items = "".join(f"<li>{escape(str(fault))}</li>" for fault in faults)
    return {"Known faults": f"<ul>{items}</ul>"} if faults else {}


@cache
def _faults() -> tuple[Fault, ...]:
    if not TABLE.exists():
        return ()
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(Fault(**{k: v for k, v in row.items() if k in Fault._fields}) for row in rows)
