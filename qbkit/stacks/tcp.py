"""The TCP of the Linux kernel that runs the experiment, with every controller it offers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Options, Say, Stack, Status
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import compile_c, fingerprint

SOURCE = Path(__file__).parent / "drivers/tcp/tcp_flow.c"
MOUNT = "/run/qb/stacks/tcp"
PAPERS = ("cubic", "reno", "bbr")
OTHERS = (
    *("bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable"),
    *("vegas", "veno", "westwood", "yeah"),
)


class Tcp(Stack):
    """Plain blocking sockets; the kernel does the rest.

    Both ends run the controller, as one that needs ECN (dctcp) negotiates it. ``lp`` gives the run
    of ``reno`` for most seeds: TCP-LP's one-way delay overflows 32 bits with most of the random
    offsets that Linux adds to time stamps (tests/test_tcp_controllers.py).
    """

    name: ClassVar[str] = "tcp"
    source: ClassVar[str] = "the Linux kernel that runs the experiment"
    most_window_bytes: ClassVar[int] = 1 << 30
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in segments",
        "pacing": "true: pace by 2 cwnd/srtt in slow start, by 1.2 cwnd/srtt after it",
        "hystart": "false: CUBIC without HyStart, for all flows of the run (engine virtual)",
    }

    counts_for: ClassVar[dict[str, tuple[str, ...]]] = {
        "hystart": ("cubic",),
        "pacing": tuple(name for name in (*PAPERS, *OTHERS) if name != "bbr"),  # BBR always paces
    }

    def controllers(self) -> tuple[str, ...]:
        """The CONFIG_TCP_CONG_* of the guest's kernel, the papers' three first."""
        return (*PAPERS, *OTHERS)

    def surveyed(self) -> tuple[str, ...]:
        """The papers' three."""
        return PAPERS

    def version(self) -> str:
        """Version of the driver; the kernel's version is part of every run anyway."""
        return f"driver {fingerprint([SOURCE])}"

    def status(self) -> Status:
        """Ready where there is a C compiler."""
        if not shutil.which("gcc"):
            return Status(False, "apt-get install gcc libc6-dev")
        return Status(True)

    def receiver_options(self, controller: str, options: Options) -> Options:
        """The sender's, and its controller: ECN is negotiated by the controllers of both ends."""
        return {**options, "controller": controller}

    def build(self, say: Say = lambda _: None) -> None:
        """Compile the driver."""
        self.mounts()

    def program(self) -> list[str]:
        """The compiled driver."""
        return [f"{MOUNT}/tcp_flow"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled driver."""
        return {MOUNT: compile_c(SOURCE, "tcp_flow").parent}


register(Tcp())
