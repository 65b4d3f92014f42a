"""What to run: an experiment, and sweeps over the fields of one."""

from qbkit.spec.bottleneck import FRAME_BYTES, Bottleneck, LossDirection, Qdisc
from qbkit.spec.experiment import Experiment
from qbkit.spec.flow import Flow
from qbkit.spec.loss import GilbertElliott, TimedBursts
from qbkit.spec.queue_options import QDISC_OPTIONS

__all__ = [
    "FRAME_BYTES",
    "QDISC_OPTIONS",
    "Bottleneck",
    "Experiment",
    "Flow",
    "GilbertElliott",
    "LossDirection",
    "Qdisc",
    "TimedBursts",
]
