"""What a sender has to send, and when: by default as much as it can.

The text of an application is a name and its settings: ``rate mbps=5 fps=30``,
``onoff on_s=1 off_s=2``, ``requests kb=100 think_s=0.5``, or ``objects 0:20 0.5:100`` with seconds
and kB, of which a file may have one on each line: ``objects trace.csv``. ``bulk`` is the default.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from qbkit.spec.base import TextSpec
from qbkit.spec.trace_file import named_file, read_steps
from qbkit.spec.words import kind_and_settings, timed

MOST_OBJECTS = 5000
LEAST_KB = 0.001
"""One byte."""
MOST_WORDS = 2**17 - 100
"""Most characters of what a driver reads: Linux's limit of a word, less the variable's name."""
FORMS = (
    "bulk, rate mbps=5 fps=30, onoff on_s=1 off_s=2 [seed=1], requests kb=100 think_s=0.5 "
    "[seed=1], or objects 0:20 0.5:100 (or a file of such times and sizes)"
)

SETTINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rate": (("mbps",), ("fps",)),
    "onoff": (("on_s", "off_s"), ("seed",)),
    "requests": (("kb", "think_s"), ("seed",)),
    "objects": (("objects",), ()),
}
"""Kind → the settings that it needs, and those that it may have."""


APPS = tuple(SETTINGS)
"""Kinds of applications."""


class App(TextSpec):
    """An application above a flow; see the module for its text forms."""

    kind: Literal["rate", "onoff", "requests", "objects"]
    mbps: float | None = Field(default=None, gt=0, le=10_000)
    """``rate``: so many Mbit/s, in frames."""
    fps: float | None = Field(default=None, gt=0, le=1000)
    """``rate``: frames in a second; 30 by default."""
    on_s: float | None = Field(default=None, gt=0, le=3600)
    """``onoff``: how long it sends as much as it can."""
    off_s: float | None = Field(default=None, gt=0, le=3600)
    """``onoff``: how long it sends nothing after that."""
    kb: float | None = Field(default=None, ge=LEAST_KB, le=1e6)
    """``requests``: size of each response in kB."""
    think_s: float | None = Field(default=None, ge=0, le=3600)
    """``requests``: from the acknowledgement of a response to the next one."""
    seed: int | None = Field(default=None, ge=1, lt=2**63)
    """``onoff`` and ``requests``: draws exponential times, of which the given ones are means."""
    objects: tuple[tuple[float, float], ...] = Field(default=(), max_length=MOST_OBJECTS)
    """``objects``: (time in s after the start of the flow, kB) of each."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        needed, allowed = SETTINGS[self.kind]
        names = (name for name in type(self).model_fields if name != "kind")
        given = {name for name in names if getattr(self, name) not in (None, ())}
        if missing := [name for name in needed if name not in given]:
            raise ValueError(f"app {self.kind} has no {missing[0]}; write {FORMS}")
        if extra := given - {*needed, *allowed}:
            raise ValueError(f"app {self.kind} does not use {min(extra)}; write {FORMS}")
        for (before_s, _), (after_s, _) in itertools.pairwise(self.objects):
            if after_s < before_s:
                raise ValueError(
                    f"the object at {after_s:g} s follows one at {before_s:g} s; put them in order"
                )
        if any(at_s < 0 or kb < LEAST_KB for at_s, kb in self.objects):
            raise ValueError(f"an object has a time from 0 on and at least {LEAST_KB} kB")
        if self.kind == "rate" and self._frame_kb < LEAST_KB:
            raise ValueError(
                f"{self.mbps:g} Mbit/s in {self._fps:g} frames a second makes frames of less than "
                "a byte; raise mbps or lower fps"
            )
        return self

    def require_within(self, length_s: float) -> None:
        """Raise ValueError for what a flow of so many seconds cannot send."""
        if self.objects and (last_s := self.objects[-1][0]) >= length_s:
            raise ValueError(
                f"the object at {last_s:g} s comes after the flow's end, {length_s:g} s after its "
                "start; lengthen the flow or leave it out"
            )
        if len(self.words(length_s)) > MOST_WORDS:
            raise ValueError(
                f"the app {self.kind} has {len(self._listed(length_s))} objects in {length_s:g} s, "
                "too many to list; lower fps, or shorten the flow"
            )

    @classmethod
    def of(cls, text: str) -> Self:
        """The application that a text describes; raises ValueError for others."""
        kind, *words = text.split() or [""]
        if kind == "objects":
            return cls(kind="objects", objects=_objects(words))
        names = cls.model_fields.keys() - {"kind", "objects"}
        return cls(**kind_and_settings(text, dict.fromkeys(SETTINGS, names), "app", FORMS))

    def __str__(self) -> str:
        """The text of which `of` makes this application."""
        if self.kind == "objects":
            pairs = (f"{at_s:.12g}:{kb:.12g}" for at_s, kb in self.objects)
            return " ".join(["objects", *pairs])
        names = (name for name in type(self).model_fields if name not in ("kind", "objects"))
        values = ((name, getattr(self, name)) for name in names)
        return " ".join(
            [self.kind, *(f"{name}={value:.12g}" for name, value in values if value is not None)]
        )

    def words(self, duration_s: float) -> str:
        """What a driver reads (stacks/drivers/tcp/app.c); times in ns, sizes in bytes."""
        if self.kind == "onoff":
            return f"onoff {_ns(self.on_s)} {_ns(self.off_s)} {self.seed or 0}"
        if self.kind == "requests":
            return f"requests {round((self.kb or 0) * 1e3)} {_ns(self.think_s)} {self.seed or 0}"
        found = [f"{_ns(at_s)}:{round(kb * 1e3)}" for at_s, kb in self._listed(duration_s)]
        return " ".join(["objects", *found])

    def _listed(self, duration_s: float) -> list[tuple[float, float]]:
        """(s, kB) of each object that begins within the time."""
        if self.kind == "objects":
            return list(self.objects)
        frame_kb = self._frame_kb
        return [(k / self._fps, frame_kb) for k in range(int(duration_s * self._fps))]

    @property
    def _fps(self) -> float:
        return self.fps or 30.0

    @property
    def _frame_kb(self) -> float:
        return (self.mbps or 0) * 1e3 / 8 / self._fps


def without_bulk(value: Any) -> Any:
    """None for ``bulk``, a flow without an application; anything else as it is."""
    return None if value == "bulk" else value


def _objects(words: list[str]) -> tuple[tuple[float, float], ...]:
    """(s, kB) of each object in words such as ``0.5:100``, or in the file that they name."""
    if not words or ":" in words[0]:
        return tuple(timed(word, "size", FORMS) for word in words)
    return read_steps(named_file(words, FORMS))


def _ns(time_s: float | None) -> int:
    return round((time_s or 0) * 1e9)
