"""The networks that a hunt searches: points of a box, and scenarios of a book."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qbkit.spec.book import TESTED, Scenario
from qbkit.spec.bottleneck import FRAME_BYTES
from qbkit.spec.network_words import network_text

DURATION_S = 30.0
QDISCS = ("fifo", "codel", "pie")
"""Queues that do not isolate flows: behind one that does, no flow is far from the others."""
RIVALS = ("tcp:cubic", "tcp:reno", "tcp:bbr")
ALONE = ""
STEP_AT_S = 12.0
"""When the rate changes."""
LATEST_S = 10.0
"""Most that a flow starts later than the other."""
OFTEN = 0.5
"""How often, in a random network, nothing of a kind happens: no loss, no step, …"""
RATE_MBPS, RTT_MS, BUFFER_BDP = (2.0, 20.0), (5.0, 200.0), (0.25, 8.0)
LOSS_PERCENT, STEP, HOLD_MS = (0.01, 2.0), (0.2, 5.0), (1.0, 50.0)
"""Least and most of each number; their logarithms are searched."""
FEWEST_FRAMES = 5
"""Least buffer: below it no sender does well."""
BOUNDS = [(0.0, 1.0)] * 9
"""The box: rate, RTT, buffer, queue, loss, step, ACKs held, rival, start."""


@dataclass(frozen=True)
class Network:
    """A link, what happens on it, and who else uses it."""

    rate_mbps: float
    rtt_ms: float
    buffer_bdp: float
    qdisc: str = "fifo"
    loss_percent: float = 0.0
    step: float = 1.0
    """Factor by which the rate changes at `STEP_AT_S`."""
    hold_acks_ms: float = 0.0
    """For how long ACKs wait for each other."""
    rival: str = ALONE
    late_s: float = 0.0
    """How much later than the tested flow the rival starts; negative: how much earlier."""

    @classmethod
    def of(cls, point: Sequence[float], rivals: Sequence[str]) -> Network:
        """The network at a point of the box, beside one of the rivals."""
        rate, rtt, buffer, qdisc, loss, step, hold, rival, late = point
        rate_mbps, rtt_ms = _within(RATE_MBPS, rate), _within(RTT_MS, rtt)
        fewest_bdp = _digits(FEWEST_FRAMES * FRAME_BYTES / (125 * rate_mbps * rtt_ms))
        return cls(
            rate_mbps,
            rtt_ms,
            max(_within(BUFFER_BDP, buffer), fewest_bdp),
            _one_of(QDISCS, _sometimes(qdisc)),
            _within(LOSS_PERCENT, _sometimes(loss)) if loss >= OFTEN else 0.0,
            _within(STEP, _sometimes(step)) if step >= OFTEN else 1.0,
            _within(HOLD_MS, _sometimes(hold)) if hold >= OFTEN else 0.0,
            _one_of(rivals, rival),
            round((2 * _sometimes(late) - 1) * LATEST_S, 1)
            if late >= OFTEN and _one_of(rivals, rival)
            else 0.0,
        )

    @property
    def link(self) -> dict[str, Any]:
        """The fields of the bottleneck that are not defaults."""
        fields: dict[str, Any] = {"rate_mbps": self.rate_mbps, "rtt_ms": self.rtt_ms}
        fields["buffer_bdp"] = self.buffer_bdp
        if self.qdisc != "fifo":
            fields["qdisc"] = self.qdisc
        if self.loss_percent:
            fields["loss_percent"] = self.loss_percent
        if self.step != 1:
            fields["capacity"] = f"0:{self.rate_mbps:g} {STEP_AT_S:g}:{self.later_mbps:g}"
        if self.hold_acks_ms:
            fields["hold_acks_ms"] = self.hold_acks_ms
        return fields

    @property
    def later_mbps(self) -> float:
        """The rate after the step."""
        return _digits(self.rate_mbps * self.step)

    def scenario(self, measures: Sequence[str]) -> Scenario:
        """The scenario of a book; the measured time begins with the later flow."""
        flows = [_starting(TESTED, -self.late_s)]
        flows += [_starting(self.rival, self.late_s)] if self.rival else []
        return Scenario(
            name=str(self)[:80],
            flows=tuple(flows),
            network=self.link,
            measures=tuple(measures),
            duration_s=DURATION_S,
            from_s=abs(self.late_s),
            quick=True,
        )

    def simpler(self, *, alone: bool) -> Iterator[Network]:
        """Networks that are simpler in one respect; without the rival only if ``alone``."""
        if self.rival and alone:
            yield replace(self, rival=ALONE, late_s=0.0)
        plain = Network(self.rate_mbps, self.rtt_ms, self.buffer_bdp, rival=self.rival)
        numbers = ("rtt_ms", "rate_mbps", "buffer_bdp", *EVENTS)
        changes: list[dict[str, Any]] = [
            {name: getattr(plain, name)} for name in (*EVENTS, "qdisc")
        ]
        changes += [{name: _round(getattr(self, name))} for name in numbers]
        for change in changes:
            if (simpler := replace(self, **change)) != self:
                yield simpler

    def __str__(self) -> str:
        parts = [network_text(self)]
        parts += [self.qdisc] if self.qdisc != "fifo" else []
        parts += [f"{self.loss_percent:g} % lost"] if self.loss_percent else []
        parts += [f"{self.later_mbps:g} Mbit/s from {STEP_AT_S:g} s"] if self.step != 1 else []
        parts += [f"ACKs held {self.hold_acks_ms:g} ms"] if self.hold_acks_ms else []
        when = f" {abs(self.late_s):g} s {'later' if self.late_s > 0 else 'earlier'}"
        parts += [f"{self.rival}{when if self.late_s else ''}"] if self.rival else []
        return ", ".join(parts)


EVENTS = ("step", "loss_percent", "hold_acks_ms", "late_s")
"""Numbers that say what happens beside the link, with a value at which nothing does."""


def _starting(text: str, after_s: float) -> str:
    """A flow that starts after some seconds, if that is later than the other."""
    return f"{text}?start_s={after_s:g}" if after_s > 0 else text


def _sometimes(part: float) -> float:
    """The place in the box of what happens in some networks only."""
    return max(part - OFTEN, 0.0) / (1 - OFTEN)


def _within(ends: tuple[float, float], part: float) -> float:
    """The number at a part of the way between the logarithms of two, with two digits."""
    return _digits(ends[0] * (ends[1] / ends[0]) ** part)


def _one_of(choices: Sequence[str], part: float) -> str:
    return choices[min(int(part * len(choices)), len(choices) - 1)]


def _digits(value: float) -> float:
    return float(f"{value:.2g}")


def _round(value: float) -> float:
    """The nearest of 1, 2, 5, 10, 20 …, or of 0.5, 0.2 …, by its ratio; the sign stays."""
    if not value:
        return value
    power = 10 ** math.floor(math.log10(abs(value)))
    found = min((1, 2, 5, 10), key=lambda r: abs(math.log(r * power / abs(value))))
    return math.copysign(_digits(found * power), value)
