"""The TCP of the Linux kernel that runs the experiment, with every controller it offers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from qbkit.errors import SpecError
from qbkit.spec.app import APPS
from qbkit.stacks.base import Options, Say, Stack, Status, Transfer
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import compile_c, fingerprint, is_compiled

SOURCE = Path(__file__).parent / "drivers/tcp/tcp_flow.c"
APP, ABOVE = SOURCE.with_name("app.c"), SOURCE.parents[1] / "above/c/above.c"
IP6 = SOURCE.with_name("ip6.c")
MOUNT = "/run/qb/stacks/tcp"
APP_CALLS = tuple(f"-D{call}=app_{call}" for call in ("write", "recv", "listen"))
IP6_CALLS = (
    "-Dinet_aton=ip6_aton",
    *(f"-D{call}=ip6_{call}" for call in ("socket", "bind", "connect")),
)
ECN: dict[str | int | float | bool, str] = {True: "1", "accurate": "3"}
"""Value of the option ``ecn`` → net.ipv4.tcp_ecn."""
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
    apps: ClassVar[tuple[str, ...]] = APPS
    reads_slowly: ClassVar[bool] = True
    offers_window: ClassVar[bool] = True
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window in segments",
        "pacing": "true: pace by 2 cwnd/srtt in slow start, by 1.2 cwnd/srtt after it",
        "hystart": "false: CUBIC without HyStart, for all flows of the run (engine virtual)",
        "ecn": "true: ask for ECN (RFC 3168); accurate: for accurate ECN",
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
        """Ready once built, or where there is a C compiler."""
        if not is_compiled(SOURCE, "tcp_flow") and not shutil.which("gcc"):
            return Status(False, "apt-get install gcc libc6-dev")
        return Status(True)

    def for_app(self) -> Stack:
        """The driver with an application above it."""
        return TcpApp()

    def check(self, controller: str, options: Options, source: str | None) -> None:
        """As every stack, and ``ecn`` is one of `ECN` that changes something."""
        super().check(controller, options, source)
        if options.get("ecn", True) not in ECN:
            raise SpecError(f"tcp's option ecn is {options['ecn']!r}; write true or accurate")
        if controller == "dctcp" and options.get("ecn") is True:
            raise SpecError("tcp:dctcp asks for ECN by itself; write ecn=accurate, or leave it out")

    def sysctls(self, options: Options) -> dict[str, str]:
        """What makes a socket ask for ECN; the driver has no part in it."""
        return {"net/ipv4/tcp_ecn": ECN[options["ecn"]]} if "ecn" in options else {}

    def send_argv(self, transfer: Transfer) -> list[str]:
        """As every driver, without what `sysctls` sets."""
        return super().send_argv(replace(transfer, options=_for_driver(transfer.options)))

    def receiver_options(self, controller: str, options: Options) -> Options:
        """The sender's, and its controller: ECN is negotiated by the controllers of both ends."""
        return {**_for_driver(options), "controller": controller}

    def build(self, say: Say = lambda _: None) -> None:
        """Compile the driver."""
        self.mounts()

    def program(self) -> list[str]:
        """The compiled driver."""
        return [f"{MOUNT}/tcp_flow"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled driver."""
        return {MOUNT: compile_c(SOURCE, "tcp_flow").parent}


class TcpVariant(Tcp):
    """The same program with other calls of the system: another one, so that `Tcp` stays as it is.

    Its classes give the program, its files, and the compiler's words.
    """

    binary: ClassVar[str]
    files: ClassVar[tuple[Path, ...]]
    words: ClassVar[tuple[str, ...]]

    def version(self) -> str:
        """Version of the driver and of the other files."""
        return f"driver {fingerprint(self.files)}"

    def program(self) -> list[str]:
        """The compiled driver."""
        return [f"/run/qb/stacks/{self.name}/{self.binary}"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled driver."""
        program = compile_c(self.files, self.binary, more=self.words)
        return {f"/run/qb/stacks/{self.name}": program.parent}


class TcpApp(TcpVariant):
    """With an application above it."""

    name: ClassVar[str] = "tcp-app"
    binary: ClassVar[str] = "tcp_app"
    files: ClassVar[tuple[Path, ...]] = (SOURCE, APP, ABOVE)
    words: ClassVar[tuple[str, ...]] = (*APP_CALLS, "-lm")


class TcpIp6(TcpVariant):
    """Over IPv6."""

    name: ClassVar[str] = "tcp-ip6"
    binary: ClassVar[str] = "tcp_ip6"
    files: ClassVar[tuple[Path, ...]] = (SOURCE, IP6)
    words: ClassVar[tuple[str, ...]] = IP6_CALLS


class TcpAppIp6(TcpVariant):
    """With an application above it, over IPv6."""

    name: ClassVar[str] = "tcp-app-ip6"
    binary: ClassVar[str] = "tcp_app_ip6"
    files: ClassVar[tuple[Path, ...]] = (SOURCE, APP, ABOVE, IP6)
    words: ClassVar[tuple[str, ...]] = (*APP_CALLS, *IP6_CALLS, "-lm")


def _for_driver(options: Options) -> Options:
    return {name: value for name, value in options.items() if name != "ecn"}


register(Tcp())
