"""What to run: a bottleneck, the flows that share it, and for how long.

An experiment is frozen, validated (pydantic), and round-trips through JSON. Its content hash is
part of the name of its run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from qbkit import above
from qbkit.errors import SpecError
from qbkit.json_words import object_of
from qbkit.spec import possible
from qbkit.spec.base import Spec
from qbkit.spec.bottleneck import FRAME_BYTES, Bottleneck
from qbkit.spec.flow import Flow
from qbkit.spec.loss import TimedBursts
from qbkit.spec.misbehaving import Attack, as_list
from qbkit.spec.spec_file import of_file, read_fields

if TYPE_CHECKING:
    import xarray as xr

START_WINDOW_RTTS = 10
"""Default width of the window in which flows start: longer than slow start needs to fill a link."""

FIRST_FIELDS = {
    "Experiment": frozenset(
        ["bottleneck", "flows", "duration_s", "seed", "jitter_ms", "start_window_s", "topology"]
    ),
    "Bottleneck": frozenset(
        [
            *("rate_mbps", "rtt_ms", "buffer_bdp", "buffer_bytes", "buffer_packets"),
            *("qdisc", "qdisc_options", "loss_percent"),
        ]
    ),
}
"""Fields that the JSON of an experiment always has."""


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
    jitter_shape: Literal["uniform", "normal", "pareto"] = "uniform"
    """Distribution of that jitter; ``jitter_ms`` is its standard deviation if it is not uniform."""
    jitter_reorders: bool = False
    """Whether packets may overtake each other by jitter; by default they keep their order."""
    topology: Literal["dumbbell", "parking_lot"] = "dumbbell"
    """``dumbbell``: all flows share one queue. ``parking_lot``: the first flow crosses two such
    links in a row; the others alternate between the first link and the second."""
    ip_version: Literal[4, 6] = 4
    """Version of IP; a header of version 6 has 40 bytes, that of version 4 has 20."""
    attacks: Annotated[tuple[Attack, ...], BeforeValidator(as_list)] = Field(
        default=(), max_length=100
    )
    """Packets that a third host forges, as ``5 reset on-path`` or ``5 too-big 600 off-path``
    (`qbkit.spec.misbehaving`)."""

    @model_validator(mode="after")
    def _possible(self) -> Experiment:
        for check in possible.CHECKS:
            check(self)
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
        travelling = link.most_rate_mbps * 125 * (link.most_rtt_ms + flow.extra_rtt_ms)
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
    def has_return_queue(self) -> bool:
        """Whether ACKs meet a queue: among the data of reverse flows, or on a link of their own."""
        return self.has_reverse_traffic or self.bottleneck.return_rate_mbps is not None

    @property
    def most_data_mbps(self) -> float:
        """Most data that a link carries, in Mbit/s: its rate, in each direction that has data."""
        return self.bottleneck.most_rate_mbps * (2 if self.has_reverse_traffic else 1)

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
        return usual_start_window_s(self.bottleneck.rtt_ms, self.shortest_s)

    @property
    def flow_starts_s(self) -> tuple[float, ...]:
        """When each flow starts, in s of the experiment, to a microsecond.

        Flow i starts at its ``start_s`` plus `effective_start_window_s` times a number in [0, 1),
        the first 53 bits of the SHA-256 of "start SEED i". A start thus depends on the seed, the
        flow's index and the width alone, so a test flow and its reference start at the same times.
        """
        window_s = self.effective_start_window_s
        return tuple(self._start_s(index, window_s) for index in range(len(self.flows)))

    def flow_start_s(self, index: int) -> float:
        """When one flow starts: see `flow_starts_s`."""
        return self._start_s(index, self.effective_start_window_s)

    def _start_s(self, index: int, window_s: float) -> float:
        late_s = window_s * _uniform(f"start {self.seed} {index}")
        return round(self.flows[index].start_s + late_s, 6)

    @property
    def loss_bursts_s(self) -> list[tuple[float, float]]:
        """(start, end) in s of each burst of a `TimedBursts`; empty for other losses."""
        model = self.bottleneck.loss_model
        if not isinstance(model, TimedBursts):
            return []
        return model.until(self.duration_s, self.seed)

    @property
    def shortest_s(self) -> float:
        """Duration of the shortest flow in s."""
        ends_s = (self.duration_s if f.stop_s is None else f.stop_s for f in self.flows)
        return min(end_s - f.start_s for end_s, f in zip(ends_s, self.flows, strict=True))

    @property
    def labels(self) -> list[str]:
        """One distinct label per flow.

        Flows of one name also name the options in which they differ from each other, as in
        ``quinn:cubic?pacing=false``. What is still equal gets a number.
        """
        alike: dict[str, list[dict[str, object]]] = {}
        for flow in self.flows:
            alike.setdefault(flow.default_label, []).append(flow.chosen)
        names = [
            flow.label or flow.name_with(_apart(flow.chosen, alike[flow.default_label]))
            for flow in self.flows
        ]
        return [
            n if names.count(n) == 1 else f"{n} #{names[:i].count(n) + 1}"
            for i, n in enumerate(names)
        ]

    def to_json(self) -> str:
        """Canonical JSON: sorted keys and no white space, so equal specs give equal text.

        Forward flows omit their direction, and the experiment and its bottleneck what is not in
        `FIRST_FIELDS` where it is the default. So experiments keep the hashes that they had before
        these fields existed.
        """
        spec = self.model_dump(mode="json")
        for fields, given in ((spec, self), (spec["bottleneck"], self.bottleneck)):
            for name, default in _later(type(given)):
                if getattr(given, name) == default:
                    del fields[name]
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
        published: str | Path | None = None,
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
            published=published,
        )

    def _repr_html_(self) -> str:
        return above.html(self)


def _apart(chosen: dict[str, object], alike: list[dict[str, object]]) -> dict[str, object]:
    """The options of a flow, and its receiver, that not all flows of its name share."""
    return {
        name: value
        for name, value in chosen.items()
        if any(name not in other or other[name] != value for other in alike)
    }


def usual_start_window_s(rtt_ms: float, shortest_s: float) -> float:
    """Within what time (s) several flows start; ``shortest_s`` is the duration of the shortest."""
    return min(START_WINDOW_RTTS * rtt_ms / 1e3, shortest_s / 10)


@cache
def _later(kind: type[Spec]) -> list[tuple[str, Any]]:
    """The fields that are not in `FIRST_FIELDS`, with their defaults."""
    return [
        (name, field.get_default(call_default_factory=True))
        for name, field in kind.model_fields.items()
        if name not in FIRST_FIELDS[kind.__name__]
    ]


def _uniform(text: str) -> float:
    """A number in [0, 1) that is a pure function of a text: 53 bits of its SHA-256."""
    return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11) / 2**53
