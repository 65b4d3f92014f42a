"""A book of test cases: an experiment each, and what must be seen in it.

The cases are those of an Internet-Draft; a YAML file holds them (`qbkit.studies.evaluation.cases`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from qbkit.spec.base import Spec
from qbkit.spec.book import Scenario, Setting, TitlePage, require_span

LAST_S = 0.001


class Expectation(Spec):
    """A measure in a span of the experiment, and its bound."""

    words: str = Field(min_length=1, max_length=120)
    """What the draft says of it, in a few words."""
    measure: str
    from_s: float = Field(default=0.0, ge=0)
    to_s: float | None = Field(default=None, gt=0)
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Expectation:
        if self.at_least is None and self.at_most is None:
            raise ValueError(f"{self.words!r} has no bound; give at_least or at_most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"{self.words!r} has at_least above at_most, which nothing meets")
        return self

    def met(self, value: float) -> bool:
        """Whether a value is within the bounds; NaN is not."""
        low = -float("inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= value <= high

    def beyond(self, value: float) -> float:
        """How far a value lies beyond a bound: above 0 outside, below 0 inside, in its unit."""
        low = -float("inf") if self.at_least is None else self.at_least - value
        high = -float("inf") if self.at_most is None else value - self.at_most
        return max(low, high)

    @property
    def bound(self) -> str:
        """The bounds in words."""
        parts = [f"at least {self.at_least:g}" if self.at_least is not None else ""]
        parts += [f"at most {self.at_most:g}" if self.at_most is not None else ""]
        return " and ".join(part for part in parts if part)


class Change(Spec):
    """A change of the rate at the moment in which the sender enters a state."""

    state: Literal["startup", "drain", "probe_bw", "probe_rtt"]
    rate_factor: float = Field(gt=0)


class Case(Spec):
    """A test case of the draft."""

    number: int = Field(ge=1)
    title: str = Field(min_length=1, max_length=80)
    not_visible: str | None = Field(default=None, max_length=200)
    """Why it cannot be judged from outside."""
    since_version: int = Field(default=1, ge=1, le=3)
    """The first version of the controller that it is about."""
    flows: tuple[str, ...] = ("{}",)
    network: dict[str, object] = Field(default_factory=dict)
    duration_s: float = Field(default=30.0, gt=0)
    change: Change | None = None
    """What changes when the sender enters a state, which a first run finds."""
    expects: tuple[Expectation, ...] = ()

    @model_validator(mode="after")
    def _judged(self) -> Case:
        if bool(self.expects) == bool(self.not_visible):
            raise ValueError(f"case {self.number} needs expects, or not_visible and why")
        if self.expects:
            self.scenario  # noqa: B018 (raises for an impossible experiment)
        for one in self.expects:
            require_span(f"case {self.number}", one.from_s, one.to_s, self.duration_s)
        if self.change and not isinstance(self.network.get("rate_mbps"), int | float):
            raise ValueError(f"case {self.number} changes the rate; give rate_mbps in its network")
        return self

    @cached_property
    def scenario(self) -> Scenario:
        """Its experiment."""
        return Scenario(
            name=self.title,
            flows=self.flows,
            network=self.network,
            duration_s=self.duration_s,
            measures=tuple(dict.fromkeys(one.measure for one in self.expects)),
        )

    def setting(self, changes_at_s: float | None = None) -> Setting:
        """What the change adds to the network; without a time, it comes in the last instant.

        So the first run, which finds the time, is the second one up to there.
        """
        if self.change is None:
            return {}
        rate_mbps = float(str(self.network["rate_mbps"]))
        at_s = self.duration_s - LAST_S if changes_at_s is None else changes_at_s
        after_mbps = rate_mbps * self.change.rate_factor
        return {"capacity": f"0:{rate_mbps:g} {at_s:.4f}:{after_mbps:g}"}


class CaseBook(TitlePage):
    """The cases of a draft."""

    controllers: str = ""
    """What the name of a controller must have in it, such as ``bbr``; by default, nothing."""
    version_1: tuple[str, ...] = ()
    """Senders that are known to implement the controller's first version."""
    cases: tuple[Case, ...] = Field(min_length=1)

    @property
    def parts(self) -> list[str]:
        """Its cases."""
        return [f"case {case.number}" for case in self.cases]
