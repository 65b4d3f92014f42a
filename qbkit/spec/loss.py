"""Loss in bursts: of packets (the model of Gilbert and Elliott, as netem has it), or of time."""

from __future__ import annotations

import random
from typing import Any, Literal

from pydantic import Field, model_validator

from qbkit.spec.base import Spec
from qbkit.spec.words import number, settings

FORM = "gemodel P R [1-H [1-K]]"
"""How `tc-netem(8)` spells the parameters, in percent; a text of this form stands for the model."""
TIMED_FORM = "bursts gap_s=2 length_s=0.1 [percent=100]"
"""The text of `TimedBursts`."""


class GilbertElliott(Spec):
    """Two states, good and bad, each with a loss rate of its own.

    netem (``loss gemodel``) draws twice per packet: whether the state changes for the next packet,
    and whether this one is lost. With the defaults of the two loss rates, every packet in the bad
    state is lost and none in the good one (Gilbert's simple model): bursts then have a geometric
    length of 100 / ``to_good_percent`` packets on average. The text ``gemodel 1 30``, as ``tc``
    spells it, stands for the same model.
    """

    to_bad_percent: float = Field(ge=1e-6, le=100.0)
    """netem's p: how often the good state turns bad, in percent of the packets."""
    to_good_percent: float = Field(ge=1e-6, le=100.0)
    """netem's r: how often the bad state turns good, in percent of the packets."""
    bad_loss_percent: float = Field(default=100.0, gt=0.0, le=100.0)
    """netem's 1-h: loss in the bad state, in percent of the packets."""
    good_loss_percent: float = Field(default=0.0, ge=0.0, lt=100.0)
    """netem's 1-k: loss in the good state, in percent of the packets."""

    @classmethod
    def from_text(cls, text: str) -> GilbertElliott:
        """The model that a text such as ``gemodel 1% 30%`` describes; ValueError for others."""
        name, *words = text.split() or [""]
        if name != "gemodel" or not 2 <= len(words) <= 4:
            raise ValueError(
                f"{text!r} is no loss model; write random, {FORM} in percent, or {TIMED_FORM}"
            )
        percents = [number(word.removesuffix("%"), text) for word in words]
        return cls(**dict(zip(cls.model_fields, percents, strict=False)))

    @model_validator(mode="after")
    def _differs(self) -> GilbertElliott:
        if self.bad_loss_percent <= self.good_loss_percent:
            raise ValueError(
                f"the bad state loses {self.bad_loss_percent:g} %, no more than the good one with "
                f"{self.good_loss_percent:g} %; raise bad_loss_percent"
            )
        return self

    @property
    def netem(self) -> str:
        """The model in netem's words."""
        return "loss gemodel " + " ".join(f"{value}%" for _, value in self)

    @property
    def burst_words(self) -> str:
        """The mean length of a burst in words."""
        return f"{self.mean_burst_packets:.3g}"

    @property
    def mean_loss_percent(self) -> float:
        """Loss in the long run: p / (p + r) of the packets meet the bad state."""
        bad = self._part_bad
        return bad * self.bad_loss_percent + (1 - bad) * self.good_loss_percent

    @property
    def mean_burst_packets(self) -> float:
        """Mean number of packets that are lost in a row.

        That is the number of losses divided by the number of bursts; a burst ends where a packet
        arrives after a lost one.
        """
        p, r, bad_loss, good_loss = (value / 100 for _, value in self)
        after_bad = r * (1 - good_loss) + (1 - r) * (1 - bad_loss)
        after_good = p * (1 - bad_loss) + (1 - p) * (1 - good_loss)
        bad = self._part_bad
        ends = bad * bad_loss * after_bad + (1 - bad) * good_loss * after_good
        return self.mean_loss_percent / 100 / ends if ends else float("inf")

    @property
    def _part_bad(self) -> float:
        """Part of the packets that meet the bad state."""
        return self.to_bad_percent / (self.to_bad_percent + self.to_good_percent)

    def __str__(self) -> str:
        return "gemodel " + " ".join(f"{value:g}" for _, value in self)


class TimedBursts(Spec):
    """Bursts that last a time, whether packets come or not, as an outage of a radio does.

    Gaps and bursts have exponential lengths, drawn from the experiment's seed. A burst is the same
    for all flows, and in both directions if both lose. The text
    ``bursts gap_s=2 length_s=0.1 percent=50`` stands for the model.
    """

    gap_s: float = Field(ge=1e-3, le=86_400.0)
    """Mean time in s from the end of a burst to the beginning of the next one."""
    length_s: float = Field(ge=1e-3, le=3600.0)
    """Mean length of a burst in s."""
    percent: float = Field(default=100.0, gt=0.0, le=100.0)
    """Loss in a burst, in percent of the packets, each on its own."""

    @classmethod
    def from_text(cls, text: str) -> TimedBursts:
        """The model that a text of the form `TIMED_FORM` describes; ValueError for others."""
        fields = settings(text.split()[1:], cls.model_fields, repr(text), TIMED_FORM)
        if missing := [name for name in ("gap_s", "length_s") if name not in fields]:
            raise ValueError(f"{text!r} has no {missing[0]}; write {TIMED_FORM}")
        return cls(**fields)

    def until(self, end_s: float, seed: int) -> list[tuple[float, float]]:
        """(start, end) in s of each burst that begins before ``end_s``, to a microsecond.

        The last one ends with the experiment, so that connections can be closed.
        """
        draw, bursts, now_s = random.Random(f"loss {seed}"), [], 0.0
        while (start_s := round(now_s + draw.expovariate(1 / self.gap_s), 6)) < end_s:
            now_s = round(start_s + draw.expovariate(1 / self.length_s), 6)
            bursts.append((start_s, min(now_s, end_s)))
        return bursts

    @property
    def mean_loss_percent(self) -> float:
        """Loss in the long run, of packets that come at an even rate."""
        return self.percent * self.length_s / (self.gap_s + self.length_s)

    @property
    def burst_words(self) -> str:
        """The mean length of a burst in words."""
        return f"{self.length_s * 1e3:.3g} ms"

    def __str__(self) -> str:
        return " ".join(["bursts", *(f"{name}={value:g}" for name, value in self)])


LossModel = Literal["random"] | GilbertElliott | TimedBursts


def read_loss(model: Any) -> LossModel:
    """The loss model that a text or fields describe; ValueError for others."""
    if model == "random" or isinstance(model, GilbertElliott | TimedBursts):
        return model
    if isinstance(model, dict):
        of_time = model.keys() & TimedBursts.model_fields.keys()
        return TimedBursts(**model) if of_time else GilbertElliott(**model)
    text = model if isinstance(model, str) else repr(model)
    timed = text.split()[:1] == ["bursts"]
    return TimedBursts.from_text(text) if timed else GilbertElliott.from_text(text)
