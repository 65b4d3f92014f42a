"""How a sender behaves where no parameter of its source shows: rules, and what each explains.

A parameter (`qbkit.metrics.parameters.estimates`) is a number in a sender's source. A behaviour is
what that source does to packets: the window of a model that is out of date, a drain that never
ends. It is measured in units of the path (`qbkit.metrics.parameters.model`), so that a sender
behaves the same on another link. ``apart`` is the least difference that counts, more than the
spread between seeds of unchanged senders (``benchmarks/causes.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

STEEP = 2.0
"""Packets per RTT from which on growth between close losses is seen: twice Reno's."""
FEW_ROUNDS = 6.0
"""A filter that forgets within fewer rounds than a cycle of probes follows each of its phases."""
BOTH_STAY = "its window stays at {0} packets though nothing is lost, the reference's at {1}"
Size = Callable[[float, float], float]
STEADY, START, FALL, BURST, PAUSE, OUTAGE, MARK = (
    "while its path does not change",
    "in its startup",
    "when its path becomes slower",
    "after a burst of losses",
    "after a pause of its application",
    "after an outage",
    "after a CE mark",
)
"""When a behaviour shows."""


def _ratio(weight: float) -> Size:
    """``weight`` times the ln of the ratio of test and reference."""
    return lambda test, reference: weight * math.log(max(test, 1e-3) / max(reference, 1e-3))


def _step(weight: float) -> Size:
    """``weight`` times the difference."""
    return lambda test, reference: weight * (test - reference)


@dataclass(frozen=True)
class Rule:
    """What one behaviour is, and when it counts."""

    unit: str
    meaning: str
    clause: str
    """Of a sentence about the test: {0} is its value, {1} the reference's."""
    effect: Size
    """ln of the throughput that it gains or costs, by a rule of thumb."""
    apart: float
    """Least difference that counts, in the ln of the ratio, or as it is if ``is_part``."""
    is_part: bool = False
    only_below: float = math.inf
    """It is a difference only where the smaller value is below this."""
    alone: bool = False
    """Whether it is a difference that only one side does so at all."""
    missing: str = ""
    """The clause if only the reference does."""
    if_more: str = ""
    """The clause where both values are known and the test's is greater; it may then say why."""
    if_less: str = ""
    """The same where the test's is smaller."""
    seen_from: float = 0.0
    """Least value that is seen; one side alone must be half of ``apart`` above it."""
    explains_below: float = math.inf
    """It explains others only where the smaller value is below this."""
    moment: str = STEADY
    """When it shows."""
    least: float = 0.03
    """Its least score: a rule that is broken matters, even if no thumb knows by how much."""


RULES: dict[str, Rule] = {
    "bandwidth_filter": Rule(
        "",
        "whether the old rate of a path that became slower is forgotten",
        "its bandwidth filter {0}",
        _step(0.0),
        0.0,
        least=0.5,
        moment=FALL,
    ),
    "bandwidth_memory_rounds": Rule(
        "rounds",
        "rounds until the old rate is forgotten",
        "its bandwidth filter forgets after {0} rounds, not {1}",
        _ratio(0.2),
        0.7,
        explains_below=FEW_ROUNDS,
        moment=FALL,
    ),
    "window_gain": Rule(
        "BDP",
        "window of a model that is out of date",
        "its window is {0} times its BDP, not {1}",
        _ratio(1.0),
        0.12,
        moment=FALL,
    ),
    "ack_room": Rule(
        "1",
        "part of an ACK's packets for which the window has room beyond twice the BDP",
        "its window has room for {0} of the packets of an aggregated ACK, not for {1}",
        _step(0.3),
        0.15,
        is_part=True,
        moment=FALL,
    ),
    "standing_queue_bdp": Rule(
        "BDP",
        "queue that no drain empties, or that cruising fills again at once",
        "it keeps a queue of {0} BDP, not {1}",
        _step(0.3),
        0.3,
        is_part=True,
        if_more="it paces above the delivery rate and keeps a queue of {0} BDP, not {1}",
    ),
    "cruise_part": Rule(
        "1",
        "what is in flight while cruising over what is while probing",
        "it cruises at {0} of what its probes have in flight, not {1}",
        _ratio(1.0),
        0.15,
    ),
    "probe_rate": Rule(
        "1",
        "sending rate over the link's while probing for bandwidth",
        "it probes at {0} times the link's rate, not {1}",
        _ratio(0.5),
        0.06,
    ),
    "drain_rate": Rule(
        "1",
        "the same ratio while draining after the probe",
        "it drains a probe at {0} of the link's rate, not {1}",
        _ratio(0.1),
        0.12,
    ),
    "paced_part": Rule(
        "1",
        "factor that the sending rates of all phases have in common, over BBR's",
        "it paces at {0} of what its phases should, not {1}",
        _ratio(1.0),
        0.05,
    ),
    "probes_reach_bdp": Rule(
        "BDP",
        "most in flight while probing for bandwidth",
        "its probes reach {0} BDP, not {1}",
        _ratio(1.0),
        0.1,
        if_less="it paces below the delivery rate: its probes reach {0} BDP, not {1}",
        only_below=1.2,
    ),
    "left_in_flight_bdp": Rule(
        "BDP",
        "what is in flight when the old rate has been forgotten",
        "its drain leaves {0} BDP in flight, not {1}",
        _ratio(0.9),
        0.35,
        moment=FALL,
    ),
    "kept_after_burst": Rule(
        "1",
        "part of what is in flight that a burst of losses leaves",
        "a burst of losses leaves {0} of what it has in flight, not {1}",
        _ratio(0.5),
        0.25,  # until its next probe, a BBR misses the fifth of a round trip that was lost
        moment=BURST,
    ),
    "startup_peak_bdp": Rule(
        "BDP",
        "most in flight in startup",
        "its startup has up to {0} BDP in flight, not {1}",
        _ratio(0.02),
        0.15,
        moment=START,
    ),
    "startup_reach_rtts": Rule(
        "RTT",
        "how long startup takes to fill the path",
        "its startup fills the path after {0} RTTs, not {1}",
        _ratio(-0.02),
        0.15,
        moment=START,
    ),
    "startup_hold_rtts": Rule(
        "RTT",
        "how long startup goes on at its peak",
        "its startup goes on for {0} RTTs at its peak, not {1}",
        _ratio(-0.02),
        0.25,
        moment=START,
    ),
    "startup_drain_gain": Rule(
        "1",
        "sending rate over delivery rate in the drain after startup",
        "it drains startup's queue at {0} of the delivery rate, not {1}",
        _ratio(0.02),
        0.15,
        moment=START,
    ),
    "probe_rtt": Rule(
        "",
        "whether it is seen to probe for the RTT",
        "it {0} probes for the RTT",
        _step(0.0),
        0.0,
    ),
    "probe_rtt_every_s": Rule(
        "s",
        "time per ProbeRTT",
        "it probes for the RTT every {0} s, not {1}",
        _ratio(0.05),
        0.5,
    ),
    "probe_rtt_bdp": Rule(
        "BDP",
        "what is in flight in ProbeRTT",
        "its ProbeRTT keeps {0} BDP in flight, not {1}",
        _ratio(0.03),
        0.6,
    ),
    "back_to_back_packets": Rule(
        "packets",
        "packets that leave together",
        "its packets leave {0} at a time, not {1}",
        _ratio(-0.1),
        0.9,
    ),
    "steep_increase_packets_per_rtt": Rule(
        "packets/RTT",
        "growth between losses that are a few RTTs apart",
        "it adds {0} packets per RTT between losses, not {1}",
        _ratio(0.5),
        0.5,
        alone=True,
        missing="it does not add {1} packets per RTT between losses",
        seen_from=STEEP,
        least=0.5,
    ),
    "rounds_of_loss": Rule(
        "RTT",
        "round trips with losses before a reduction ends them",
        "its losses go on for {0} RTTs, not {1}",
        _ratio(0.2),
        1.4,
        if_more="its losses do not reduce its window: they go on for {0} RTTs, not {1}",
    ),
    "back_at_loss_part": Rule(
        "1",
        "when the window is back where the loss was, over CUBIC's K",
        "its window is back where the loss was after {0} of K, not {1}",
        _ratio(-0.25),
        0.6,
    ),
    "kept_two_rtts": Rule(
        "1",
        "fraction of the window that is there two round trips after a loss",
        "two round trips after a loss it has {0} of its window, not {1}",
        _ratio(0.5),
        0.1,
    ),
    "window_cap_packets": Rule(
        "packets",
        "window that stays constant though nothing is lost",
        "its window stays at {0} packets though nothing is lost",
        _ratio(1.0),
        0.1,
        alone=True,
        missing="the reference's window stays at {1} packets though nothing is lost, and its own "
        "does not",
        if_more=BOTH_STAY,
        if_less=BOTH_STAY,
        least=0.5,
    ),
    "receiver_wait_ms": Rule(
        "ms",
        "how long the first packet of an ACK waits for it",
        "its receiver acknowledges after {0} ms, not {1}",
        _ratio(0.2),
        0.35,
    ),
    "congestion_signal": Rule(
        "",
        "what the queue does with its packets instead of letting it grow",
        "the queue {0} its packets, and {1} the reference's",
        _step(0.0),
        0.0,
        least=0.5,
        moment=MARK,
    ),
    "kept_after_mark": Rule(
        "1",
        "fraction of the window left after a CE mark",
        "a CE mark leaves {0} of its window, not {1}",
        _ratio(0.5),
        0.08,
        is_part=True,
        moment=MARK,
    ),
    "rate_after_pause": Rule(
        "1",
        "sending rate over the link's in the first round after a pause",
        "after a pause it sends at {0} of the link's rate, not {1}",
        _ratio(0.5),
        0.25,
        if_less="it takes its application for the path: after a pause it sends at {0} of the "
        "link's rate, not {1}",
        only_below=0.9,
        moment=PAUSE,
    ),
    "kept_after_pause": Rule(
        "1",
        "what leaves in the first round after a pause over what was in flight before",
        "a pause of its application leaves {0} of its window, not {1}",
        _ratio(0.05),
        0.2,
        is_part=True,
        moment=PAUSE,
    ),
    "kept_after_outage": Rule(
        "1",
        "what leaves in the first round after an outage over what was in flight before",
        "an outage leaves {0} of its window, not {1}",
        _ratio(0.05),
        0.1,
        is_part=True,
        moment=OUTAGE,
    ),
}
"""By name, those that explain most first."""
