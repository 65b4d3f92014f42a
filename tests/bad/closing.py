"""aioquic's receiver, which closes its connection after a second; see tests/test_ends.py."""

from __future__ import annotations

import runpy
from typing import Any

from aioquic_flow import receiver

CLOSES_AFTER_S = 1.0


class Closing(receiver.Connection):
    """It closes with PROTOCOL_VIOLATION in a STREAM frame."""

    born_s = None

    def receive_datagram(self, data: bytes, addr: Any, now: float) -> None:
        super().receive_datagram(data, addr, now)
        self.born_s = self.born_s or now
        if now - self.born_s > CLOSES_AFTER_S:
            self.close(error_code=0xA, frame_type=0x8, reason_phrase="closed by the test")


receiver.Connection = Closing
receiver.write_end = lambda *_: None  # the sender's report is tested
runpy.run_module("aioquic_flow", run_name="__main__")
