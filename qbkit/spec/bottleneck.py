"""The link that flows share: its rate, delay, queue and loss."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from qbkit.spec.base import OptionValue, Spec
from qbkit.spec.loss import GilbertElliott

FRAME_BYTES = 1514
"""Largest Ethernet frame at an MTU of 1500 bytes, as the queue counts it (no FCS)."""

LossDirection = Literal["to_receivers", "to_senders", "both"]
Qdisc = Literal["fifo", "fq", "fq_codel", "codel", "cake", "pie", "red", "sfq"]

QDISC_OPTIONS: dict[str, frozenset[str]] = {
    "fifo": frozenset(),
    "fq": frozenset({"flow_limit", "quantum", "initial_quantum", "maxrate", "buckets"}),
    "fq_codel": frozenset({"flows", "target", "interval", "quantum", "ecn", "noecn"}),
    "codel": frozenset({"target", "interval", "ecn", "noecn"}),
    "cake": frozenset(
        {"besteffort", "diffserv4", "flowblind", "flows", "triple-isolate", "rtt", "ack-filter"}
    ),
    "pie": frozenset({"target", "tupdate", "alpha", "beta", "ecn", "noecn"}),
    "red": frozenset({"min", "max", "probability", "burst", "ecn", "adaptive", "harddrop"}),
    "sfq": frozenset({"quantum", "perturb", "divisor", "depth"}),
}
"""Queue discipline → the ``tc`` options that ``qdisc_options`` may set."""


class Bottleneck(Spec):
    """The shared link: rate, propagation delay, queue.

    Give at most one of ``buffer_bdp``, ``buffer_bytes`` and ``buffer_packets``. By default the
    buffer is one bandwidth-delay product.
    """

    rate_mbps: float = Field(default=20.0, ge=0.05, le=10_000.0)
    """Rate of the link in Mbit/s, counting Ethernet frames without FCS (as ``tc`` does)."""
    burst_packets: int = Field(default=1, ge=1, le=1000)
    """How many full frames may leave back to back after a pause: the depth of the token bucket that
    sets the rate. A link sends one frame at a time; a shaper in a testbed often sends more."""
    rtt_ms: float = Field(default=50.0, ge=0.1, le=10_000.0)
    """Base round-trip time in ms: propagation alone, half of it in either direction."""
    buffer_bdp: float | None = Field(default=None, gt=0, le=1000.0)
    """Size of the queue in multiples of ``rate_mbps * rtt_ms``."""
    buffer_bytes: int | None = Field(default=None, gt=0, le=2**30)
    """Size of the queue in bytes of Ethernet frames."""
    buffer_packets: int | None = Field(default=None, gt=0, le=700_000)
    """Size of the queue in packets of any size."""
    qdisc: Qdisc = "fifo"
    """Linux queue discipline that manages the buffer."""
    qdisc_options: dict[str, OptionValue] = Field(default_factory=dict)
    """Options of the discipline, as ``tc`` spells them (``{"target": "5ms"}``; a flag is True)."""
    loss_percent: float = Field(default=0.0, ge=0.0, lt=100.0)
    """Random loss after the queue, in percent of the packets, each on its own."""
    loss_model: Literal["random"] | GilbertElliott = "random"
    """``random``: the loss of ``loss_percent``. A `GilbertElliott`, or its text (``gemodel 1 30``),
    loses packets in bursts instead. Each flow meets a model of its own in each direction."""
    loss_direction: LossDirection = "to_receivers"
    """Where packets are lost: data on the way ``to_receivers``, ACKs on the way back
    ``to_senders``, or ``both``."""

    @field_validator("loss_model", mode="before")
    @classmethod
    def _known_loss(cls, model: Any) -> Any:
        if model == "random" or isinstance(model, GilbertElliott):
            return model
        if isinstance(model, dict):
            return GilbertElliott(**model)
        return GilbertElliott.from_text(str(model))

    @model_validator(mode="before")
    @classmethod
    def _one_buffer(cls, data: Any) -> Any:
        names = ("buffer_bdp", "buffer_bytes", "buffer_packets")
        if not isinstance(data, dict):
            return data
        given = [n for n in names if data.get(n) is not None]
        if len(given) > 1:
            raise ValueError(f"give the buffer once, not as {' and '.join(given)}")
        return data if given else {**data, "buffer_bdp": 1.0}

    @model_validator(mode="after")
    def _possible(self) -> Bottleneck:
        if self.buffer_packets is None and self.queue_bytes < FRAME_BYTES:
            raise ValueError(
                f"the buffer holds {self.queue_bytes} bytes, less than one packet of "
                f"{FRAME_BYTES} bytes; enlarge it"
            )
        unknown = set(self.qdisc_options) - QDISC_OPTIONS[self.qdisc]
        if unknown:
            allowed = ", ".join(sorted(QDISC_OPTIONS[self.qdisc])) or "none"
            raise ValueError(
                f"{self.qdisc} has no option {', '.join(sorted(unknown))}; allowed: {allowed}"
            )
        if self.loss_percent and self.loss_model != "random":
            raise ValueError(
                f"loss_percent {self.loss_percent:g} and the loss_model {self.loss_model} both set "
                "the loss; give one of them"
            )
        return self

    @property
    def mean_loss_percent(self) -> float:
        """Loss after the queue in the long run, in percent of the packets."""
        if self.loss_model == "random":
            return self.loss_percent
        return self.loss_model.mean_loss_percent

    @property
    def loses_data(self) -> bool:
        """Whether packets to the receivers are lost after the queue."""
        return self.mean_loss_percent > 0 and self.loss_direction != "to_senders"

    @property
    def loses_acks(self) -> bool:
        """Whether packets back to the senders are lost."""
        return self.mean_loss_percent > 0 and self.loss_direction != "to_receivers"

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product of the link in bytes."""
        return self.rate_mbps * 1e6 / 8 * self.rtt_ms / 1e3

    @property
    def queue_bytes(self) -> int:
        """Size of the queue in bytes; a size given in packets counts full frames."""
        if self.buffer_packets is not None:
            return self.buffer_packets * FRAME_BYTES
        if self.buffer_bytes is not None:
            return self.buffer_bytes
        assert self.buffer_bdp is not None
        return round(self.buffer_bdp * self.bdp_bytes)

    @property
    def queue_packets(self) -> int:
        """Size of the queue in packets; a size given in bytes is divided into full frames."""
        return self.buffer_packets or max(1, self.queue_bytes // FRAME_BYTES)
