"""Our controllers with one known change of what they do after a pause, or after an outage.

A controller travels as the text of its file, so the other two files stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Idle, Loss, Option, Settings, number, switch
from qbkit.cca.builtin.bbr import Bbr
from qbkit.cca.builtin.cubic import Cubic
from qbkit.cca.builtin.reno import Reno

PAUSE_S = 0.5
"""A shorter idle time is none that a sender would restart after."""
CHANGES: dict[str, Option] = {
    "restart_part": number("window after a pause, of what it was before", 1.0, 0.0, 1.0),
    "collapses": switch("false: persistent congestion is a loss like any other", True),
}


class Interrupted:
    """What the three share; it stands before their class."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)

    def on_idle(self, idle: Idle) -> None:
        """Restart with a part of the window, or with two packets if that is more."""
        part = self.option["restart_part"]
        if idle.idle_s > PAUSE_S and part < 1:
            self.window_bytes = max(part * self.window_bytes, 2 * self.packet_bytes)
            self.restart()

    def restart(self) -> None:
        """What else a restart changes."""

    def on_loss(self, loss: Loss) -> None:
        """An outage may be taken for a single loss."""
        persistent = loss.is_persistent_congestion and self.option["collapses"]
        super().on_loss(replace(loss, is_persistent_congestion=persistent))


@qb.controller("interrupted-cubic")
class InterruptedCubic(Interrupted, Cubic):
    """CUBIC with one change."""

    options: ClassVar[dict[str, Option]] = {**Cubic.options, **CHANGES}

    def restart(self) -> None:
        """RFC 9438, section 5.8: the time without data does not count."""
        self._epoch_s = None


@qb.controller("interrupted-reno")
class InterruptedReno(Interrupted, Reno):
    """Reno with one change."""

    options: ClassVar[dict[str, Option]] = {**Reno.options, **CHANGES}


@qb.controller("interrupted-bbr")
class InterruptedBbr(Interrupted, Bbr):
    """BBR with one change."""

    options: ClassVar[dict[str, Option]] = {**Bbr.options, **CHANGES}
