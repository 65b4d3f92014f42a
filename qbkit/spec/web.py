"""What to load: an object or a page, from a server, by a client, over HTTP/2 or HTTP/3."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from qbkit.errors import SpecError
from qbkit.json_words import object_of
from qbkit.spec.base import Spec
from qbkit.spec.bottleneck import Bottleneck
from qbkit.spec.experiment import Experiment
from qbkit.spec.flow import Flow

Protocol = Literal["h2", "h3"]
PROTOCOLS: tuple[Protocol, ...] = ("h2", "h3")
MOST_OBJECT_BYTES = 100_000_000
"""Servers keep the whole object in memory."""


class WebLoad(Spec):
    """One load: which server and client, what they transfer, over which link."""

    bottleneck: Bottleneck = Field(default_factory=Bottleneck)
    """The link between server and client; the data of the server pass its queue."""
    server: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*:[A-Za-z0-9][A-Za-z0-9_.+-]*$")
    """``server:controller``. Over HTTP/2 the controller is that of the kernel's TCP."""
    client: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")
    """Name of the client, as ``qbkit web --list`` lists it."""
    protocol: Protocol
    """``h2`` (HTTP/2 over TLS and TCP) or ``h3`` (HTTP/3 over QUIC). A response by another protocol
    is an error."""
    object_bytes: int | None = Field(default=None, ge=1, le=MOST_OBJECT_BYTES)
    """Size of the one object; give this or ``page``."""
    page: str | None = Field(default=None, min_length=1, max_length=4096)
    """``small``, ``medium``, ``large``, or the path of a recorded page."""
    page_seed: int = Field(default=1, ge=0, lt=2**63)
    """Seed of a generated page."""
    zero_rtt: bool = False
    """Whether the client resumes an earlier session and sends its request as early data. Only the
    second connection is measured, and it is an error if the server does not accept them."""
    tcp_initial_window_packets: int | None = Field(default=None, ge=1, le=1000)
    """Initial congestion window of the server's TCP, for h2; the kernel's default is 10."""
    limit_s: float = Field(default=120.0, ge=1.0, le=3600.0)
    """Virtual seconds after which a load that has not ended fails."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """Seed of all randomness."""

    @field_validator("server", mode="before")
    @classmethod
    def _with_controller(cls, value: Any) -> Any:
        if isinstance(value, str) and ":" not in value:
            raise ValueError(f"{value!r} names no controller; write server:controller")
        return value

    @model_validator(mode="after")
    def _one_thing(self) -> WebLoad:
        if (self.object_bytes is None) == (self.page is None):
            raise ValueError("give object_bytes or page, and not both")
        return self

    @property
    def server_name(self) -> str:
        """Name of the server."""
        return self.server.partition(":")[0]

    @property
    def controller(self) -> str:
        """Name of the server's congestion controller."""
        return self.server.partition(":")[2]

    @property
    def name(self) -> str:
        """What is loaded, from where and by whom, in a few words."""
        what = self.page if self.page is not None else f"{self.object_bytes} B"
        return f"{what} from {self.server} by {self.client} over {self.protocol}"

    def experiment(self, duration_s: float | None = None) -> Experiment:
        """The load as an experiment of one flow, whose sender is the server.

        ``duration_s`` is how long the load took; by default its limit. The link then changes only
        as far as the load came.
        """
        flow = Flow(self.server_name, self.controller, label=f"{self.protocol} {self.server}")
        link = self.bottleneck if duration_s is None else _reached(self.bottleneck, duration_s)
        duration_s = self.limit_s if duration_s is None else duration_s
        return Experiment(bottleneck=link, flows=(flow,), duration_s=duration_s, seed=self.seed)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys and no white space, so equal loads give equal text."""
        spec = self.model_dump(mode="json")
        spec["bottleneck"] = json.loads(self.experiment().to_json())["bottleneck"]
        return json.dumps(spec, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> WebLoad:
        """The inverse of `to_json`; raises SpecError on anything else."""
        try:
            data = object_of(text)
        except ValueError as error:
            raise SpecError(f"the load cannot be read: {error}") from None
        return cls(**data)

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that identify this spec."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]


def _reached(link: Bottleneck, end_s: float) -> Bottleneck:
    """The link without the changes that were written by hand for ``end_s`` or later."""
    found: dict[str, Any] = {}
    for name in ("capacity", "delay"):
        timed = getattr(link, name)
        if timed is None or timed.name is not None or timed.at_end == "repeat":
            continue
        if timed.steps[-1][0] >= end_s:
            kept = [(at_s, value) for at_s, value in timed.at_times() if at_s < end_s]
            silent = len(kept) > 1 and kept[-1][1] == 0
            found[name] = type(timed)(steps=kept, at_end="cut" if silent else "hold")
    if link.outages and link.outages.times[-1][0] >= end_s:
        times = tuple(outage for outage in link.outages.times if outage[0] < end_s)
        found["outages"] = link.outages.model_copy(update={"times": times}) if times else None
    return link.model_copy(update=found) if found else link
