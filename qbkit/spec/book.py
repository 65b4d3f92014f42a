"""A book of scenarios: which questions a controller must answer, and the experiments that ask them.

A book is a YAML file, written to be reviewed: sections with a question each, their scenarios, and
what is measured in them. ``{}`` stands for the sender under test; its options may follow, as in
``{}?start_s=10``.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from qbkit.spec.base import Spec
from qbkit.spec.bottleneck import Bottleneck
from qbkit.spec.experiment import Experiment
from qbkit.spec.flow import Flow
from qbkit.spec.misbehaving import Attack
from qbkit.spec.words import repeated

TESTED = "{}"
COUNTED = re.compile(r"(\d{1,3}) \* (.+)")
Setting = dict[str, Any]


class Scenario(Spec):
    """One kind of experiment, in one network or in several."""

    name: str = Field(min_length=1, max_length=80)
    """What happens, in a few words."""
    flows: tuple[str, ...] = Field(default=(TESTED,), min_length=1, max_length=200)
    """Texts of flows, ``15 * tcp:cubic`` for several; one at least is ``{}``, the sender under
    test."""
    network: dict[str, Any] = Field(default_factory=dict)
    """Fields of the bottleneck."""
    vary: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Fields of the bottleneck with several values each: the scenario has a setting for each
    combination."""
    attacks: tuple[Attack, ...] = ()
    """What a third host forges, as texts: ``5 reset off-path guesses=1000``."""
    measures: tuple[str, ...] = Field(min_length=1)
    """Names of what is measured (`qbkit.metrics.evaluation.measures`)."""
    harm: bool = False
    """Whether each measure of the others becomes the harm that the tested sender does them: how
    much they lose beside it (`qbkit.metrics.evaluation.harm`)."""
    duration_s: float = Field(default=30.0, gt=0)
    from_s: float = Field(default=0.0, ge=0)
    """Where the measured time begins."""
    to_s: float | None = Field(default=None, gt=0)
    """Where it ends; by default with the run."""
    quick: bool = False
    """Whether a quick evaluation has it, with the first value of each varied field."""

    @field_validator("flows", mode="before")
    @classmethod
    def _counted(cls, flows: Any) -> Any:
        if not isinstance(flows, list | tuple):
            return flows
        found = [
            (text, COUNTED.fullmatch(text) if isinstance(text, str) else None) for text in flows
        ]
        return [each for text, m in found for each in ([m[2]] * int(m[1]) if m else [text])]

    @model_validator(mode="after")
    def _possible(self) -> Scenario:
        if not any(text.startswith(TESTED) for text in self.flows):
            raise ValueError(f"scenario {self.name!r} has no sender under test; write {TESTED}")
        if self.harm and all(text.startswith(TESTED) for text in self.flows):
            raise ValueError(f"scenario {self.name!r} has nobody to harm; add another flow")
        require_span(f"scenario {self.name!r}", self.from_s, self.to_s, self.duration_s)
        _require_distinct(f"scenario {self.name!r}", "measures", self.measures)
        for key, values in self.vary.items():
            _require_distinct(f"scenario {self.name!r}", f"vary.{key}", values)
        if both := next((key for key in self.vary if key in self.network), None):
            raise ValueError(f"scenario {self.name!r} has {both} in network and in vary; drop one")
        for setting in self.settings(quick=False):
            self.experiment("tcp:cubic", setting, seed=1)
            if self.harm:
                self.experiment(None, setting, seed=1)
        return self

    def settings(self, *, quick: bool) -> Iterator[Setting]:
        """The varied fields of each setting."""
        values = [each[:1] if quick else each for each in self.vary.values()]
        for chosen in itertools.product(*values):
            yield dict(zip(self.vary, chosen, strict=True))

    def experiment(self, sender: str | None, setting: Setting, seed: int) -> Experiment:
        """The experiment of a sender; of the others alone for None."""
        texts = [t for t in self.flows if sender is not None or not t.startswith(TESTED)]
        return Experiment(
            bottleneck=Bottleneck(**{**self.network, **setting}),
            flows=tuple(_flow(text, sender or "") for text in texts),
            attacks=self.attacks,
            duration_s=self.duration_s,
            seed=seed,
        )

    def rtt_ms(self, setting: Setting) -> float:
        """Base RTT of its path."""
        return Bottleneck(**{**self.network, **setting}).rtt_ms

    def flows_of(self, whom: Literal["tested", "others", "all"]) -> list[int]:
        """Which flows are those of the sender under test, of the others, or of anybody."""
        is_tested = [text.startswith(TESTED) for text in self.flows]
        wanted = {"tested": (True,), "others": (False,), "all": (True, False)}[whom]
        return [i for i, each in enumerate(is_tested) if each in wanted]


class Criterion(Spec):
    """A section of a book: one question."""

    section: str = Field(min_length=1, max_length=20)
    title: str = Field(min_length=1, max_length=80)
    question: str = Field(min_length=1, max_length=200)
    not_measured: str | None = Field(default=None, max_length=300)
    """Why it cannot be measured here, or what of it."""
    scenarios: tuple[Scenario, ...] = ()

    @model_validator(mode="after")
    def _answerable(self) -> Criterion:
        if not self.scenarios and not self.not_measured:
            raise ValueError(f"section {self.section} has no scenario; say in not_measured why")
        if twice := repeated([scenario.name for scenario in self.scenarios]):
            raise ValueError(f"section {self.section} has two scenarios {twice[0]!r}")
        return self


class TitlePage(Spec):
    """What a book says of itself."""

    name: str
    title: str
    version: int = Field(ge=1)
    source: str
    """The document that it is made from."""

    @property
    @abstractmethod
    def parts(self) -> list[str]:
        """What its parts are called."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if twice := repeated(self.parts):
            raise ValueError(f"the book has {twice[0]} twice")
        return self


class Book(TitlePage):
    """Criteria, and the controllers that every sender is compared with."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    standards: tuple[str, ...] = Field(default=("tcp:reno", "tcp:cubic"), min_length=1)
    """The standard controllers: the bar."""
    others: tuple[str, ...] = ("tcp:bbr",)
    """Shown beside them."""
    criteria: tuple[Criterion, ...] = Field(min_length=1)

    @property
    def parts(self) -> list[str]:
        """Its sections."""
        return [f"section {criterion.section}" for criterion in self.criteria]

    @property
    def scenarios(self) -> list[tuple[Criterion, Scenario]]:
        """Each scenario, with its criterion."""
        return [(one, scenario) for one in self.criteria for scenario in one.scenarios]


def require_span(what: str, from_s: float, to_s: float | None, duration_s: float) -> None:
    """Raise ValueError for a span that an experiment of that length (s) does not hold."""
    end_s = duration_s if to_s is None else to_s
    if not from_s < end_s <= duration_s:
        raise ValueError(
            f"{what} lasts {duration_s:g} s and is measured from {from_s:g} to {end_s:g} s; "
            "give from_s < to_s, and both within duration_s"
        )


def _require_distinct(what: str, field: str, values: Sequence[Any]) -> None:
    """Raise ValueError for a list without a value, or with one of them twice."""
    if not values:
        raise ValueError(f"{what} has no value in {field}; give one, or leave it out")
    if twice := repeated(values):
        raise ValueError(f"{what} has {twice[0]} twice in {field}")


def _flow(text: str, sender: str) -> Flow:
    """The flow that a text of a scenario describes."""
    if not text.startswith(TESTED):
        return Flow(text)
    more = text.removeprefix(TESTED).removeprefix("?")
    whole = Flow(sender).text
    joined = "&" if "?" in whole else "?"
    return Flow(f"{whole}{joined}{more}" if more else whole)
