"""aioquic's receiver, which closes its connection, or falls silent, after a second.

closing.py closes|falls-silent, then the words of aioquic's driver; see tests/test_ends.py.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any

from aioquic_flow import receiver

AFTER_S = 1.0
how = sys.argv.pop(1)


class Closing(receiver.Connection):
    """It closes with PROTOCOL_VIOLATION in a STREAM frame."""

    born_s = None

    def receive_datagram(self, data: bytes, addr: Any, now: float) -> None:
        super().receive_datagram(data, addr, now)
        self.born_s = self.born_s or now
        if now - self.born_s <= AFTER_S:
            return
        if how == "falls-silent":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
            while True:
                signal.pause()
        self.close(error_code=0xA, frame_type=0x8, reason_phrase="closed by the test")


receiver.Connection = Closing
receiver.write_end = lambda *_: None  # the sender's report is tested
runpy.run_module("aioquic_flow", run_name="__main__")
