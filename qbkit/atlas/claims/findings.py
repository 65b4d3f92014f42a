"""Findings of published data: a claim, its picture, its evidence and the command.

``findings.md.jinja`` in the folder of the data holds them (`qbkit.atlas.claims.template`). Rendered
it is Markdown: ``#`` begins a group and ``##`` a finding, whose first lines are ``about:``,
``picture:`` and ``command:``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qbkit.errors import QbkitError

MOST_WORDS = 20
FIELD = re.compile(r"(about|picture|command): (.*)")


class ClaimError(QbkitError):
    """The published data contradict a sentence, or a finding is not a finding."""


@dataclass(frozen=True)
class Picture:
    """Bars of a few numbers on one scale."""

    title: str
    rows: dict[str, float]
    decimals: int = 2
    mark: float | None = None
    """Where a line stands: the fair share, for instance."""

    def percent(self, value: float) -> float:
        """The place of a value between the ends of the scale, which has zero on it."""
        return 100 * (value - self._low) / (self._high - self._low)

    @property
    def zero(self) -> float:
        """The place of zero."""
        return self.percent(0.0)

    @property
    def _low(self) -> float:
        return min(0.0, *self.rows.values())

    @property
    def _high(self) -> float:
        return max(0.0, self.mark or 0.0, *self.rows.values()) or 1.0


class Finding(NamedTuple):
    """One claim of at most `MOST_WORDS` words."""

    group: str
    claim: str
    about: tuple[str, ...]
    """The implementations that it is about."""
    picture: Picture
    commands: tuple[str, ...]
    evidence: str
    """Markdown."""

    @property
    def anchor(self) -> str:
        """Its name in the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.claim.lower()).strip("-")[:60]


def bars(
    title: str, rows: Mapping[str, float], decimals: int = 2, mark: float | None = None
) -> str:
    """A picture, as a template writes it."""
    values = {name: float(value) for name, value in rows.items()}
    return json.dumps([title, values, decimals, mark])


def claim(text: str, holds: object) -> str:
    """The text, if it holds; otherwise ClaimError."""
    if not holds:
        raise ClaimError(f"the published data contradict “{text}”; change the sentence")
    return text


def read_findings(text: str) -> list[Finding]:
    """The findings of a rendered template; ClaimError for one that is too long or lacks a part."""
    found = []
    group = ""
    for part in re.split(r"^(?=##? )", text, flags=re.MULTILINE):
        heading, _, rest = part.partition("\n")
        if heading.startswith("# "):
            group = heading[2:].strip()
        elif heading.startswith("## "):
            found.append(_finding(group, heading[3:].strip(), rest))
    return found


def _finding(group: str, words: str, rest: str) -> Finding:
    if len(words.split()) > MOST_WORDS:
        raise ClaimError(f"“{words}” has {len(words.split())} words; say it in {MOST_WORDS}")
    fields: dict[str, list[str]] = {}
    lines = rest.split("\n")
    while lines and (not lines[0].strip() or FIELD.match(lines[0])):
        field = FIELD.match(lines.pop(0))
        if field:
            fields.setdefault(field[1], []).append(field[2])
    evidence = "\n".join(lines).strip()
    if not evidence or "picture" not in fields or "command" not in fields:
        raise ClaimError(f"“{words}” lacks its picture, its command or its evidence; add it")
    return Finding(
        group,
        words,
        tuple(" ".join(fields.get("about", ())).split()),
        Picture(*json.loads(fields["picture"][0])),
        tuple(fields["command"]),
        evidence,
    )
