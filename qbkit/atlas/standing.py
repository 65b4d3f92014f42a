"""Where each implementation stands, in words, and why: its known fault, or what its packets say.

The packets of lone flows give the parameters of an implementation and of the kernel's controller
(`qbkit.metrics.infer`), and of a BBR how it behaves where its path changes. Of what differs, the
likely cause comes first in `compare`: it must not work against the difference in throughput, and a
parameter must make more than a few per cent of it. The cause is open where that is little of the
difference, by the rule of `qbkit.explain`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from qbkit.atlas.differences import Difference
from qbkit.atlas.published import Published
from qbkit.metrics.maps.families import family, kernel_counterpart
from qbkit.metrics.parameters.difference import CLEAR
from qbkit.metrics.parameters.difference import Difference as Suspect
from qbkit.metrics.parameters.differences import compare
from qbkit.metrics.parameters.laws import OF_FAMILIES, PROBING, law
from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.metrics.parameters.rules import RULES
from qbkit.spec.flow import controller_of
from qbkit.store.faults import Fault, first_clause
from qbkit.studies.explanation import LITTLE, breaks_a_rule, share_of

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
LEAST_PERCENT = 3.0


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
    if fault := _fault(published, name):
        return Standing("fault", difference, first_clause(fault.fault))
    if difference:
        return Standing(difference.kind, difference)
    known = {sweep.reference for sweep in published.conformance}
    return Standing("reference" if name in known else "none")


@dataclass(frozen=True)
class Cause:
    """The most likely reason for what an implementation does."""

    text: str
    """In a few words."""
    source: list[tuple[str, str]] = field(default_factory=list)
    """File and line with the address, of a known fault; empty if the packets say it."""
    percent: float = math.nan
    """What this cause alone would change in throughput at equal loss."""
    is_open: bool = False
    """Whether it accounts for too little of the difference to be its reason."""


def cause_of(published: Published, name: str) -> Cause | None:
    """The first known fault of an implementation, or the likely cause of its difference."""
    if fault := _fault(published, name):
        return Cause(first_clause(fault.fault), source_links(fault))
    difference = published.difference(name)
    return _from_packets(published, name, difference) if difference else None


def _fault(published: Published, name: str) -> Fault | None:
    """The first known fault of an implementation; where it takes more or less, the first that can
    be the reason, as one that ends flows is not."""
    faults = published.faults.get(name, [])
    difference = published.difference(name)
    differs = difference is not None and difference.kind in ("more", "less")
    return next((fault for fault in faults if not (differs and fault.ends_flow)), None)


def source_links(fault: Fault) -> list[tuple[str, str]]:
    """Each place of ``source`` (``a.rs:56, 65, b.rs:7``) with its address, "" where it has none."""
    file, places = "", []
    for part in fault.source.split(", "):
        name, colon, line = part.rpartition(":")
        file = name if colon else file
        places.append(f"{file}:{line}" if colon else line)
    addresses = fault.url.split()
    return list(zip(places, addresses + [""] * (len(places) - len(addresses)), strict=False))


def _from_packets(published: Published, name: str, difference: Difference) -> Cause | None:
    mine, kernel = (published.parameters.get(n) for n in (name, kernel_counterpart(name)))
    if not mine or not kernel or difference.kind not in ("more", "less"):
        return None
    part = difference.mbps / difference.reference_mbps
    own = OF_FAMILIES.get(family(controller_of(name)), "")
    for each in compare(mine.parameters, kernel.parameters, part, by_name=(own, own)):
        if each.role != "cause" or (own == PROBING and each.name in RECEIVERS):
            continue
        percent = math.nan if each.name in RULES else 100 * math.expm1(each.effect)
        if each.name in RULES:
            matters = each.effect * part >= 0 and each.score > CLEAR
        else:
            matters = percent * part > 0 and abs(percent) >= LEAST_PERCENT
        if matters:
            growth = law(mine.parameters, kernel.parameters)
            is_open = _accounts_for_little(each, growth, difference)
            return Cause(each.clause, percent=percent, is_open=is_open)
    return None


def _accounts_for_little(first: Suspect, growth: str, difference: Difference) -> bool:
    """Whether a suspect is no reason for the difference, as `qbkit.explain` judges it."""
    if breaks_a_rule(first, difference.ln_ratio):
        return False
    return not share_of(first, difference.ln_ratio, growth) >= LITTLE
