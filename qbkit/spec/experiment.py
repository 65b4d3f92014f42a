"""What to run: a bottleneck, the flows that share it, and for how long.

The three classes are frozen, validated (pydantic), and round-trip through JSON. The content hash of
an experiment names its run, so the name depends on the specification and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator, model_validator

from qbkit import above
from qbkit.errors import SpecError
from qbkit.json_words import object_of
from qbkit.spec.base import Spec
from qbkit.spec.flow import Flow
from qbkit.spec.loss import GilbertElliott
from qbkit.spec.spec_file import of_file, read_fields

if TYPE_CHECKING:
    import xarray as xr

FRAME_BYTES = 1514
"""Largest Ethernet frame at an MTU of 1500 bytes, as the queue counts it (no FCS)."""
START_WINDOW_RTTS = 10
"""Default width of the window in which flows start: longer than slow start needs to fill a link."""

MOST_PATH_BYTES = 2**30
"""Most bytes that path and queues may hold: TCP's largest receive window (RFC 7323, 2.3)."""

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
    qdisc_options: dict[str, str | int | float | bool] = Field(default_factory=dict)
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


class Experiment(Spec):
    """Flows over one bottleneck, for a time, with a seed: everything a run depends on."""

    bottleneck: Bottleneck = Field(default_factory=Bottleneck)
    """The link that the flows share."""
    flows: tuple[Flow, ...] = Field(min_length=1, max_length=200)
    """The flows; a text such as ``tcp:cubic`` stands for a `Flow`."""
    duration_s: float = Field(default=60.0, ge=0.1, le=86_400.0)
    """Length of the experiment in (virtual) seconds."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """Seed of all randomness of a virtual run."""
    jitter_ms: float | None = Field(default=None, ge=0.0, le=1000.0)
    """Half-width in ms of the seeded uniform jitter of each sender; see `sender_jitter_ms`."""
    start_window_s: float | None = Field(default=None, ge=0.0, le=86_400.0)
    """Width in s of the window after ``start_s`` in which each flow starts at a random time; 0
    starts it exactly at ``start_s``. See `effective_start_window_s`."""
    topology: Literal["dumbbell", "parking_lot"] = "dumbbell"
    """``dumbbell``: all flows share one queue. ``parking_lot``: the first flow crosses two such
    links in a row; the others alternate between the first link and the second."""

    @model_validator(mode="after")
    def _possible(self) -> Experiment:
        for flow in self.flows:
            if flow.start_s >= self.duration_s:
                raise ValueError(
                    f"{flow.name} starts at {flow.start_s:g} s, after the experiment's end at "
                    f"{self.duration_s:g} s"
                )
            if flow.stop_s is not None and flow.stop_s > self.duration_s:
                raise ValueError(
                    f"{flow.name} stops at {flow.stop_s:g} s, after the experiment's end at "
                    f"{self.duration_s:g} s"
                )
        if (self.jitter_ms or 0) > self.bottleneck.rtt_ms / 2:
            raise ValueError(
                f"jitter_ms {self.jitter_ms:g} is more than the one-way delay of "
                f"{self.bottleneck.rtt_ms / 2:g} ms"
            )
        if (self.start_window_s or 0) >= self._shortest_s:
            raise ValueError(
                f"start_window_s {self.start_window_s:g} leaves no time for the flow that lasts "
                f"{self._shortest_s:g} s; make the window shorter than that"
            )
        if self.topology == "parking_lot" and len(self.flows) < 3:
            raise ValueError("a parking_lot needs at least 3 flows: one across, one on each link")
        if self.most_path_bytes > MOST_PATH_BYTES:
            raise ValueError(
                f"path and queue hold {self.most_path_bytes / 2**20:.0f} MiB; the most is "
                f"{MOST_PATH_BYTES // 2**20} MiB, so lower rate_mbps, rtt_ms or the buffer"
            )
        return self

    @property
    def sender_jitter_ms(self) -> float:
        """Half-width in ms of the uniform jitter of each sender; it never reorders packets.

        By default the delays spread over the time that one frame occupies the bottleneck. This
        removes the phase effects of drop-tail queues (Floyd and Jacobson, "On Traffic Phase Effects
        in Packet-Switched Gateways", 1991), which an exact clock causes and real testbeds blur.
        """
        if self.jitter_ms is not None:
            return self.jitter_ms
        frame_ms = FRAME_BYTES * 8 / (self.bottleneck.rate_mbps * 1e3)
        return min(frame_ms / 2, self.bottleneck.rtt_ms / 4)

    def path_bytes(self, index: int) -> int:
        """Bytes that the path and the queues of a flow (given by index) hold when they are full.

        With reverse traffic the queues on the way back count as well: while ACKs wait there, the
        sender may fill the path once more.
        """
        link, flow = self.bottleneck, self.flows[index]
        queues = 2 if self.topology == "parking_lot" and index == 0 else 1
        queues *= 2 if self.has_reverse_traffic else 1
        travelling = link.rate_mbps * 125 * (link.rtt_ms + flow.extra_rtt_ms)
        return round(travelling) + queues * link.queue_bytes

    @property
    def most_path_bytes(self) -> int:
        """`path_bytes` of the flow whose path and queues hold most."""
        return max(self.path_bytes(index) for index in range(len(self.flows)))

    @property
    def has_reverse_traffic(self) -> bool:
        """Whether any flow is a reverse one.

        With reverse traffic, each link is a bottleneck in both directions, with the same rate,
        buffer and queue discipline, and the ACKs of a flow queue among the data of the flows that
        go the other way. Otherwise ACKs meet no queue.
        """
        return any(flow.direction == "reverse" for flow in self.flows)

    @property
    def most_data_mbps(self) -> float:
        """Most data that a link carries, in Mbit/s: its rate, in each direction that has data."""
        return self.bottleneck.rate_mbps * (2 if self.has_reverse_traffic else 1)

    @property
    def effective_start_window_s(self) -> float:
        """Width in s of the window after ``start_s`` in which each flow starts.

        The default of ``start_window_s`` is 10 base RTTs of the bottleneck, but at most a tenth of
        the duration of the shortest flow. If all flows started at once and trials differed in their
        jitter alone, every trial would go through the same slow start, and the spread over seeds
        might understate that of trials. The default is 0 for a lone flow: it competes with nobody,
        so another start would only shift its clock.
        """
        if self.start_window_s is not None:
            return self.start_window_s
        if len(self.flows) == 1:
            return 0.0
        return min(START_WINDOW_RTTS * self.bottleneck.rtt_ms / 1e3, self._shortest_s / 10)

    @property
    def flow_starts_s(self) -> tuple[float, ...]:
        """When each flow starts, in s of the experiment, to a microsecond.

        Flow i starts at its ``start_s`` plus `effective_start_window_s` times a number in [0, 1),
        the first 53 bits of the SHA-256 of "start SEED i". A start thus depends on the seed, the
        flow's index and the width alone, so a test flow and its reference start at the same times.
        """
        window_s = self.effective_start_window_s
        return tuple(
            round(flow.start_s + window_s * _uniform(f"start {self.seed} {i}"), 6)
            for i, flow in enumerate(self.flows)
        )

    @property
    def _shortest_s(self) -> float:
        """Duration of the shortest flow in s."""
        ends_s = (self.duration_s if f.stop_s is None else f.stop_s for f in self.flows)
        return min(end_s - f.start_s for end_s, f in zip(ends_s, self.flows, strict=True))

    @property
    def labels(self) -> list[str]:
        """One distinct label per flow; equal names get a number."""
        names = [f.label or f.default_label for f in self.flows]
        return [
            n if names.count(n) == 1 else f"{n} #{names[:i].count(n) + 1}"
            for i, n in enumerate(names)
        ]

    def to_json(self) -> str:
        """Canonical JSON: sorted keys and no white space, so equal specs give equal text.

        Forward flows omit their direction, and the bottleneck its bursts and the model and
        direction of its loss where they are the defaults. So experiments keep the hashes that they
        had before these fields existed.
        """
        spec = self.model_dump(mode="json")
        for name in ("burst_packets", "loss_model", "loss_direction"):
            if spec["bottleneck"][name] == Bottleneck.model_fields[name].default:
                del spec["bottleneck"][name]
        for flow in spec["flows"]:
            if flow["direction"] == "forward":
                del flow["direction"]
        return json.dumps(spec, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """The inverse of `to_json`; raises SpecError on anything else.

        JSON without a ``start_window_s`` predates start windows: then every flow started exactly at
        its ``start_s``.
        """
        try:
            data = object_of(text)
        except ValueError as error:
            raise SpecError(f"the experiment cannot be read: {error}") from None
        return cls(**{"start_window_s": 0.0, **data})

    @classmethod
    def from_file(cls, path: str | Path) -> Experiment:
        """The experiment in a YAML or JSON file; SpecError lists every mistake."""
        fields = read_fields(path, "an experiment")
        if "sweep" in fields:
            raise SpecError(f"{path} contains a sweep; use `qbkit sweep` or qb.run_sweep")
        with of_file(path):
            return cls(**fields)

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that identify this spec."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def run(
        self,
        *,
        engine: str | None = None,
        out: str | Path | None = None,
        keep: str | Sequence[str] = (),
        rerun: bool = False,
        force: bool = False,
        progress: bool = False,
    ) -> xr.Dataset:
        """Run the experiment, or load its stored run; see `qbkit.run`."""
        return above.run(
            self,
            engine=engine,
            out=out,
            keep=keep,
            rerun=rerun,
            force=force,
            progress=progress,
        )

    def _repr_html_(self) -> str:
        return above.html(self)


def _uniform(text: str) -> float:
    """A number in [0, 1) that is a pure function of a text: 53 bits of its SHA-256."""
    return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11) / 2**53
