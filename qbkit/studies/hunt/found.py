"""What a hunt found, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from qbkit.metrics.evaluation.harm import Comparison
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.spec.book import Book
from qbkit.store.faults import Fault, fault_line, known_faults
from qbkit.studies.hunt.case import write_case
from qbkit.studies.hunt.network import Network


@dataclass(frozen=True, repr=False)
class Hunt:
    """The worst network of a hunt, as the simplest that shows it, and how it was confirmed."""

    sender: str
    reference: str
    metric: str
    worst: Network
    """The worst network of the search."""
    network: Network
    """The simplest network that shows the same."""
    book: Book
    """The question whether the sender is worse there."""
    compared: Comparison | None
    """The sender beside the reference with new seeds; None where a side has no run."""
    floor: float
    """How far the reference differs from itself: 95 % of the differences between the means of as
    many seeds of either side."""
    seeds: int
    tried: pd.DataFrame
    """A row per network: its text, the numbers of both, the score and what it was tried for."""
    spent_s: float
    """Processor seconds of all runs."""
    failed: tuple[str, ...] = ()
    """Why runs failed, a sentence each."""
    early: str = ""
    """How a connection of the sender ended before its time, where one did."""

    @property
    def confirmed(self) -> bool:
        """Whether new seeds show it, beyond the margin and beyond the reference's own spread."""
        one = self.compared
        return one is not None and one.answer == "more" and abs(one.value - one.bar) > self.floor

    @property
    def faults(self) -> list[Fault]:
        """Known faults of the sender."""
        return known_faults(self.sender)

    @property
    def verdict(self) -> str:
        """What was found, how sure it is, and whether a fault is known: three lines."""
        lines = [self._found, self._sure]
        known = fault_line(self.faults) if self.faults else "No fault of it is known."
        return "\n".join([*lines, f"{self.early} {known}".strip()])

    @property
    def _found(self) -> str:
        measure, one = MEASURES[self.book.criteria[0].scenarios[0].measures[0]], self.compared
        if one is None:
            return f"{self.sender} at {self.network}: no run of a side ended."
        unit = f" {measure.unit}" if measure.unit else ""
        return (
            f"{self.sender} at {self.network}: {measure.words} {one.value:.3g}{unit}, "
            f"and {one.bar:.3g}{unit} with {self.reference} in its place."
        )

    @property
    def _sure(self) -> str:
        one = self.compared
        if one is None or math.isnan(one.low):
            return "Not confirmed: too few runs ended."
        word = "Confirmed" if self.confirmed else "Not confirmed"
        return (
            f"{word} with {self.seeds} new seeds: worse by {one.low:.3g} to {one.high:.3g} (95 %); "
            f"the reference differs from itself by {self.floor:.2g}."
        )

    def save(self, path: str | Path) -> None:
        """Write the case, which ``qbkit evaluate SENDER --book FILE`` runs again."""
        write_case(self, Path(path))

    def to_dict(self) -> dict[str, Any]:
        """The finding, ready for JSON."""
        one = self.compared
        numbers = {} if one is None else {
            "value": one.value, "reference_value": one.bar, "low": one.low, "high": one.high,
        }  # fmt: skip
        return {
            "sender": self.sender,
            "reference": self.reference,
            "metric": self.metric,
            "measure": self.book.criteria[0].scenarios[0].measures[0],
            "worst": str(self.worst),
            "network": str(self.network),
            **{key: None if math.isnan(value) else value for key, value in numbers.items()},
            "floor": None if math.isnan(self.floor) else self.floor,
            "confirmed": self.confirmed,
            "networks": len(self.tried),
            "spent_s": round(self.spent_s, 1),
            "faults": [fault.fault for fault in self.faults],
            "failed": list(self.failed),
        }

    def __repr__(self) -> str:
        return self.verdict
