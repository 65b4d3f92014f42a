"""Estimated parameters of a sender: what each is, its value and its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from qbkit.json_words import plain_rows
from qbkit.metrics.parameters.rules import RULES

PARAMETERS: dict[str, tuple[str, str]] = {
    "initial_window_packets": ("packets", "initial window"),
    "start_growth": ("1/RTT", "growth per round of slow start"),
    "slow_start_exit": ("", "what ends slow start"),
    "slow_start_exit_packets": ("packets", "window at the end of slow start"),
    "pacing": ("", "pacing in slow start"),
    "pacing_gain": ("1", "pacing rate over cwnd/RTT in slow start"),
    "packet_bytes": ("B", "full frame"),
    "burst_packets": ("packets", "packets within a millisecond (99th percentile)"),
    "packets_per_ack": ("packets", "packets per ACK"),
    "ack_delay_ms": ("ms", "longest wait of a packet for an ACK"),
    "decrease_factor": ("1", "fraction of the window left after a loss (β)"),
    "reverted_reductions_percent": ("%", "window reductions reverted within two RTTs"),
    "growth": ("", "law of the window's growth between losses"),
    "increase_packets_per_rtt": ("packets/RTT", "additive increase"),
    "cubic_c": ("packets/s³", "CUBIC's C"),
    "emulated_flows": ("1", "number of standard flows that it emulates (N)"),
    "probe_up_gain": ("1", "sending rate over delivery rate while probing for bandwidth"),
    "probe_down_gain": ("1", "the same ratio while draining after the probe"),
    "probe_cycle_rtts": ("RTT", "time from probe to probe"),
    "probe_rtt_interval_s": ("s", "time from ProbeRTT to ProbeRTT"),
    "probe_rtt_duration_ms": ("ms", "length of a ProbeRTT"),
    "in_flight_bdp": ("BDP", "packets in flight over delivery rate × minimum RTT"),
    "least_window_packets": ("packets", "fewest packets in flight for an RTT"),
    "limited_percent": ("%", "time in which neither the link nor a loss limits the window"),
}
"""Name → unit and meaning. The values of parameters without a unit are words."""


@dataclass(frozen=True)
class Estimate:
    """One parameter: the median of its samples, and its confidence interval."""

    name: str
    value: float
    """NaN if the traces do not show it, and for a word."""
    low: float = math.nan
    high: float = math.nan
    """95 % interval of the median (bootstrap over the samples); NaN for fewer than three."""
    samples: int = 0
    word: str = ""
    """The value of a parameter that is a word: ``loss``, ``delay``, ``paced``, ``linear`` …

    ``growth`` is ``linear`` (AIMD), ``cubic``, or ``probing`` (by a model of the path, as in BBR).
    """
    runs: tuple[float | str, ...] = ()
    """What each trace by itself shows: its median, or its word; NaN if it does not show it."""

    @property
    def unit(self) -> str:
        """Unit of value, low and high."""
        rule = RULES.get(self.name)
        return rule.unit if rule else PARAMETERS[self.name][0]

    @property
    def meaning(self) -> str:
        """What it is, in words."""
        rule = RULES.get(self.name)
        return rule.meaning if rule else PARAMETERS[self.name][1]

    @property
    def known(self) -> bool:
        """Whether the traces show the parameter."""
        return bool(self.word) or math.isfinite(self.value)

    def __str__(self) -> str:
        if self.word or not self.known:
            return self.word or "not seen"
        if math.isnan(self.low):
            return _short(self.value)
        return f"{_short(self.value)} [{_short(self.low)}, {_short(self.high)}]"


class Parameters(Mapping[str, Estimate]):
    """Estimates by name, in the order of `PARAMETERS`."""

    def __init__(self, label: str, estimates: Iterable[Estimate]) -> None:
        self.label = label
        self._estimates = {e.name: e for e in estimates}

    def __getitem__(self, name: str) -> Estimate:
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def frame(self) -> pd.DataFrame:
        """One row per parameter: meaning, value (or word), low, high, samples, unit."""
        rows = [
            {
                "parameter": e.name,
                "meaning": e.meaning,
                "value": e.word or e.value,
                "low": e.low,
                "high": e.high,
                "samples": e.samples,
                "unit": e.unit,
            }
            for e in self.values()
        ]
        return pd.DataFrame(rows).set_index("parameter")

    def to_dict(self) -> dict[str, Any]:
        """The estimates, ready for JSON; unknown numbers are None."""
        return {"label": self.label, "estimates": plain_rows(map(asdict, self.values()))}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Parameters:
        """Parameters from what `to_dict` returned; KeyError or TypeError for anything else."""
        rows: list[dict[str, Any]] = [
            {k: _value_of(v) for k, v in row.items()} for row in document["estimates"]
        ]
        return cls(str(document["label"]), [Estimate(**row) for row in rows])

    def __repr__(self) -> str:
        known = ", ".join(f"{e.name} {e}" for e in self.values() if e.known)
        return f"<Parameters of {self.label}: {known or 'none seen'}>"

    def _repr_html_(self) -> str:
        return self.frame().round(3).to_html(na_rep="")


def _short(value: float) -> str:
    """The number with three significant digits, without an exponent for thousands."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _value_of(value: Any) -> Any:
    """What `plain_rows` was given."""
    if isinstance(value, list):
        return tuple(_value_of(each) for each in value)
    return math.nan if value is None else value
