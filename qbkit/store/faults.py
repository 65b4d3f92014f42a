"""Known faults of stacks: ``data/faults.csv``, with the line of the source and the evidence."""

from __future__ import annotations

import csv
import re
from functools import cache
from html import escape
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from qbkit.settings import shipped
from qbkit.spec import Flow

CLAUSE_END = re.compile(r"[:;.] | \(")
"""Where the first clause of a fault ends."""
TABLE = shipped("data") / "faults.csv"


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
    url: str = ""
    """Address of each place of the source, with spaces between them."""
    without: str = ""
    """What the conformance becomes without the fault; empty where it was not measured."""
    ends_flow: str = ""
    """``true`` if it does nothing but end connections, so that it explains no others."""

    def __str__(self) -> str:
        return f"{self.source} of {self.version}: {self.fault} {self.evidence}"

    @property
    def remedied(self) -> str:
        """What the conformance becomes, to end a line with: "; without the fault 0.81"."""
        return f"; without the fault {self.without}" if self.without else ""


def known_faults(flow: Flow | str) -> list[Fault]:
    """The faults of a flow's stack with its controller; none for a release or without the table."""
    name = flow.name if isinstance(flow, Flow) else flow.partition("?")[0]
    return _shipped().get(name, [])


def possible_faults(flow: Flow | str) -> list[Fault]:
    """As `known_faults`, but a release may have any of the present stack."""
    name = flow.name if isinstance(flow, Flow) else flow
    stack, colon, controller = name.partition(":")
    return known_faults(f"{stack.partition('@')[0]}{colon}{controller}")


def read_faults(table: Path) -> dict[str, list[Fault]]:
    """The faults of each implementation in a table; none where there is no table."""
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=itemgetter("implementation"))
    faults = [Fault(**{k: v for k, v in row.items() if k in Fault._fields}) for row in rows]
    return {name: list(each) for name, each in groupby(faults, attrgetter("implementation"))}


def first_clause(sentence: str) -> str:
    """A sentence up to its first colon, semicolon or bracket, or its end."""
    return CLAUSE_END.split(sentence, maxsplit=1)[0].rstrip(".")


def fault_line(faults: list[Fault]) -> str:
    """The first clause of the first fault, and how many there are."""
    first = faults[0]
    what = first_clause(first.fault)
    head = "A known fault" if len(faults) == 1 else f"The first of {len(faults)} known faults"
    if what[1:2].islower():  # not a name such as K
        what = what[:1].lower() + what[1:]
    return f"{head}, {first.source}: {what}."


def faults_html(faults: list[Fault]) -> dict[str, str]:
    """A list of the faults as HTML, by its title; empty without a fault."""
    items = "".join(f"<li>{escape(str(fault))}</li>" for fault in faults)
    return {"Known faults": f"<ul>{items}</ul>"} if faults else {}


@cache
def _shipped() -> dict[str, list[Fault]]:
    return read_faults(TABLE)
