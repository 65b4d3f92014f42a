"""Where each implementation stands, in words: its known fault, or what it takes."""

from __future__ import annotations

from dataclasses import dataclass

from qbkit.atlas.differences import Difference
from qbkit.atlas.published import Published
from qbkit.store.faults import first_clause

KINDS = {
    "fault": "has a known fault",
    "more": "takes more",
    "less": "takes less",
    "other": "takes as much, but differs",
    "like": "like the kernel's",
    "open": "not settled",
    "reference": "the kernel's own",
    "none": "not compared",
}
"""Kind → its words, in the order in which a reader sorts them."""


@dataclass(frozen=True)
class Standing:
    """Where an implementation stands beside the kernel, in at most three short lines."""

    kind: str
    """Key in `KINDS`."""
    difference: Difference | None = None
    fault: str = ""
    """The first clause of its first known fault."""

    @property
    def words(self) -> str:
        """Its kind in words."""
        return KINDS[self.kind]

    @property
    def also(self) -> str:
        """What it does apart from its fault; "" without a fault or a comparison."""
        return KINDS[self.difference.kind] if self.kind == "fault" and self.difference else ""

    @property
    def detail(self) -> str:
        """What it takes, where the words do not say it; "" if nothing is known."""
        return str(self.difference) if self.difference else ""


def standing_of(published: Published, name: str) -> Standing:
    """That of the first sweep that compares an implementation."""
    difference = published.difference(name)
    faults = published.faults.get(name)
    if faults:
        return Standing("fault", difference, first_clause(faults[0].fault))
    if difference:
        return Standing(difference.kind, difference)
    known = {sweep.reference for sweep in published.conformance}
    return Standing("reference" if name in known else "none")
