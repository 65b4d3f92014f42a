"""What was seen of the cases of a draft, and where it departs from what they expect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from qbkit.spec.case_book import Case, CaseBook, Expectation

SAYS, DIFFERS, VARIES = "as the draft says", "differs", "varies"
NOT_VISIBLE, NOT_APPLICABLE, FAILED = "not visible", "not applicable", "not run"


class Missed(NamedTuple):
    """An expectation that the first run does not meet."""

    expectation: Expectation
    moment_s: float
    """Where in the run it shows most."""


@dataclass(frozen=True)
class Judgement:
    """A case and what was seen of it."""

    case: Case
    answer: str
    seen: str
    command: str
    """What makes the first run again; empty where there is none."""
    run: str = ""
    """Hash of the first run; empty where there is none."""
    missed: tuple[Missed, ...] = ()
    """What the first run does not meet."""

    @property
    def expected(self) -> str:
        """What the draft says of the case, in words."""
        return "; ".join(one.words for one in self.case.expects)


@dataclass(frozen=True, repr=False)
class CaseReport:
    """A sender along the cases of a draft."""

    book: CaseBook
    sender: str
    judgements: tuple[Judgement, ...]
    seeds: int
    """How many runs of each case."""
    failed: tuple[str, ...] = ()
    """Why runs failed, a sentence each."""

    @cached_property
    def answers(self) -> set[str]:
        """Which answers there are."""
        return {one.answer for one in self.judgements}

    @property
    def worst(self) -> str:
        """``differs`` if a case does; else ``varies``, ``not run``, or ``as the draft says``."""
        return next((word for word in (DIFFERS, VARIES, FAILED) if word in self.answers), SAYS)

    @property
    def sentence(self) -> str:
        """How many cases have each answer."""
        counts = self.frame()["answer"].value_counts()
        words = ", ".join(f"{count} {word}" for word, count in counts.items())
        judged, known = len(self.judgements), len(self.book.cases)
        some = f"{judged} of " if judged < known else ""
        cases = f"{some}{known} case{'s' if known > 1 else ''}"
        runs = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return f"{cases}, {runs} each: {words}"

    def summary(self) -> pd.DataFrame:
        """The same as `frame` without the commands."""
        return self.frame().drop(columns="command")

    def frame(self) -> pd.DataFrame:
        """One row per case: number, title, answer, what was seen, and the command."""
        rows = [
            (one.case.number, one.case.title, one.answer, one.seen, one.command)
            for one in self.judgements
        ]
        return pd.DataFrame(rows, columns=["case", "title", "answer", "seen", "command"])

    def to_json(self) -> str:
        """The same as a JSON document, with what each case expects and where a run misses it."""
        head = {
            "sender": self.sender,
            "book": self.book.name,
            "version": self.book.version,
            "seeds": self.seeds,
        }
        cases = [
            {
                **row,
                "expected": one.expected,
                "missed": [
                    {"expected": m.expectation.words, "moment_s": round(m.moment_s, 4)}
                    for m in one.missed
                ],
                "run": one.run,
            }
            for row, one in zip(self.frame().to_dict("records"), self.judgements, strict=True)
        ]
        return json.dumps({**head, "cases": cases}, indent=1)

    def __repr__(self) -> str:
        return f"<{self.sender} along {self.book.name}: {len(self.judgements)} cases>"

    def _repr_html_(self) -> str:
        return str(self.summary().to_html(index=False, border=0))
