"""A case of ``benchmarks/causes.py``, and the names under which changes may be found."""

from __future__ import annotations

from dataclasses import dataclass

from qbkit.spec import Bottleneck

LINK = Bottleneck(rate_mbps=10, rtt_ms=50, buffer_bdp=1)

STARTUP_GAIN = ("start_growth", "startup_peak_bdp", "startup_reach_rtts", "pacing_gain")
UP = ("probe_up_gain", "probe_rate", "probes_reach_bdp")
DOWN = ("probe_down_gain", "drain_rate")
MEMORY = ("bandwidth_memory_rounds", "bandwidth_filter")
SLOW = ("paced_part", "probes_reach_bdp")
FAST = ("standing_queue_bdp",)
NEVER = ("rounds_of_loss",)
CAP = ("window_cap_packets",)
BATCHES = ("back_to_back_packets",)
STEEP = ("steep_increase_packets_per_rtt", "increase_packets_per_rtt")
EXIT = ("slow_start_exit",)
AFTER_PAUSE, AFTER_OUTAGE = ("kept_after_pause",), ("kept_after_outage",)


@dataclass(frozen=True)
class Case:
    """A changed sender, its reference, and the names under which the change may be found."""

    kind: str
    flow: str
    reference: str
    truth: tuple[str, ...] = ()
    """None for an unchanged sender."""
    link: Bottleneck = LINK

    @property
    def of_stack(self) -> bool:
        """Whether it is no Python, whose runs take the longest."""
        return not self.flow.startswith("qbkit")


def of(
    kind: str, reference: str, changes: dict[str, tuple[str, ...]], link: Bottleneck = LINK
) -> list[Case]:
    """A case for each change of a reference's options."""
    mark = "&" if "?" in reference else "?"
    return [
        Case(kind, f"{reference}{mark}{words}", reference, truth, link)
        for words, truth in changes.items()
    ]
