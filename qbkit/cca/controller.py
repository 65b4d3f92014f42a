"""The interface of a congestion controller: what it sets, and what it hears.

A controller knows packets, ACKs and losses as RFC 9002 describes them; it knows no QUIC stack. It
runs inside the guest on the Python standard library alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .events import Ack, AppLimited, Idle, Loss, Sent, SpuriousLoss, Timeout
from .options import COMMON, Option, defaults


@dataclass(frozen=True)
class Settings:
    """What a controller starts from."""

    packet_bytes: int
    """UDP payload of a full packet."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values that the flow set; all others have their defaults."""


class Controller:
    """What all controllers share; write a `WindowController` or a `RateController`.

    Set ``window_bytes`` and ``pacing_rate_bytes_per_s`` at any time. Every event does nothing
    unless overridden. For one ACK frame the order is `on_spurious_loss`, `on_loss`, `on_ack`.
    """

    options: ClassVar[Mapping[str, Option]] = {}
    """Options of this controller (`qbkit.cca.number`, `whole`, `switch`), beyond the common ones.
    Their values are in ``self.option``."""
    uses_one_way_delay: ClassVar[bool] = False
    """True: the receiver reports when each packet arrived."""
    uses_ecn: ClassVar[bool] = False
    """True: packets are sent as ECT(0), and the receiver reports those marked CE."""

    window_bytes: float
    """Congestion window: at most so much may be in flight. At first 10 packets."""
    pacing_rate_bytes_per_s: float | None = None
    """None: the window over the smoothed RTT, in bursts of up to 16 packets (RFC 9002, section
    7.7). ``math.inf``: no pacing."""
    ssthresh_bytes: float | None = None
    """Slow start threshold, for the dataset; None where there is none yet."""
    state: str = ""
    """Set by ``log(state=...)``."""
    is_sending_less: bool = False
    """True while the controller sends less than it could on purpose (BBR's ProbeRTT): delivery
    samples then count as application-limited."""

    @classmethod
    def all_options(cls) -> dict[str, Option]:
        """Its own and the common ones, by name."""
        return {**COMMON, **cls.options}

    def __init__(self, settings: Settings) -> None:
        self.packet_bytes = settings.packet_bytes
        self.option = defaults(self.all_options(), **settings.options)
        self.window_bytes = float(self.option["initial_window_packets"] * self.packet_bytes)
        self.logged: dict[str, float] = {}
        """The latest values of `log`."""

    def on_sent(self, sent: Sent) -> None:
        """A packet was sent."""

    def on_ack(self, ack: Ack) -> None:
        """Packets were acknowledged."""

    def on_loss(self, loss: Loss) -> None:
        """Packets were declared lost."""

    def on_spurious_loss(self, spurious: SpuriousLoss) -> None:
        """Packets declared lost had arrived."""

    def on_timeout(self, timeout: Timeout) -> None:
        """A probe timeout expired."""

    def on_idle(self, idle: Idle) -> None:
        """Sending begins again after nothing was in flight."""

    def on_app_limited(self, limited: AppLimited) -> None:
        """There was nothing to send though window and pacing allowed it."""

    def log(self, *, state: str | None = None, **values: float) -> None:
        """Record values as variables of the dataset, sampled with the window (every 10 ms).

        A name ends with its unit: ``bwe_mbps``, ``queue_ms``, ``target_bytes``, ``w_max_packets``.
        ``min_rtt_ms`` and ``delivery_rate_mbps`` replace what is recorded under these names.
        """
        if state is not None:
            self.state = state
        self.logged.update(values)


class WindowController(Controller):
    """Sets ``window_bytes``; packets are paced at the window over the smoothed RTT."""


class RateController(Controller):
    """Sets ``pacing_rate_bytes_per_s``; the window only stops a sender that hears no ACKs.

    The window is two round trips of the rate: `set_rate` sets both.
    """

    window_rtts: ClassVar[float] = 2.0

    def set_rate(self, rate_bytes_per_s: float, smoothed_rtt_s: float) -> None:
        """Pace at this rate, and let ``window_rtts`` round trips of it be in flight."""
        self.pacing_rate_bytes_per_s = rate_bytes_per_s
        least = 4 * self.packet_bytes
        self.window_bytes = max(self.window_rtts * rate_bytes_per_s * smoothed_rtt_s, least)


NOT_PACED = math.inf
"""A pacing rate that holds nothing back."""
