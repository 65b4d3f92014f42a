"""What changes on a path over time: its capacity, its round-trip time, and when nothing passes.

Each has a text form, for the command line, YAML and sweeps: ``0:50 20:5 40:50`` are times in
seconds and values, followed by ``hold`` (the default), ``repeat`` or ``cut``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from reprlib import repr as short
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from qbkit.spec.base import Spec
from qbkit.spec.trace_file import OPPORTUNITIES, named_file, read_opportunities, read_steps
from qbkit.spec.words import settings, timed

AtEnd = Literal["hold", "repeat", "cut"]
ENDS: tuple[AtEnd, ...] = ("hold", "repeat", "cut")
MOST_STEPS = 1_000_000
LEAST_MBPS, MOST_MBPS = 8e-6, 100_000.0
"""The kernel counts whole bytes a second: the least rate above 0 is one."""
MOST_S = 1e6
"""Latest step or opportunity; the kernel counts ns."""
OPPORTUNITY_BYTES = 1514
"""What mahimahi sends at an opportunity: a packet of 1500 bytes, here with its Ethernet header."""

Steps = tuple[tuple[float, float], ...]


class Timed(Spec):
    """Values from given times on. The first also holds before its time."""

    steps: Steps = Field(default=(), max_length=MOST_STEPS)
    """(time in s of the experiment, value), in order of time."""
    at_end: AtEnd = "hold"
    """After the last step has lasted as long as the one before it: its value holds, the steps
    repeat from the first on, or (``cut``) nothing passes any more."""
    name: str | None = Field(default=None, max_length=200)
    """Name of the trace or generator that the values come from. Such steps may go on after the end
    of an experiment; those written by hand may not."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for (before_s, _), (after_s, _) in itertools.pairwise(self.steps):
            if after_s <= before_s:
                raise ValueError(
                    f"a step at {after_s:g} s follows one at {before_s:g} s; put them in order of "
                    "time, each time once"
                )
        if self.steps and self.steps[0][0] < 0:
            raise ValueError(f"a step at {self.steps[0][0]:g} s is before the experiment begins")
        if self.steps and self.steps[-1][0] > MOST_S:
            raise ValueError(
                f"a step at {self.steps[-1][0]:g} s is too late; the last may be at {MOST_S:g} s"
            )
        if self.at_end != "hold" and len(self.steps) == 1:
            raise ValueError(f"one step has no end to {self.at_end} at; give two or more")
        return self

    @property
    def times_s(self) -> list[float]:
        """When each step begins; the first holds from the beginning on."""
        return [0.0, *(time_s for time_s, _ in self.steps[1:])]

    @property
    def values(self) -> list[float]:
        """The value of each step."""
        return [value for _, value in self.steps]

    def at_times(self) -> list[tuple[float, float]]:
        """(time in s, value) of each step; the first holds from the beginning on."""
        return list(zip(self.times_s, self.values, strict=True))

    def require_within(self, end_s: float, what: str) -> None:
        """Raise ValueError for a step by hand that the experiment does not reach, or too many."""
        if self.at_end == "repeat" and end_s / self.length_s * len(self.steps) > MOST_STEPS:
            raise ValueError(
                f"{what} repeats after {self.length_s:g} s, which makes more than {MOST_STEPS} "
                f"steps in {end_s:g} s; make the steps longer"
            )
        last_s = self.steps[-1][0] if self.steps else 0.0
        if self.name is None and self.at_end != "repeat" and last_s >= end_s:
            raise ValueError(
                f"{what} has a step at {last_s:g} s, after the experiment's end at {end_s:g} s; "
                "lengthen duration_s or leave the step out"
            )

    @property
    def length_s(self) -> float:
        """When the steps end: the last one lasts as long as the one before it."""
        times_s = self.times_s
        return 2 * times_s[-1] - times_s[-2] if len(times_s) > 1 else math.inf


class Capacity(Timed):
    """The rate of a link over time, or when it may send (a trace of mahimahi).

    ``Capacity.of("0:50 20:5 40:50")`` has steps of seconds and Mbit/s;
    ``Capacity.of("trace.csv scale=0.5 repeat")`` reads a file: lines of seconds and Mbit/s, or
    mahimahi's lines of milliseconds, each an opportunity to send one frame.
    """

    opportunities_ms: tuple[int, ...] = Field(default=(), max_length=MOST_STEPS)
    """Milliseconds at which 1514 bytes may leave, in order; they repeat after the last."""

    @model_validator(mode="after")
    def _carries_something(self) -> Self:
        if bool(self.steps) == bool(self.opportunities_ms):
            raise ValueError("give steps or opportunities_ms, and not both")
        for time_s, mbps in self.steps:
            if mbps and not LEAST_MBPS <= mbps <= MOST_MBPS:
                raise ValueError(
                    f"{mbps:g} Mbit/s at {time_s:g} s is no rate; allowed are 0, and "
                    f"{LEAST_MBPS:f} to {MOST_MBPS:g}"
                )
        ends_at_0 = self.at_end == "hold" and self.steps and self.steps[-1][1] == 0
        if ends_at_0 or (self.steps and not any(self.values)):
            raise ValueError(
                "the rate stays 0 for ever; end with a rate above 0, or write cut or repeat"
            )
        if self.opportunities_ms:
            self._check_opportunities()
        return self

    def _check_opportunities(self) -> None:
        """Raise ValueError for opportunities that cannot be."""
        if self.opportunities_ms[0] < 0 or self.opportunities_ms[-1] == 0:
            raise ValueError("opportunities are milliseconds from 0 on, and the last is after 0")
        for before_ms, after_ms in itertools.pairwise(self.opportunities_ms):
            if after_ms < before_ms:
                raise ValueError(
                    f"the opportunity at {after_ms} ms follows one at {before_ms} ms; put them in "
                    "order of time"
                )
        if self.opportunities_ms[-1] > MOST_S * 1e3:
            raise ValueError(
                f"the opportunity at {self.opportunities_ms[-1]} ms is too late; the last may be "
                f"at {MOST_S * 1e3:.0f} ms"
            )
        if self.at_end == "cut":
            raise ValueError("opportunities repeat, as in mahimahi; they cannot be cut")

    @classmethod
    def of(cls, text: str) -> Capacity:
        """The capacity that a text describes; raises ValueError for others."""
        words, ends, given = _words(text, {"scale"})
        scale = given.get("scale", 1.0)
        if scale <= 0:
            raise ValueError(f"scale={scale:g} leaves no capacity; allowed are numbers above 0")
        if ":" in words[0]:
            return cls(steps=_scaled(_pairs(words), scale), **ends)
        lines = named_file(words, FORM)
        if opportunities := read_opportunities(lines):
            if "scale" in given:
                raise ValueError("opportunities cannot be scaled; leave out scale")
            if ends not in ({}, {"at_end": "repeat"}):
                raise ValueError(
                    f"opportunities repeat, as in mahimahi; leave out {ends['at_end']}"
                )
            return cls(opportunities_ms=opportunities, name=lines.name)
        return cls(steps=_scaled(read_steps(lines, OPPORTUNITIES), scale), name=lines.name, **ends)

    @property
    def most_mbps(self) -> float:
        """The highest rate; of opportunities, the highest in 100 ms."""
        if self.steps:
            return max(self.values)
        counts: dict[int, int] = {}
        for ms in self.opportunities_ms:
            counts[ms // 100] = counts.get(ms // 100, 0) + 1
        return max(counts.values()) * OPPORTUNITY_BYTES * 8 / 1e5


class Delays(Timed):
    """The base RTT over time, in ms; half of it in either direction. Packets keep their order."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.steps:
            raise ValueError("delays without a step; give at least one")
        for time_s, rtt_ms in self.steps:
            if not 0.1 <= rtt_ms <= 10_000:
                raise ValueError(
                    f"an RTT of {rtt_ms:g} ms at {time_s:g} s; allowed are 0.1 to 10000 ms"
                )
        if self.at_end == "cut":
            raise ValueError("a delay cannot be cut; write hold or repeat")
        return self

    @classmethod
    def of(cls, text: str) -> Delays:
        """The RTTs that a text describes: ``0:50 5:100``, or a file of seconds and ms."""
        words, ends, _ = _words(text, set())
        if ":" in words[0]:
            return cls(steps=_pairs(words), **ends)
        lines = named_file(words, FORM)
        return cls(steps=read_steps(lines), name=lines.name, **ends)

    def until(self, end_s: float) -> list[tuple[float, float]]:
        """(time in s, RTT in ms) of each change before ``end_s``."""
        found: list[tuple[float, float]] = []
        start_s = 0.0
        while start_s < end_s:
            found += [(start_s + at_s, rtt_ms) for at_s, rtt_ms in self.at_times()]
            if self.at_end != "repeat":
                break
            start_s += self.length_s
        return [(at_s, rtt_ms) for at_s, rtt_ms in found if at_s < end_s]


class Outages(Spec):
    """Times at which nothing passes: ``5:0.2 20:1 drop`` are two, at 5 and 20 s."""

    times: tuple[tuple[float, float], ...] = Field(min_length=1, max_length=10_000)
    """(start in s of the experiment, length in s), in order of time."""
    drops: bool = False
    """Whether what waits or comes is dropped; otherwise it waits in the queue."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        end_s = 0.0
        for start_s, length_s in self.times:
            if start_s < end_s:
                raise ValueError(
                    f"an outage at {start_s:g} s begins before {end_s:g} s, when the one before it "
                    "ends; put them in order of time"
                )
            if length_s <= 0:
                raise ValueError(f"the outage at {start_s:g} s lasts {length_s:g} s; give more")
            end_s = start_s + length_s
        return self

    @classmethod
    def of(cls, text: str) -> Outages:
        """The outages that a text describes; raises ValueError for others."""
        words = text.split()
        drops = words[-1:] == ["drop"]
        pairs = tuple(timed(word, "length", OUTAGES) for word in words[: len(words) - drops])
        if not pairs:
            raise ValueError(f"{text!r} has no outage; write {OUTAGES}")
        return cls(times=pairs, drops=drops)


FORM = "seconds:value seconds:value …, or a file, then hold, repeat or cut"
OUTAGES = "seconds:length seconds:length …, then drop or nothing"


def _words(text: str, names: set[str]) -> tuple[list[str], dict[str, Any], dict[str, float]]:
    """A text's words, what it says of its end, if anything, and its settings of these names."""
    words = text.split()
    ends = [word for word in words if word in ENDS]
    if len(ends) > 1:
        raise ValueError(f"{text!r} ends by {' and '.join(ends)}; keep one")
    sets = [word for word in words if word.partition("=")[0] in names and "=" in word]
    steps = [word for word in words if word not in (*ends, *sets)]
    if not steps:
        raise ValueError(f"{text!r} has no steps; write {FORM}")
    end = {"at_end": ends[0]} if ends else {}
    return steps, end, settings(sets, names, repr(text), FORM)


def _pairs(words: Sequence[str]) -> Steps:
    """The pairs that words such as ``5:0.2`` describe."""
    return tuple(timed(word, "value", FORM) for word in words)


def _scaled(steps: Sequence[tuple[float, float]], scale: float) -> Steps:
    return tuple((time_s, value * scale) for time_s, value in steps)


PAIRS: dict[type[Any], str] = {
    Capacity: "step; give its time in s and the rate in Mbit/s, as in [(0, 50), (20, 5)]",
    Delays: "step; give its time in s and the base RTT in ms, as in [(0, 50), (20, 5)]",
    Outages: "outage; give its start and its length in seconds, as in [(5, 0.2), (20, 1)]",
}
"""A kind → what each of its pairs is, after the words ``is no``."""


def parsed_by(kind: type[Any]) -> Any:
    """A validator that reads the text form of a kind, or its pairs; fields are left as they are."""
    pairs, form = ("times", OUTAGES) if kind is Outages else ("steps", FORM)
    what = PAIRS[kind]

    def parse(value: Any) -> Any:
        if isinstance(value, str | Path):
            return kind.of(str(value))
        if isinstance(value, kind):
            return value
        if isinstance(value, dict):
            if other := [key for key in value if not isinstance(key, str)]:
                raise ValueError(f"{other[0]!r} is no name; give pairs, as in [(0, 50), (20, 5)]")
            _require_pairs(value.get(pairs), what)
            return value
        value = getattr(value, "values", value)  # of a data frame, whose columns are the pairs
        if isinstance(value, int | float):
            raise ValueError(f"{value} is no list of pairs; write {form}")
        if not isinstance(value, Iterable):
            return value
        _require_pairs(entries := list(value), what)
        return {pairs: entries}

    return parse


def _require_pairs(entries: Any, what: str) -> None:
    """Raise ValueError for the first entry of a list that is no pair, nor of another list."""
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, str | Mapping) or not isinstance(entry, Sized) or len(entry) != 2:
            raise ValueError(f"{short(entry)} is no {what}")
