"""The TCP of the Linux kernel that runs the experiment, with every controller it offers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from qbkit.errors import SpecError
from qbkit.spec.app import APPS
from qbkit.stacks.base import Options, Say, Stack, Status, Transfer, as_server
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import compile_c, fingerprint, is_compiled
from qbkit.stacks.toolchains.sources import together

SOURCE = Path(__file__).parent / "drivers/tcp/tcp_flow.c"
APP, ABOVE = SOURCE.with_name("app.c"), SOURCE.parents[1] / "above/c/above.c"
IP6, RESUME = SOURCE.with_name("ip6.c"), SOURCE.with_name("resume.c")
MOUNT = "/run/qb/stacks/tcp"
APP_CALLS = tuple(f"-D{call}=app_{call}" for call in ("write", "recv", "listen"))
IP6_CALLS = (
    "-Dinet_aton=ip6_aton",
    *(f"-D{call}=ip6_{call}" for call in ("socket", "bind", "connect")),
)
RESUME_CALLS = tuple(f"-D{call}=resume_{call}" for call in ("connect", "listen", "recv", "close"))
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

    name = "tcp"
    source = "the Linux kernel that runs the experiment"
    most_window_bytes = 1 << 30
    apps = APPS
    reads_slowly = offers_window = ip6 = serves = resumes = True
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

    def with_more(
        self, *, server: bool = False, app: bool = False, ip6: bool = False, resume: bool = False
    ) -> Stack:
        """A program for each combination."""
        if resume:
            return resuming(ip6=ip6)
        return variant(server=server, app=app, ip6=ip6) if server or app or ip6 else self

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

    def driver_options(self, options: Options) -> Options:
        """All but what `sysctls` sets."""
        return {name: value for name, value in options.items() if name != "ecn"}

    def send_argv(self, transfer: Transfer) -> list[str]:
        """As every driver, without what `sysctls` sets."""
        return super().send_argv(replace(transfer, options=self.driver_options(transfer.options)))

    def receiver_options(self, controller: str, options: Options) -> Options:
        """The sender's, and its controller: ECN is negotiated by the controllers of both ends."""
        return {**self.driver_options(options), "controller": controller}

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
    """Another program, so that `Tcp` stays as it is: `variant` gives its name, files and words."""

    files: ClassVar[tuple[Path, ...]]
    words: ClassVar[tuple[str, ...]]
    """Of the compiler."""

    def version(self) -> str:
        """Version of the driver and of the other files."""
        return f"driver {fingerprint(self.files)}"

    def program(self) -> list[str]:
        """The compiled driver."""
        return [f"/run/qb/stacks/{self.name}/{self._binary}"]

    def mounts(self) -> dict[str, Path]:
        """The folder of the compiled driver."""
        program = compile_c(self.files, self._binary, more=self.words)
        return {f"/run/qb/stacks/{self.name}": program.parent}

    @property
    def _binary(self) -> str:
        return self.name.replace("-", "_")


def variant(*, server: bool, app: bool, ip6: bool) -> Tcp:
    """The driver with a server that sends, an application above it, or IPv6."""
    source = _server_source() if server else SOURCE
    attributes = {
        "name": f"tcp{'-server' * server}{'-app' * app}{'-ip6' * ip6}",
        "files": (source, *(APP, ABOVE) * app, *(IP6,) * ip6),
        "words": (*APP_CALLS * app, *IP6_CALLS * ip6, *("-lm",) * app),
    }
    made: Tcp = type(TcpVariant.__name__, (TcpVariant,), attributes)()
    return as_server(made) if server else made


class TcpResuming(TcpVariant):
    """Two connections, by TCP Fast Open."""

    def sysctls(self, options: Options) -> dict[str, str]:
        """Without which a kernel accepts no data in a SYN."""
        return {**super().sysctls(options), "net/ipv4/tcp_fastopen": "3"}


def resuming(*, ip6: bool) -> Tcp:
    """The driver with an application above it, or a reader, over two connections."""
    below = "ip6_connect" if ip6 else "connect"
    words = [word for word in IP6_CALLS if ip6 and not word.startswith("-Dconnect")]
    words += ["-Dwrite=app_write", *RESUME_CALLS, f"-DCONNECT={below}", "-lm"]
    attributes = {
        "name": f"tcp-resume{'-ip6' * ip6}",
        "files": (SOURCE, APP, ABOVE, RESUME, *(IP6,) * ip6),
        "words": tuple(words),
    }
    made: Tcp = type(TcpResuming.__name__, (TcpResuming,), attributes)()
    return made


def _server_source() -> Path:
    """The driver whose server may send."""
    parts = (SOURCE.parent, SOURCE.parents[1] / "above/tcp")
    return together("tcp-server-sources", parts) / SOURCE.name


register(Tcp())
