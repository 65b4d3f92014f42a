"""A BBR for the ninth set of ``causes.py``, with one change per option.

It has the cycle of draft-cardwell-iccrg-bbr-congestion-control-00 in a table of phases, and the
bound of version 2: a round with too much loss keeps down what is in flight until the next probe,
for which it waits anew. A run is named by the source of its controller, so an edit here measures
every case of it anew.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import (
    Ack,
    Controller,
    DeliverySample,
    Loss,
    Option,
    Settings,
    number,
    switch,
    whole,
)
from qbkit.cca.filters import ExtraAcked, WindowedMax

LEAST_PACKETS = 4
GROWTH, FLAT_ROUNDS = 1.25, 3
"""So many rounds without such growth end Startup."""
DOWN_ROUNDS = 8
"""Rounds that DOWN has at most: a model of a path that has become slower sees no drain."""
PROBE_RTT_S = 0.2
LOSS_PART = 0.02
"""More loss than this of what is in flight in a round is too much."""
PHASES: dict[str, tuple[str | None, str]] = {
    "startup": ("startup_gain", "drain"),
    "drain": ("drain_gain", "cruise"),
    "cruise": (None, "up"),
    "up": ("up_gain", "down"),
    "down": ("down_gain", "cruise"),
    "probe_rtt": (None, "cruise"),
}
"""The option that is the pacing gain of a phase (1 without one), and what comes after it."""


class Path:
    """What a BBR knows of its path: rounds, rate, least RTT, and how ACKs come together."""

    def __init__(self, filter_rounds: int) -> None:
        self.round = self.flat_rounds = self._round_end = 0
        self.rtt_s, self.rtt_found_s = math.inf, 0.0
        self._rates = WindowedMax(filter_rounds - 1)
        self._extra = ExtraAcked()
        self._grown_from = 0.0

    @property
    def rate(self) -> float:
        """Bytes/s."""
        return self._rates.value

    @property
    def room_bytes(self) -> float:
        """What ACKs that come together add to the window."""
        return self._extra.value_bytes

    def learn(self, ack: Ack, sample: DeliverySample, window_bytes: float) -> bool:
        """Whether this ACK ends a round."""
        if ack.rtt_s is not None and ack.rtt_s < self.rtt_s:
            self.rtt_s, self.rtt_found_s = ack.rtt_s, ack.now_s
        ends = sample.prior_delivered_bytes >= self._round_end
        if ends:
            self.round += 1
            self._round_end = ack.delivered_bytes
        if not sample.is_app_limited or sample.rate_bytes_per_s > self.rate:
            self._rates.update(self.round, sample.rate_bytes_per_s)
        self._extra.update(ack.acked_bytes, self.rate, window_bytes, ends, ack.now_s)
        if ends and not sample.is_app_limited:
            grows = self.rate >= GROWTH * self._grown_from
            self._grown_from = self.rate if grows else self._grown_from
            self.flat_rounds = 0 if grows else self.flat_rounds + 1
        return ends


@qb.controller("ninth-bbr")
class NinthBbr(Controller):
    """Startup, drain, then cruise, up and down for ever; an old RTT is probed from any phase."""

    options: ClassVar[dict[str, Option]] = {
        "startup_gain": number("pacing and window gain in Startup", 2.885, 1, 10),
        "drain_gain": number("pacing gain in Drain", 0.35, 0.05, 1),
        "drain_to_bdp": number("Drain and DOWN end with so much in flight", 1.0, 0.1, 4),
        "up_gain": number("pacing gain in UP", 1.25, 1, 4),
        "down_gain": number("pacing gain in DOWN", 0.75, 0.1, 1),
        "cruise_rounds": whole("rounds of CRUISE", 8, 1, 10**4),
        "headroom": number("part of what UP had in flight that CRUISE leaves free", 0.0, 0, 0.95),
        "window_gain": number("window over BDP after Startup", 2.0, 0.5, 10),
        "filter_rounds": whole("rounds of which the greatest rate counts", 12, 1, 10**6),
        "probe_rtt_every_s": number("age of the least RTT that is probed", 10.0, 0.2, 10**6),
        "probe_rtt_bdp": number("window in it, of at least four packets", 0.5, 0, 2),
        "loss_keeps": number("part of what is in flight that a bad round leaves", 0.85, 0.05, 1),
        "rate_percent": number("pacing rate, of what the model says", 100.0, 10, 1000),
        "counts_limited": switch("samples that the application limits count as others", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.state, self.pacing_rate_bytes_per_s = "startup", math.inf
        self._path = Path(self.option["filter_rounds"])
        self._base = self.window_bytes
        self._bound = self._peak = self._rest_bytes = math.inf
        self._lost = self._round = self._rounds = 0
        self._limited = False
        self._probe_end_s: float | None = None
        self._ends = {
            "startup": lambda ack: self._path.flat_rounds >= FLAT_ROUNDS,
            "drain": self._is_drained,
            "cruise": lambda ack: self._lasted() >= self._rounds,
            "up": self._is_probed,
            "down": lambda ack: self._is_drained(ack) or self._lasted() >= DOWN_ROUNDS,
            "probe_rtt": self._has_rested,
        }

    def bdp(self, times: float = 1.0) -> float:
        """Bytes; infinite before the first sample."""
        return times * self._path.rate * self._path.rtt_s if self._path.rate else math.inf

    def on_ack(self, ack: Ack) -> None:
        if ack.delivery is not None:
            self._go_on(ack, self._counted(ack.delivery))

    def _counted(self, sample: DeliverySample) -> DeliverySample:
        """The sample, unlimited by the application if an option says so."""
        ignores = self.option["counts_limited"] and not self.is_sending_less
        return replace(sample, is_app_limited=False) if ignores else sample

    def _go_on(self, ack: Ack, sample: DeliverySample) -> None:
        self._limited = sample.is_app_limited
        ends_round = self._path.learn(ack, sample, self._base)
        if self.state == "up":
            self._peak = max(self._peak, float(ack.prior_bytes_in_flight))
        if self._is_old(ack.now_s):
            self._rest_bytes = self.bdp(self.option["probe_rtt_bdp"])
            self._path.rtt_s = math.inf if ack.rtt_s is None else ack.rtt_s
            self._enter("probe_rtt")
        elif self._ends[self.state](ack):
            self._enter(PHASES[self.state][1])
        if ends_round:
            self._lost = 0
        self._set_window(ack)
        self._set_rate(ack)

    def on_loss(self, loss: Loss) -> None:
        """The round in which too much is lost bounds what is in flight; the next probe waits."""
        before = loss.bytes_in_flight + loss.lost_bytes
        was_bad = self._lost > LOSS_PART * before
        self._lost += loss.lost_bytes
        if not was_bad and self._lost > LOSS_PART * before and self.state != "startup":
            self._bound = min(self._bound, self.option["loss_keeps"] * before)
            if self.state != "probe_rtt":
                self._enter("cruise")

    def _enter(self, state: str) -> None:
        self.state, self._round = state, self._path.round
        self.is_sending_less, self._probe_end_s = state == "probe_rtt", None
        if state == "cruise":
            least = self.option["cruise_rounds"]
            self._rounds = least if math.isfinite(self._peak) else random.randint(1, least)
        elif state == "up":
            self._bound, self._peak = math.inf, 0.0

    def _lasted(self) -> int:
        """Rounds of this phase that have ended."""
        return self._path.round - self._round

    def _is_drained(self, ack: Ack) -> bool:
        return ack.bytes_in_flight <= self.bdp(self.option["drain_to_bdp"])

    def _is_probed(self, ack: Ack) -> bool:
        """The pipe has held what the probe puts in, or lost some of it, or there was too little."""
        filled = ack.prior_bytes_in_flight >= self.bdp(self.option["up_gain"])
        return self._lasted() >= 1 and (filled or self._limited or self._lost > 0)

    def _is_old(self, now_s: float) -> bool:
        """Neither Startup nor UP is broken off."""
        waits = self.state not in ("startup", "up", "probe_rtt")
        return waits and now_s > self._path.rtt_found_s + self.option["probe_rtt_every_s"]

    def _has_rested(self, ack: Ack) -> bool:
        """ProbeRTT has lasted as long as it should since so little was in flight."""
        least = LEAST_PACKETS * self.packet_bytes
        if self._probe_end_s is None and ack.bytes_in_flight <= max(self._rest_bytes, least):
            self._probe_end_s = ack.now_s + PROBE_RTT_S
        is_over = self._probe_end_s is not None and ack.now_s >= self._probe_end_s
        if is_over:
            self._path.rtt_found_s = ack.now_s
        return is_over

    def _set_window(self, ack: Ack) -> None:
        is_full = self.state != "startup"
        gain = self.option["window_gain" if is_full else "startup_gain"]
        target = self.bdp(gain) + self._path.room_bytes
        grown = self._base + ack.acked_bytes
        self._base = min(grown, target) if is_full else max(self._base, min(grown, target))
        window = min(self._base, self._bound)
        if self.state == "probe_rtt":
            window = min(window, self._rest_bytes)
        elif self.state == "cruise" and self.option["headroom"]:
            window = min(window, (1 - self.option["headroom"]) * self._peak)
        self.window_bytes = max(window, float(LEAST_PACKETS * self.packet_bytes))

    def _set_rate(self, ack: Ack) -> None:
        option = PHASES[self.state][0]
        gain = (self.option[option] if option else 1.0) * self.option["rate_percent"] / 100
        rate = gain * self._path.rate
        if self.state == "startup":
            rate = max(rate, gain * self.window_bytes / ack.smoothed_rtt_s)
        self.pacing_rate_bytes_per_s = rate
