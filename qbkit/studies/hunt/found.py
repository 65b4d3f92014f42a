"""What a hunt found, how sure it is, and the book of one question that asks it again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from qbkit.files import write_whole
from qbkit.json_words import plain
from qbkit.metrics.evaluation.harm import Comparison
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.spec.book import Book, Criterion, Scenario
from qbkit.store.faults import Fault, fault_line, known_faults
from qbkit.studies.evaluation.numbers import three_digits
from qbkit.studies.hunt.network import Network

SETTINGS = ("name", "flows", "network", "measures", "duration_s", "from_s", "quick")


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
            f"{self.sender} at {self.network}: {measure.words} {three_digits(one.value)}{unit}, "
            f"and {three_digits(one.bar)}{unit} with {self.reference} in its place."
        )

    @property
    def _sure(self) -> str:
        one = self.compared
        if one is None or math.isnan(one.low):
            return "Not confirmed: too few runs ended."
        word = "Confirmed" if self.confirmed else "Not confirmed"
        span = f"{three_digits(one.low)} to {three_digits(one.high)}"
        decides = "" if self.confirmed else f" {self._why_not(one)}"
        return (
            f"{word} with {self.seeds} new seeds: worse by {span} (95 %); "
            f"the reference differs from itself by {self.floor:.2g}.{decides}"
        )

    def _why_not(self, one: Comparison) -> str:
        """The first condition that the numbers of a hunt miss, as a sentence."""
        margin = f"the margin of {three_digits(one.margin)}, up to which it counts as none"
        if one.high <= one.margin:
            return f"The whole interval is within {margin}."
        if one.low <= one.margin:
            return f"The lower end is not beyond {margin}."
        if math.isnan(self.floor):
            return "Too few runs of the reference ended to say how far it differs from itself."
        apart = three_digits(abs(one.value - one.bar))
        return f"The difference of the means, {apart}, is not beyond that."

    def save(self, path: str | Path) -> None:
        """Write the case as YAML, with what was found as comments.

        ``qbkit evaluate SENDER --book FILE`` runs it again.
        """
        import yaml

        file, criterion = Path(path), self.book.criteria[0]
        [scenario] = criterion.scenarios
        asked = scenario.model_dump(mode="json", include=set(SETTINGS))
        document: dict[str, Any] = self.book.model_dump(mode="json", exclude={"criteria"})
        document["criteria"] = [
            {
                "section": criterion.section,
                "title": criterion.title,
                "question": criterion.question,
                "scenarios": [{name: asked[name] for name in SETTINGS}],
            }
        ]
        again = f"qbkit evaluate {self.sender} --book {file.name} --quick --seeds {self.seeds}"
        comments = [*str(self).splitlines(), "", "Again:", f"  {again}"]
        head = "".join(f"# {line}".rstrip() + "\n" for line in comments)
        body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, (head + body).encode())

    def to_dict(self) -> dict[str, Any]:
        """The finding, ready for JSON."""
        one = self.compared
        numbers = {} if one is None else {
            "value": one.value, "reference_value": one.bar, "low": one.low, "high": one.high,
            "margin": one.margin,
        }  # fmt: skip
        found = {
            "sender": self.sender,
            "reference": self.reference,
            "metric": self.metric,
            "measure": self.book.criteria[0].scenarios[0].measures[0],
            "worst": str(self.worst),
            "network": str(self.network),
            **numbers,
            "floor": self.floor,
            "confirmed": self.confirmed,
            "networks": len(self.tried),
            "spent_s": round(self.spent_s, 1),
            "faults": [fault.fault for fault in self.faults],
            "failed": list(self.failed),
        }
        return dict(plain(found))

    def __repr__(self) -> str:
        return self.verdict


def book_of(sender: str, reference: str, scenario: Scenario) -> Book:
    """The book that asks whether the sender is worse than the reference there."""
    return Book(
        name="hunt-" + "".join(c if c.isalnum() else "-" for c in sender.lower()),
        title=f"Where {sender} is at its worst",
        version=1,
        source="qbkit hunt",
        standards=(reference,),
        others=(),
        criteria=(
            Criterion(
                section="1",
                title=MEASURES[scenario.measures[0]].words.capitalize(),
                question=f"Is it worse than {reference} there?",
                scenarios=(scenario,),
            ),
        ),
    )
