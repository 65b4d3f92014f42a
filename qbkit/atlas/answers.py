"""Senders along RFC 9743 and along the BBR draft's test cases, question by question."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from qbkit.spec.book import Criterion
from qbkit.studies.evaluation.answers import Evaluation
from qbkit.studies.evaluation.evaluate import load_evaluation

NOT_MEASURED = "–"
WORDS = {"more": "worse", "no more": "no worse", "undecided": "open", "not measured": NOT_MEASURED}
"""Answer of an evaluation → what a cell of the table says."""
DRAFT_WORDS = {"as the draft says": "agrees", "not visible": "unseen", "not applicable": "n/a"}
"""Answer to a test case → what a cell says; others stay as they are."""
KINDS = {"worse": "more", "differs": "more", "no worse": "like", "agrees": "like"}
"""What a cell says → its colour, one of a badge's."""
SILENT = {NOT_MEASURED: "not measured", "unseen": "unseen", "n/a": "not applicable"}
"""What a cell without an answer says → what a sentence says."""
DRAFT, EVALUATIONS = "bbr_draft/cases.csv", "evaluations"
SECOND = "second_looks.csv"
"""Beside the table: each case that differs, with other seeds."""
DRAFT_NAME = "draft-ietf-ccwg-bbr"


class Answer(NamedTuple):
    """What one sender does in one question."""

    words: str
    """A word or two."""
    detail: str
    """What it rests on, in a sentence; "" without one."""

    @property
    def kind(self) -> str:
        """Its colour."""
        return KINDS.get(self.words, "open")


@dataclass(frozen=True)
class Answers:
    """Questions, and each sender's answer to them."""

    anchor: str
    title: str
    lead: str
    senders: list[str]
    rows: list[tuple[str, str, list[Answer]]]
    """Number of the question, the question, and an answer for each of ``senders``."""
    again: str
    """The command that answers them for one sender."""
    unanswered: str = ""
    """The questions that no sender has an answer to, in a sentence; "" if there are none."""
    noun: str = "question"
    """What a row is."""

    def of(self, sender: str) -> str:
        """How often a sender has each answer, in words; "" for one that is not in the table."""
        if sender not in self.senders:
            return ""
        counts = Counter(answers[self.senders.index(sender)].words for _, _, answers in self.rows)
        said = sorted(counts, key=lambda word: (word in SILENT, -counts[word]))
        return ", ".join(f"{SILENT.get(word, word)} in {counts[word]}" for word in said)

    @property
    def details(self) -> list[tuple[str, str, list[tuple[str, Answer]]]]:
        """Each question that somebody fails or leaves open, with the answers that say why."""
        reasons = [
            (
                number,
                question,
                [(s, a) for s, a in zip(self.senders, answers, strict=True) if a.detail],
            )
            for number, question, answers in self.rows
        ]
        return [row for row in reasons if row[2]]


def published_answers(folder: Path) -> list[Answers]:
    """The tables of a folder of published data; those that it does not hold are left out."""
    tables = [_evaluations(sorted(folder.glob(f"{EVALUATIONS}/*.json"))), _draft(folder / DRAFT)]
    return [table for table in tables if table]


def _evaluations(files: Iterable[Path]) -> Answers | None:
    """Every published evaluation along RFC 9743, the standards first."""
    found = [each for each in map(load_evaluation, files) if each.book.name == "rfc9743"]
    if not found:
        return None
    standards = found[0].book.standards
    found.sort(key=lambda each: (each.sender not in standards, each.sender))
    questions = [
        (one.section, one.title, [_answer(each, one) for each in found])
        for one in found[0].book.criteria
    ]
    rows = [row for row in questions if any(each.words != NOT_MEASURED for each in row[2])]
    left = [f"{row[1]} ({row[0]})" for row in questions if row not in rows]
    lead = (
        "Worse means: worse than the kernel's Reno and CUBIC, whichever does worst in the same "
        "setting, by more than a margin. The RFC sets no thresholds; the margins are ours. Open: "
        f"the seeds do not decide. {_seeds(found)}"
    )
    return Answers(
        "rfc9743",
        "Fit for the Internet? RFC 9743",
        lead,
        [each.sender for each in found],
        rows,
        f"qbkit evaluate {found[-1].sender} --quick --out report.html",
        f"Not measured: {', '.join(left)}." if left else "",
    )


def _seeds(found: Iterable[Evaluation]) -> str:
    """How many seeds stand behind the columns, and which columns are whole evaluations."""
    seeds: dict[bool, int] = {each.quick: each.seeds for each in found}
    if len(seeds) == 1:
        return f"{seeds.popitem()[1]} seeds each."
    whole = [each.sender for each in found if not each.quick]
    names = ", ".join(whole)
    return f"Quick evaluations of {seeds[True]} seeds; whole ones of {seeds[False]}: {names}."


def _answer(evaluation: Evaluation, criterion: Criterion) -> Answer:
    answer = evaluation.answer(criterion)
    telling = answer in ("more", "undecided")
    return Answer(WORDS[answer], evaluation.detail(criterion) if telling else "")


def _draft(table: Path) -> Answers | None:
    """The draft's test cases, each with what every BBR does."""
    if not table.exists():
        return None
    rows, second = _rows(table), table.with_name(SECOND)
    looked = {(row["sender"], row["case"]): row for row in _rows(second)} if second.exists() else {}
    rows = [_with_second(row, looked.get((row["sender"], row["case"]))) for row in rows]
    senders = list(dict.fromkeys(row["sender"] for row in rows))
    cases = {(row["sender"], row["case"]): row for row in rows}
    titles = {row["case"]: row["title"] for row in rows}
    lead = (
        f"What packets show of the test cases of {DRAFT_NAME}. A case that differs is a place to "
        "look, not a fault. Unseen: neither packets nor the stack's log show it. n/a: the case is "
        "about BBRv3, and the sender is BBRv1."
    )
    return Answers(
        "bbr-draft",
        "The BBR draft's test cases",
        lead,
        senders,
        [
            (case, title, [_case(cases.get((sender, case))) for sender in senders])
            for case, title in sorted(titles.items(), key=lambda item: int(item[0]))
        ],
        f"qbkit bbr-draft {senders[0]}",
        noun="test case",
    )


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _with_second(row: dict[str, str], second: Mapping[str, str] | None) -> dict[str, str]:
    """A case that differs, but not with the seeds of its second look, varies."""
    if second is None or second["answer"] == row["answer"]:
        return row
    return row | {"answer": "varies", "seen": f"{row['seen']}; other seeds: {second['seen']}"}


def _case(row: Mapping[str, str] | None) -> Answer:
    if row is None:
        return Answer("–", "")
    words = DRAFT_WORDS.get(row["answer"], row["answer"])
    return Answer(words, row["seen"] if words in ("differs", "varies") else "")
