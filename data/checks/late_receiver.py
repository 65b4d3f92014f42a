"""picoquic with a receiver that sleeps a little longer than picoquic asks it to."""

from __future__ import annotations

from pathlib import Path

from qbkit.errors import StackNotReady
from qbkit.stacks.picoquic import Picoquic
from qbkit.stacks.toolchains.build import build_once, fingerprint

SLEEP = "    if (udp_wait("
"""Our driver, where it knows when to wake up."""
LONGER = "    if (!flow.sends && due_ns < UINT64_MAX / 2) due_ns += {}000;\n" + SLEEP


class LateReceiver(Picoquic):
    """Our driver of picoquic with one line more."""

    def __init__(self, late_us: int) -> None:
        self.late_us, self.name = late_us, f"picoquic-{late_us}us-late"

    def _sources(self) -> list[Path]:
        *shared, driver = Picoquic()._sources()
        line = LONGER.format(self.late_us)
        key = fingerprint([driver], line)

        def write(folder: Path) -> None:
            text = driver.read_text()
            if text.count(SLEEP) != 1:
                raise StackNotReady(f"{driver.name} no longer has one line {SLEEP.strip()!r}")
            (folder / driver.name).write_text(text.replace(SLEEP, line))

        return [*shared, build_once(f"{self.name}-source", key, write) / driver.name]
