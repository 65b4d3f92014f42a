"""Fair-queuing detection: a start-up of two flows, then the controller that suits the queue.

Bachl, Fabini and Zseby, "Detecting Fair Queuing for Better Congestion Control". The flow is the
first of `qbkit.cca.fair_queuing`; the driver sends the second, its companion, beside it.
"""

from __future__ import annotations

from typing import ClassVar

from ..controller import Controller, Settings
from ..fair_queuing import FairQueuingProbe, ProbingFlow
from ..options import Option, switch
from .delay import Delay
from .pcc_allegro import PccAllegro


class FqDetect(ProbingFlow):
    """Probes; after the verdict it is the simple delay-based controller, or PCC Allegro."""

    options: ClassVar[dict[str, Option]] = {
        "randomised": switch("false: the two flows pace at regular intervals", True),
        "only_detect": switch("true: stop sending when the verdict is there", False),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, FairQueuingProbe(), 0, is_randomised=True)
        self._settings = settings
        self._is_randomised = self.option["randomised"]
        self._start_s: float | None = None
        self.log(state="connecting")

    def companion(self) -> ProbingFlow:
        """Flow 2."""
        settings = Settings(self.packet_bytes)
        return ProbingFlow(settings, self.probe, 1, is_randomised=self._is_randomised)

    def start(self, now_s: float) -> None:
        """Both are connected."""
        self._start_s = now_s
        self.probe.start(self.smoothed_rtt_s, self.window_bytes)
        self.log(state="probing")

    def successor(self, companion: ProbingFlow) -> Controller:
        """What goes on after the verdict, at the rate that both flows together received."""
        assert self.probe.verdict
        kind = Delay if self.probe.verdict.is_fair else PccAllegro
        chosen = kind(Settings(self.packet_bytes))
        rate = self.delivery_rate_bytes_per_s + companion.delivery_rate_bytes_per_s
        chosen.start_at(rate, self.smoothed_rtt_s, self.min_rtt_s)
        chosen.logged.update(self.logged)
        return chosen

    def log_verdict(self, now_s: float) -> None:
        """Record it."""
        verdict, start_s = self.probe.verdict, self._start_s
        assert verdict and start_s is not None
        values = {"loss_ratio": verdict.loss_ratio, "fair_queuing": float(verdict.is_fair)}
        for number, ratio in enumerate(verdict.loss_ratios, 1):
            values[f"round_{number}_loss_ratio"] = ratio
        for number in (1, 2):
            values[f"flow_{number}_sent_packets"] = verdict.sent_packets[number - 1]
            values[f"flow_{number}_lost_packets"] = verdict.lost_packets[number - 1]
        self.log(state="decided", probe_ms=1e3 * (now_s - start_s), **values)
