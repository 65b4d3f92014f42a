"""The link that flows share: its rate, delay, queue and loss."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from qbkit.spec import dualpi2, presets, queue_options
from qbkit.spec.base import OptionValue, Spec
from qbkit.spec.loss import LossModel, read_loss
from qbkit.spec.over_time import Capacity, Delays, Outages, parsed_by

FRAME_BYTES = 1514
"""Largest Ethernet frame at an MTU of 1500 bytes, as the queue counts it (no FCS)."""

LossDirection = Literal["to_receivers", "to_senders", "both"]
Qdisc = Literal["fifo", "fq", "fq_codel", "codel", "cake", "pie", "red", "sfq", "fq_pie", "dualpi2"]

BUFFERS = ("buffer_bdp", "buffer_bytes", "buffer_packets")
"""Fields that set the buffer."""
LOSSES = {"loss_percent", "loss_model"}
"""Fields that set the loss."""
NEEDED = {"return_buffer_packets": "return_rate_mbps", "policer_burst_bytes": "policer_mbps"}
"""Field → the one without which it changes nothing."""


def require_loss(direction: str, given: Collection[str]) -> None:
    """Raise ValueError for a direction of losses where no field that sets them is given.

    A loss of 0 is fine, as one of several values; and the JSON of a stored experiment always has a
    ``loss_percent``.
    """
    if direction != "to_receivers" and LOSSES.isdisjoint(given):
        raise ValueError(
            f"loss_direction {direction} without a loss loses nothing; give loss_percent or "
            "loss_model"
        )


Percent = Annotated[float, Field(ge=0.0, lt=100.0)]


class Bottleneck(Spec):
    """The shared link: rate, propagation delay, queue, and what happens on the path behind it.

    Give at most one of ``buffer_bdp``, ``buffer_bytes`` and ``buffer_packets``. By default the
    buffer is one bandwidth-delay product. ``preset="leo seed=2"`` fills in the fields of a kind of
    network (`qbkit.spec.presets`); those given beside it win. ``rate_mbps`` is refused beside a
    preset that has a ``capacity``, and ``rtt_ms`` beside one that has a ``delay``.
    """

    rate_mbps: float = Field(default=20.0, ge=0.05, le=10_000.0)
    """Rate of the link in Mbit/s, counting Ethernet frames without FCS (as ``tc`` does)."""
    burst_packets: int = Field(default=1, ge=1, le=1000)
    """How many full frames may leave back to back after a pause: the depth of the token bucket that
    sets the rate. A link sends one frame at a time; a shaper in a testbed often sends more. A link
    whose rate changes has no bucket."""
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
    loss_model: Annotated[LossModel, BeforeValidator(read_loss)] = "random"
    """``random``: the loss of ``loss_percent``. A `GilbertElliott`, or its text (``gemodel 1 30``),
    loses packets in bursts instead. Each flow meets a model of its own in each direction.
    `TimedBursts`, or ``bursts gap_s=2 length_s=0.1``, are bursts that last a time."""
    loss_direction: LossDirection = "to_receivers"
    """Where packets are lost: data on the way ``to_receivers``, ACKs on the way back
    ``to_senders``, or ``both``. It needs ``loss_percent``, which may be 0, or ``loss_model``."""
    capacity: Annotated[Capacity | None, BeforeValidator(parsed_by(Capacity))] = None
    """Rate of the link over time, in place of ``rate_mbps``, which then only sizes the buffer."""
    delay: Annotated[Delays | None, BeforeValidator(parsed_by(Delays))] = None
    """Base RTT over time, in place of ``rtt_ms``, which then only sizes the buffer."""
    outages: Annotated[Outages | None, BeforeValidator(parsed_by(Outages))] = None
    """Times at which nothing passes the link to the receivers."""
    reorder_percent: Percent = 0.0
    """Packets to the receivers that others overtake, in percent: they arrive ``reorder_ms`` late,
    each on its own."""
    reorder_ms: float | None = Field(default=None, gt=0.0, le=10_000.0)
    """How late they arrive, in ms; by default a quarter of ``rtt_ms``."""
    reorder_min_bytes: int | None = Field(default=None, ge=1, le=1500)
    """Smallest IP packet in bytes that others may overtake; by default packets of any size."""
    duplicate_percent: Percent = 0.0
    """Packets to the receivers that arrive twice, in percent, each on its own."""
    corrupt_percent: Percent = 0.0
    """Packets to the receivers in which one bit is wrong, in percent, each on its own."""
    hold_data_ms: float = Field(default=0.0, ge=0.0, le=1000.0)
    """Frames to the receivers wait for so many ms from the first one on, and are released together,
    as radio links do."""
    hold_acks_ms: float = Field(default=0.0, ge=0.0, le=1000.0)
    """The same for packets back to the senders."""
    return_rate_mbps: float | None = Field(default=None, ge=0.05, le=10_000.0)
    """Rate of the link back to the senders in Mbit/s, also for the data of reverse flows; by
    default ACKs meet no queue."""
    return_buffer_packets: int = Field(default=100, ge=1, le=700_000)
    """Size of its queue in packets."""
    return_qdisc: Qdisc = "fifo"
    """Its queue discipline; ``cake`` with ``ack-filter`` thins ACKs out."""
    return_qdisc_options: dict[str, OptionValue] = Field(default_factory=dict)
    """Options of that discipline."""
    policer_mbps: float | None = Field(default=None, ge=0.05, le=10_000.0)
    """Rate in Mbit/s above which a policer in front of the queue drops, without a queue."""
    policer_burst_bytes: int = Field(default=100_000, ge=FRAME_BYTES, le=2**30)
    """Depth of the policer's token bucket in bytes."""
    mtu_bytes: int = Field(default=1500, ge=1280, le=1500)
    """Largest IP packet that the link carries, both ways; hosts believe in 1500."""
    mtu_icmp: bool = True
    """Whether routers report a packet that is too big, by ICMP; otherwise it is lost in silence."""
    bleach_ecn: bool = False
    """Whether the path clears ECN: every packet to the receivers leaves as Not-ECT."""

    @model_validator(mode="before")
    @classmethod
    def _one_buffer(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = [n for n in BUFFERS if data.get(n) is not None]
        if len(given) > 1:
            raise ValueError(f"give the buffer once, not as {' and '.join(given)}")
        return data if given else {**data, "buffer_bdp": 1.0}

    @model_validator(mode="before")  # before the last: pydantic begins with this one
    @classmethod
    def _of_preset(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "preset" not in data:
            return data
        given = {name: value for name, value in data.items() if name != "preset"}
        fields = presets.fields_beside(data["preset"], given)
        if any(given.get(name) is not None for name in BUFFERS):
            fields.pop("buffer_bdp", None)
        return {**fields, **given}

    @model_validator(mode="after")
    def _possible(self) -> Bottleneck:
        if self.buffer_packets is None and self.queue_bytes < FRAME_BYTES:
            raise ValueError(
                f"the buffer holds {self.queue_bytes} bytes, less than one packet of "
                f"{FRAME_BYTES} bytes; enlarge it"
            )
        queue_options.require(self.qdisc, self.qdisc_options)
        _ = self.dualpi2_attributes  # which raises for a bad option
        if self.qdisc == "red":
            queue_options.red_thresholds(self.queue_bytes, self.qdisc_options)
        if self.loss_percent and self.loss_model != "random":
            raise ValueError(
                f"loss_percent {self.loss_percent:g} and the loss_model {self.loss_model} both set "
                "the loss; give one of them"
            )
        require_loss(self.loss_direction, self.model_fields_set)
        if self.reorder_ms is not None and not self.reorder_percent:
            raise ValueError("reorder_ms without reorder_percent reorders nothing; give both")
        if self.reorder_min_bytes is not None:
            self._require_reordering_by_size()
        if self.capacity and self.capacity.opportunities_ms and self.outages:
            raise ValueError("outages need a capacity in steps; a trace of mahimahi has its own")
        for name, needed in NEEDED.items():
            default = type(self).model_fields[name].default
            if getattr(self, needed) is None and getattr(self, name) != default:
                raise ValueError(f"{name} needs {needed}; give both")
        if not self.mtu_icmp and self.mtu_bytes == 1500:
            raise ValueError("mtu_icmp=False needs mtu_bytes below 1500; give both")
        if self.return_rate_mbps is None and (
            self.return_qdisc != "fifo" or self.return_qdisc_options
        ):
            raise ValueError("a queue on the way back needs return_rate_mbps")
        back = self.return_link  # which raises for what it cannot be
        if back and self.dualpi2_attributes and back.dualpi2_attributes:
            self._require_one_dualpi2(back)
        return self

    def _require_reordering_by_size(self) -> None:
        """Raise ValueError for what cannot be with packets that take different ways."""
        if not self.reorder_percent:
            raise ValueError("reorder_min_bytes without reorder_percent reorders nothing")
        others = {
            "loss_model": self.loss_model != "random",
            "duplicate_percent": self.duplicate_percent,
            "hold_data_ms": self.hold_data_ms,
        }
        if names := [name for name, given in others.items() if given]:
            raise ValueError(f"reorder_min_bytes cannot be with {names[0]}; leave one of them out")

    def _require_one_dualpi2(self, back: Bottleneck) -> None:
        """Raise ValueError for a dualpi2 on the way back that is not that of the way there."""
        if self.dualpi2_attributes != back.dualpi2_attributes:
            raise ValueError(
                f"dualpi2 both ways has one buffer ({self.queue_packets} and {back.queue_packets} "
                "packets here) and the same options; give return_buffer_packets and "
                "return_qdisc_options as on the way there, or another return_qdisc"
            )

    @property
    def dualpi2_attributes(self) -> list[tuple[int, int, int]]:
        """What sets the queue if it is a dualpi2; empty for others."""
        if self.qdisc != "dualpi2":
            return []
        return dualpi2.attributes(self.queue_packets, self.qdisc_options)

    @property
    def return_link(self) -> Bottleneck | None:
        """The link back to the senders, if it has a rate of its own."""
        if self.return_rate_mbps is None:
            return None
        return Bottleneck(
            rate_mbps=self.return_rate_mbps,
            rtt_ms=self.rtt_ms,
            buffer_packets=self.return_buffer_packets,
            qdisc=self.return_qdisc,
            qdisc_options=self.return_qdisc_options,
        )

    @property
    def changes_rate(self) -> bool:
        """Whether its rate is not the same at all times."""
        return bool(self.capacity or self.outages)

    @property
    def changes(self) -> bool:
        """Whether it needs what only the kernel for networks that change has."""
        return self.changes_rate or self.policer_mbps is not None or self.bleach_ecn

    @property
    def holds_data(self) -> bool:
        """Whether packets to the receivers may be late behind the queue."""
        return self.late_ms > 0 or self.hold_data_ms > 0

    @property
    def touches_acks(self) -> bool:
        """Whether packets back to the senders may be lost or late."""
        return self.loses_acks or self.hold_acks_ms > 0

    @property
    def adds_packets(self) -> bool:
        """Whether packets may arrive that were not sent so: duplicates and corrupted ones."""
        return self.duplicate_percent > 0 or self.corrupt_percent > 0

    @property
    def most_rate_mbps(self) -> float:
        """The highest rate at any time."""
        return max(self.rate_mbps, self.capacity.most_mbps if self.capacity else 0.0)

    @property
    def most_rtt_ms(self) -> float:
        """The longest base RTT at any time, with what packets may be late."""
        steps_ms = self.delay.values if self.delay else []
        return (
            max(self.rtt_ms, *steps_ms, 0.0) + self.late_ms + self.hold_data_ms + self.hold_acks_ms
        )

    @property
    def late_ms(self) -> float:
        """How late a reordered packet arrives; 0 where none is reordered."""
        if not self.reorder_percent:
            return 0.0
        return self.reorder_ms if self.reorder_ms is not None else self.rtt_ms / 4

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
