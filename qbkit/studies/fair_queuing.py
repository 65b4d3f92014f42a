"""Does a bottleneck have fair queuing? Two flows of one sender detect it during their start-up.

The method is that of Bachl, Fabini and Zseby, "Detecting Fair Queuing for Better Congestion
Control"; `qbkit.cca.fair_queuing` implements the algorithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import xarray as xr

from qbkit.cca.fair_queuing import LOSSY_ROUNDS
from qbkit.errors import SpecError
from qbkit.execution.runner import run
from qbkit.metrics.flows.lookup import flow_index, last_sample
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.flow import as_flow
from qbkit.traces.run.attributes import require_run

DETECTOR = "qbkit:fq-detect"
HEAD_START_S = 5.0
"""Time by which the competitor starts earlier (section VI-C)."""
PROBE_S = 6.0
"""Time for the verdict; a queue that takes seconds to fill leaves too little."""


@dataclass(frozen=True, repr=False)
class FairQueuing:
    """Verdict of the detector, its measurements, and the run."""

    is_fair: bool | None
    """Whether there is fair queuing; None without a verdict before the run ended."""
    loss_ratio: float
    """Fraction of flow 1 received over that of flow 2: 2 with fair queuing, 1 without."""
    round_loss_ratios: tuple[float, ...]
    """The same in each of the three round trips in which both lost packets; the third decides."""
    sent_packets: tuple[float, float]
    """Packets that each flow sent in the decisive round trip; NaN without a verdict."""
    lost_packets: tuple[float, float]
    """Packets that each flow lost in that round trip; NaN without a verdict."""
    probe_ms: float
    """Time from the first data packet to the verdict."""
    run: xr.Dataset

    def __repr__(self) -> str:
        if self.is_fair is None:
            return (
                f"FairQueuing(no verdict: the run ended before both flows had lost packets in "
                f"{LOSSY_ROUNDS} round trips)"
            )
        lost = " and ".join(
            f"{lost:.0f} of {sent:.0f}"
            for lost, sent in zip(self.lost_packets, self.sent_packets, strict=True)
        )
        queue = "fair queuing" if self.is_fair else "no fair queuing"
        return (
            f"FairQueuing({queue}: loss ratio {self.loss_ratio:.2f}, lost {lost} packets, "
            f"after {self.probe_ms:.0f} ms)"
        )


def detect_fair_queuing(
    bottleneck: Bottleneck | None = None,
    *,
    competitor: str | Flow | None = None,
    is_randomised: bool = True,
    seed: int = 1,
    engine: str | None = None,
) -> FairQueuing:
    """Detect whether the bottleneck has fair queuing, with two flows in their start-up.

    They have 6 s; where a queue of seconds, or a link of a few packets each second, takes longer,
    there is no verdict. A ``competitor`` starts 5 s earlier, as in the paper.
    ``is_randomised=False`` paces both flows at regular intervals, which without fair queuing takes
    all from one of them. A stored run is loaded. Raises what `qbkit.run` raises.
    """
    experiment = detection_experiment(
        bottleneck or Bottleneck(), competitor=competitor, is_randomised=is_randomised, seed=seed
    )
    return fair_queuing_of(run(experiment, engine=engine))


def detection_experiment(
    bottleneck: Bottleneck,
    *,
    competitor: str | Flow | None = None,
    is_randomised: bool = True,
    seed: int = 1,
) -> Experiment:
    """The experiment that `detect_fair_queuing` runs; the detector is the first flow."""
    start_s = 0.0 if competitor is None else HEAD_START_S
    options = {"only_detect": True, "randomised": is_randomised}
    detector = Flow(DETECTOR, start_s=start_s, options=options)
    return Experiment(
        bottleneck=bottleneck,
        flows=(detector, *([] if competitor is None else [as_flow(competitor)])),
        duration_s=start_s + PROBE_S,
        seed=seed,
        start_window_s=0.0,
    )


def fair_queuing_of(ds: xr.Dataset, *, flow: int = 0) -> FairQueuing:
    """The verdict of a run whose given flow is the detector.

    Raises SpecError if it is not, MetricError for an unknown flow.
    """
    require_run(ds)
    flow = flow_index(ds, flow)
    if str(ds["controller"].values[flow]) != DETECTOR.partition(":")[2]:
        raise SpecError(f"flow {flow} is {ds['label'].values[flow]}; it must be {DETECTOR}")
    names = ("loss_ratio", "fair_queuing", "probe_ms")
    value = {name: last_sample(ds, name, flow) for name in names}
    rounds = tuple(
        last_sample(ds, f"round_{number}_loss_ratio", flow) for number in range(1, LOSSY_ROUNDS + 1)
    )
    sent, lost = (
        (
            last_sample(ds, f"flow_1_{what}_packets", flow),
            last_sample(ds, f"flow_2_{what}_packets", flow),
        )
        for what in ("sent", "lost")
    )
    is_fair = None if math.isnan(value["fair_queuing"]) else bool(value["fair_queuing"])
    return FairQueuing(is_fair, value["loss_ratio"], rounds, sent, lost, value["probe_ms"], ds)
