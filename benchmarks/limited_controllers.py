"""Our BBR, which may take delivery samples that the application limits for those of the path."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import qbkit as qb
from qbkit.cca import Ack, Option, switch
from qbkit.cca.builtin.bbr import Bbr


@qb.controller("limited-bbr")
class LimitedBbr(Bbr):
    """BBR with one change."""

    options: ClassVar[dict[str, Option]] = {
        **Bbr.options,
        "counts_limited": switch("samples that the application limits count as others", False),
    }

    def on_ack(self, ack: Ack) -> None:
        if self.option["counts_limited"] and ack.delivery:
            ack = replace(ack, delivery=replace(ack.delivery, is_app_limited=False))
        super().on_ack(ack)
