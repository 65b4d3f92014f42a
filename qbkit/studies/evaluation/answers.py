"""The answers of an evaluation: a sentence for each section, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from qbkit.errors import MetricError
from qbkit.metrics.evaluation.harm import Comparison, compared
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.plots import section_chart
from qbkit.plots.drawing.charts import VConcatChart
from qbkit.spec.book import Book, Criterion, Setting
from qbkit.studies.evaluation.numbers import three_digits

Place = tuple[str, str, str, str, bool]
"""Section, scenario, setting and measure, and whether it is harm."""
LeftOut = dict[tuple[str, str], str]
"""(Section, a scenario or settings of one) → why it was not run."""
NOT_QUICK = "not in a quick evaluation"
SETTING_WORDS = {
    "buffer_bdp": "buffer of {} BDP",
    "loss_percent": "{} % lost",
    "reorder_percent": "{} % of them",
    "qdisc": "{}",
}
"""Varied field → how a person says its value."""
KEYS = ["section", "scenario", "setting", "measure", "harm"]
WORDS = {
    "more": "worse than the standard controllers",
    "undecided": "undecided",
    "no more": "no worse than the standard controllers",
    "not measured": "not measured",
}
"""Answer → how a person reads it."""
ORDER = ("more", "undecided", "no more")


class Finding(NamedTuple):
    """One measure in one setting: the sender beside the standards."""

    section: str
    scenario: str
    setting: str
    measure: str
    is_harm: bool
    compared: Comparison

    @property
    def place(self) -> str:
        """The scenario and its setting."""
        return _place(self.scenario, self.setting)

    @property
    def quantity(self) -> str:
        """What was measured, in words."""
        return _quantity(self.measure, self.is_harm)

    @property
    def quantity_with_unit(self) -> str:
        """What was measured, and in what."""
        return _quantity_with_unit(self.measure, self.is_harm)

    @property
    def numbers(self) -> str:
        """The sender's number against the bar's."""
        one = self.compared
        unit = "" if self.is_harm else f" {MEASURES[self.measure].unit}"
        ours, bar = three_digits(one.value), three_digits(one.bar)
        return f"{ours} against {bar}{unit} of {one.bar_name}".replace("  ", " ")


@dataclass(frozen=True, repr=False)
class Evaluation:
    """A sender along a book: every number, and what follows from them."""

    book: Book
    sender: str
    quick: bool
    seeds: int
    values: pd.DataFrame
    """A row per number: section, scenario, setting, measure, harm, sender, seed, value, run."""
    failed: tuple[str, ...] = ()
    """Why runs failed, a sentence each."""
    left_out: LeftOut = field(default_factory=dict)

    @cached_property
    def findings(self) -> list[Finding]:
        """Each measure in each setting, in the order of the book."""
        return [Finding(*key, one) for key, one in self._comparisons if one is not None]

    @cached_property
    def _comparisons(self) -> list[tuple[Place, Comparison | None]]:
        """What each measure in each setting compares; None where a side has no number."""
        return [] if self.values.empty else list(self._compared())

    def _compared(self) -> Iterator[tuple[Place, Comparison | None]]:
        for key, rows in self.values.groupby(KEYS, sort=False):
            section, scenario, setting, measure, is_harm = key
            by_sender = {str(name): list(part["value"]) for name, part in rows.groupby("sender")}
            standards = {name: by_sender.get(name, []) for name in self.book.standards}
            ours = by_sender.get(self.sender, [])
            one = compared(
                ours,
                standards,
                MEASURES[measure],
                is_harm=bool(is_harm),
                rtt_ms=self._rtts_ms.get((section, scenario, setting), math.inf),
            )
            if one is not None and one.bar_name == self.sender:
                one = replace(one, low=0.0, high=0.0)  # it is the bar
            yield (section, scenario, setting, measure, bool(is_harm)), one

    @cached_property
    def _rtts_ms(self) -> dict[tuple[str, str, str], float]:
        """Section, scenario and setting → base RTT of the path, in ms."""
        return {
            (criterion.section, scenario.name, setting_words(setting)): scenario.rtt_ms(setting)
            for criterion, scenario in self.book.scenarios
            for setting in scenario.settings(quick=self.quick)
        }

    def of(self, criterion: Criterion) -> list[Finding]:
        """The findings of a section."""
        return [finding for finding in self.findings if finding.section == criterion.section]

    def answer(self, criterion: Criterion) -> str:
        """``more``, ``undecided``, ``no more`` or ``not measured``."""
        found = {finding.compared.answer for finding in self.of(criterion)}
        if "no more" in found and self._unknown(criterion):
            found.add("undecided")
        return next((word for word in ORDER if word in found), "not measured")

    def _unknown(self, criterion: Criterion) -> int:
        """How many comparisons of a section lack the numbers of a side."""
        mine = [one for key, one in self._comparisons if key[0] == criterion.section]
        return mine.count(None)

    @property
    def worst(self) -> str:
        """The worst answer of all sections; ``undecided`` at best where numbers are missing."""
        found = {self.answer(criterion) for criterion in self.book.criteria}
        if any(map(self._unknown, self.book.criteria)):
            found.add("undecided")
        return next((word for word in ORDER if word in found), "not measured")

    def sentence(self, criterion: Criterion) -> str:
        """The answer to a section's question, with the largest difference."""
        return f"{WORDS[self.answer(criterion)].capitalize()}: {self.detail(criterion)}."

    def detail(self, criterion: Criterion) -> str:
        """What an answer rests on, in a few words: the largest difference, where there is one."""
        answer, found = self.answer(criterion), self.of(criterion)
        if answer == "not measured":
            return criterion.not_measured or self._why_not(criterion)
        if answer == "no more":
            return f"in {len(found)} comparison{'s' if len(found) > 1 else ''}"
        telling = [one for one in found if one.compared.answer == answer]
        if not telling:
            unknown = self._unknown(criterion)
            every = unknown + len(found)
            return f"in {unknown} of {every} comparisons {self._no_number(criterion)}"
        worst = max(telling, key=lambda one: _excess(one.compared))
        more = f" (and {len(telling) - 1} more of {len(found)})" if len(telling) > 1 else ""
        return f"{worst.quantity}, {worst.place}: {worst.numbers}{more}"

    def left_out_of(self, criterion: Criterion) -> dict[str, str]:
        """The scenarios and settings of a section that were not run, and why."""
        found = self.left_out.items()
        return {name: why for (section, name), why in found if section == criterion.section}

    def _why_not(self, criterion: Criterion) -> str:
        """Why a section that has scenarios was not measured."""
        if criterion.section in set(self.values["section"]):
            return self._no_number(criterion)
        reasons = list(self.left_out_of(criterion).values())
        return reasons[-1] if reasons else NOT_QUICK

    def _no_number(self, criterion: Criterion) -> str:
        """Why a section that was run has values that are not known."""
        mine = self.values[self.values["section"] == criterion.section]
        failed = mine[mine["value"].isna()]["run"] == ""
        return "its runs failed" if failed.any() else "its runs do not show what is measured"

    def chart(self, section: str) -> VConcatChart:
        """The numbers of a section, a panel each, with all senders; MetricError without any."""
        criterion = next((one for one in self.book.criteria if one.section == section), None)
        if criterion is None:
            known = ", ".join(one.section for one in self.book.criteria)
            raise MetricError(f"there is no section {section!r}; choose from {known}", refused=True)
        mine = self.values[self.values["section"] == section]
        if mine["value"].isna().all():
            raise MetricError(f"section {section} has no number to draw: {self.detail(criterion)}")
        panels = [_panel(row) for row in mine.to_dict(orient="records")]
        senders = list(dict.fromkeys(self.values["sender"]))
        drawn = mine[["sender", "value"]].assign(panel=panels)
        return section_chart(drawn, senders, title=f"{self.sender}, section {section}")

    def summary(self) -> pd.DataFrame:
        """One row per section: its question, the answer and its sentence."""
        rows = [
            (one.section, one.title, WORDS[self.answer(one)], self.sentence(one))
            for one in self.book.criteria
        ]
        return pd.DataFrame(rows, columns=["section", "title", "answer", "sentence"])

    def frame(self) -> pd.DataFrame:
        """One row per finding: the sender's mean, the bar, and the interval of the difference."""
        rows = [
            {
                "section": one.section,
                "scenario": one.scenario,
                "setting": one.setting,
                "measure": one.quantity,
                "unit": "" if one.is_harm else MEASURES[one.measure].unit,
                self.sender: one.compared.value,
                "bar": one.compared.bar,
                "bar of": one.compared.bar_name,
                "worse by, from": one.compared.low,
                "to": one.compared.high,
                "margin": one.compared.margin,
                "answer": WORDS[one.compared.answer],
            }
            for one in self.findings
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {self.sender} along {self.book.name}: {len(self.findings)} findings>"
        )

    def _repr_html_(self) -> str:
        from qbkit.studies.evaluation.report import summary_html

        return summary_html(self)


def setting_words(setting: Setting) -> str:
    """A setting as a person says it: ``buffer of 1 BDP``."""
    said = (SETTING_WORDS.get(key, "{} " + key).format(value) for key, value in setting.items())
    return ", ".join(said)


def _panel(row: dict[Any, Any]) -> str:
    """What a row's number is, and where."""
    what = _quantity_with_unit(row["measure"], row["harm"])
    return f"{what[0].upper()}{what[1:]}: {_place(row['scenario'], row['setting'])}"


def _quantity(measure: str, is_harm: bool) -> str:
    words = MEASURES[measure].words
    return f"harm to {words}" if is_harm else words


def _quantity_with_unit(measure: str, is_harm: bool) -> str:
    unit = "" if is_harm else MEASURES[measure].unit
    return _quantity(measure, is_harm) + (f" ({unit})" if unit else "")


def _place(scenario: str, setting: str) -> str:
    return f"{scenario}, {setting}" if setting else scenario


def _excess(one: Comparison) -> float:
    """How far beyond the margin a difference is, in margins."""
    middle = (one.low + one.high) / 2
    return 0.0 if math.isnan(middle) else middle / max(one.margin, 1e-9)
