"""Kinds of networks by name, with a seed for what is random in them.

They are models, not measurements: their parameters have the sizes that are usual for such links,
and traces of real ones are read from files (`qbkit.spec.over_time.Capacity`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from qbkit.spec.words import settings

Fields = dict[str, Any]
FORM = "NAME seed=1 mean_mbps=20"
LEAST_MBPS, LEAST_BACK_MBPS, MOST_MBPS = 0.1, 0.05, 10_000.0
LTE_STEP_S, LTE_STEPS = 0.1, 600
LTE_PARTS = (0.2, 0.5, 0.8, 1.1, 1.5, 2.0)
"""Rates of the states, in parts of the mean rate; every 0.1 s the state may change to the next."""
LEO_HANDOVER_S, LEO_HANDOVERS, LEO_OUTAGE_S = 15.0, 8, (0.05, 0.2)
LEO_RTT_MS = (25.0, 65.0)
WIFI_STEP_S, WIFI_STEPS = 0.02, 1500
WIFI_STATIONS = 5
"""So many stations share the air: those that have data divide it among them."""


def geo(mean_mbps: float = 20.0) -> Fields:
    """A geostationary satellite: 600 ms, and a slower way back."""
    return {
        "rate_mbps": mean_mbps,
        "rtt_ms": 600.0,
        "return_rate_mbps": max(mean_mbps / 8, LEAST_BACK_MBPS),
    }


def dsl(mean_mbps: float = 16.0) -> Fields:
    """A telephone line with a deep buffer, and a sixteenth of the rate on the way back."""
    back = {"return_rate_mbps": max(mean_mbps / 16, LEAST_BACK_MBPS), "return_buffer_packets": 64}
    return {"rate_mbps": mean_mbps, "rtt_ms": 30.0, "buffer_bdp": 4.0, **back}


def cable(mean_mbps: float = 100.0) -> Fields:
    """A cable modem: PIE in its buffer (RFC 8034), and ACKs that wait for a grant of 2 ms."""
    back = {"return_rate_mbps": max(mean_mbps / 10, LEAST_BACK_MBPS), "hold_acks_ms": 2.0}
    return {"rate_mbps": mean_mbps, "rtt_ms": 20.0, "buffer_bdp": 10.0, "qdisc": "pie", **back}


def lte(seed: int = 1, mean_mbps: float = 20.0) -> Fields:
    """A cellular link: a rate that walks through six states, and a deep buffer."""
    draw, state, steps = random.Random(seed), 2, []
    for index in range(LTE_STEPS):
        steps.append((round(index * LTE_STEP_S, 6), round(LTE_PARTS[state] * mean_mbps, 3)))
        state = min(max(state + draw.choice((-1, 0, 0, 1)), 0), len(LTE_PARTS) - 1)
    capacity = {"steps": steps, "at_end": "repeat", "name": f"lte seed={seed}"}
    return {"rate_mbps": mean_mbps, "rtt_ms": 50.0, "buffer_bdp": 4.0, "capacity": capacity}


def leo(seed: int = 1, mean_mbps: float = 100.0) -> Fields:
    """A low orbit: every 15 s a handover, with a short outage and another rate and RTT."""
    draw = random.Random(seed)
    rates: list[tuple[float, float]] = []
    rtts: list[tuple[float, float]] = []
    for index in range(LEO_HANDOVERS):
        start_s, outage_s = index * LEO_HANDOVER_S, draw.uniform(*LEO_OUTAGE_S)
        rate_mbps = mean_mbps * draw.uniform(0.6, 1.4)
        if index:
            rates.append((start_s, 0.0))
        for second in range(int(LEO_HANDOVER_S)):
            at_s = start_s + (second or (round(outage_s, 3) if index else 0.0))
            rates.append((at_s, round(rate_mbps * draw.uniform(0.85, 1.15), 3)))
        rtts.append((start_s, round(draw.uniform(*LEO_RTT_MS), 1)))
    name = f"leo seed={seed}"
    return {
        "rate_mbps": mean_mbps,
        "rtt_ms": sum(LEO_RTT_MS) / 2,
        "capacity": {"steps": rates, "at_end": "repeat", "name": name},
        "delay": {"steps": rtts, "at_end": "repeat", "name": name},
    }


def wifi(seed: int = 1, mean_mbps: float = 50.0) -> Fields:
    """A wireless LAN: stations come and go, and frames travel together every 4 ms."""
    draw, busy = random.Random(seed), 0
    others = []
    for _ in range(WIFI_STEPS):
        others.append(busy)
        leaves, joins = (
            draw.random() < 0.1 * busy,
            draw.random() < 0.05 * (WIFI_STATIONS - 1 - busy),
        )
        busy += joins - leaves
    whole_mbps = mean_mbps * len(others) / sum(1 / (1 + n) for n in others)
    steps = [
        (round(index * WIFI_STEP_S, 6), round(whole_mbps / (1 + n), 3))
        for index, n in _changes(others)
    ]
    capacity = {"steps": steps, "at_end": "repeat", "name": f"wifi seed={seed}"}
    held = {"hold_data_ms": 4.0, "hold_acks_ms": 4.0}
    return {"rate_mbps": mean_mbps, "rtt_ms": 20.0, "buffer_bdp": 4.0, "capacity": capacity, **held}


def _changes(values: list[int]) -> Iterator[tuple[int, int]]:
    """The first of each row of equal values, with its index, and the last value."""
    yield 0, values[0]
    for index, (before, after) in enumerate(itertools.pairwise(values), 1):
        if before != after or index == len(values) - 1:
            yield index, after


PRESETS: dict[str, Callable[..., Fields]] = {
    f.__name__: f for f in (geo, dsl, cable, lte, leo, wifi)
}
"""Name of a kind of network → what makes its fields of a `Bottleneck`."""
CONSTANT = (geo.__name__, dsl.__name__, cable.__name__)
"""Those in which nothing is random."""
IN_PLACE = {"rate_mbps": "capacity", "rtt_ms": "delay"}
"""Field → the schedule that a link has in its place; the field then only sizes the buffer."""


def fields_beside(text: Any, given: Mapping[str, Any]) -> Fields:
    """The fields of a preset (`fields_of`) for a bottleneck with these given ones.

    Raises ValueError for a given one in whose place the preset has a schedule.
    """
    fields = fields_of(text)
    for name, schedule in IN_PLACE.items():
        if given.get(name) is not None and schedule in fields and schedule not in given:
            raise ValueError(
                f"{name} would only size the buffer of the preset {text.split()[0]}, which has a "
                f"{schedule} over time; write {_instead(text, name, given[name])}"
            )
    return fields


def _instead(text: str, name: str, value: Any) -> str:
    """What sets the rate or the RTT of a preset that has a schedule of it."""
    value = f"{value:g}" if isinstance(value, float) else value
    if name == "rtt_ms":
        return f"delay = '0:{value}'"
    others = [word for word in text.split() if not word.startswith("mean_mbps=")]
    return f"preset = '{' '.join(others)} mean_mbps={value}'"


def fields_of(text: Any) -> Fields:
    """The fields of a bottleneck that a text such as ``leo seed=2`` names; or ValueError."""
    name, *words = (text.split() if isinstance(text, str) else []) or [""]
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; known are {', '.join(PRESETS)}")
    given = settings(words, ("seed", "mean_mbps"), f"preset {name}", FORM)
    if name in CONSTANT and "seed" in given:
        raise ValueError(f"nothing is random in the preset {name}; leave out seed")
    if (seed := given.get("seed", 1)) < 0 or seed != int(seed):
        raise ValueError(f"preset {name} has seed={seed:g}; give a whole number from 0 on")
    if not LEAST_MBPS <= (mbps := given.get("mean_mbps", LEAST_MBPS)) <= MOST_MBPS:
        raise ValueError(
            f"preset {name} has mean_mbps={mbps:g}; give {LEAST_MBPS:g} to {MOST_MBPS:g}"
        )
    return PRESETS[name](**{**given, "seed": int(seed)} if name not in CONSTANT else given)
