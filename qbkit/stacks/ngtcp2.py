"""ngtcp2 as Debian packages it: its sample client uploads to its sample server.

Both are HTTP/3 programs on GnuTLS; their options are those of ``gtlsclient --help``. The client is
the sender, so its ``--cc`` chooses the controller. Its qlog, which has whole milliseconds only,
becomes the telemetry; the server does not report how much it received. A small preloaded library
makes ``std::random_device``, which seeds the BBRs' randomness, read the guest's seeded source.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Say, Stack, Status
from qbkit.stacks.build import compile_c, fingerprint, run_tool
from qbkit.stacks.registry import register

DRIVER = Path(__file__).parent / "drivers/ngtcp2"
SERVER = Path(__file__).parent / "drivers/server"
MOUNT, SERVER_MOUNT = "/run/qb/stacks/ngtcp2", "/run/qb/stacks/server"
RANDOM_MOUNT = "/run/qb/stacks/random_device"
PYTHON = ["/usr/bin/python3", "-S", "-B"]
CLIENT, RECEIVER = "gtlsclient", "gtlsserver"
WINDOW = "128M"
WINDOWS = ("max-data", "max-stream-data-bidi-remote", "max-window", "max-stream-window")
CONTROLLERS = ("cubic", "reno", "bbr", "bbr2")
"""The controllers of ngtcp2 0.12, in Debian 12."""


class Ngtcp2(Stack):
    """This machine's ``gtlsclient`` and ``gtlsserver``."""

    name: ClassVar[str] = "ngtcp2"
    source: ClassVar[str] = "Debian packages ngtcp2-client and ngtcp2-server"
    reports: ClassVar[tuple[str, ...]] = (
        "cwnd_bytes",
        "bytes_in_flight",
        "srtt_ms",
        "latest_rtt_ms",
        "min_rtt_ms",
        "lost_packets",
    )
    options: ClassVar[dict[str, str]] = {
        "ack_every_packets": "the receiver acknowledges at once after this many packets",
        "pmtud": "false: send no packets larger than 1200 bytes",
        "qlog": "write a full qlog",
    }

    def controllers(self) -> tuple[str, ...]:
        """The controllers that the client's help lists."""
        return _controllers() if self.status().ready else CONTROLLERS

    def version(self) -> str:
        """Versions of the Debian package and of our driver."""
        driver = fingerprint([Path(__file__), *DRIVER.glob("*.*"), *SERVER.glob("*.py")])
        return f"{_package_version()}, driver {driver}"

    def status(self) -> Status:
        """Ready when both programs are installed."""
        if _path(CLIENT) and _path(RECEIVER):
            return Status(True)
        return Status(False, "apt-get install ngtcp2-client ngtcp2-server")

    def build(self, say: Say = lambda _: None) -> None:
        """Compile the preloaded library; the programs come from Debian's packages."""
        if not self.status().ready:
            raise StackNotReady(f"ngtcp2's programs are missing; {self.status().reason}")
        _library()

    def program(self) -> list[str]:
        """The client; the guest sees this machine's files."""
        return [_path(CLIENT) or CLIENT]

    def mounts(self) -> dict[str, Path]:
        """The scripts that start the two programs, and the library preloaded into them."""
        return {MOUNT: DRIVER, SERVER_MOUNT: SERVER, RANDOM_MOUNT: _library().parent}

    def env(self) -> dict[str, str]:
        """Preload the library."""
        return {"LD_PRELOAD": f"{RANDOM_MOUNT}/random_device.so"}

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The server, which reads whatever is uploaded."""
        ip, _, port = address.rpartition(":")
        command = [_path(RECEIVER) or RECEIVER, "--quiet", f"--htdocs={MOUNT}"]
        command += [f"--{name}={WINDOW}" for name in WINDOWS]
        if "ack_every_packets" in options:
            command.append(f"--ack-thresh={options['ack_every_packets']}")
        if options.get("qlog"):
            command.append(f"--qlog-dir={out}")
        keys = [f"{CERTIFICATE_MOUNT}/key.pem", f"{CERTIFICATE_MOUNT}/cert.pem"]
        return [*PYTHON, f"{SERVER_MOUNT}/serve.py", port, "--", *command, ip, port, *keys]

    def send_argv(
        self,
        *,
        address: str,
        controller: str,
        out: str,
        duration_s: float | None,
        size_bytes: int | None,
        options: Options,
    ) -> list[str]:
        """The client, which uploads for a duration or a number of bytes."""
        ip, _, port = address.rpartition(":")
        limit = ["--bytes", str(size_bytes)] if size_bytes else ["--duration-s", f"{duration_s:g}"]
        start = [*PYTHON, f"{MOUNT}/upload.py", "--out", out, *limit]
        if options.get("qlog"):
            start.append("--qlog")
        command = [*self.program(), f"--cc={controller}", "--exit-on-all-streams-close"]
        if options.get("pmtud") is False:
            command.append("--no-pmtud")
        return [*start, "--", *command, ip, port, f"https://{address}/"]


def _path(program: str) -> str | None:
    """Path of a program; Debian installs the server in a folder that not every PATH has."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/bin")


def _library() -> Path:
    return compile_c(DRIVER / "random_device.c", "random_device.so", shared=True)


@cache
def _controllers() -> tuple[str, ...]:
    text = run_tool([_path(CLIENT) or CLIENT, "--help"], "ngtcp2")
    found = re.search(r"--cc=\(([\w|]+)\)", text)
    return tuple(found[1].split("|")) if found else CONTROLLERS


@cache
def _package_version() -> str:
    """Debian's version; elsewhere the programs' fingerprint, if they are installed."""
    client, server = _path(CLIENT), _path(RECEIVER)
    if not client or not server:
        return "not installed"
    if shutil.which("dpkg-query"):
        try:
            return run_tool(["dpkg-query", "-W", "-f=${Version}", "ngtcp2-client"], "ngtcp2")
        except StackNotReady:
            pass  # not Debian's: the user's own build
    return fingerprint([Path(client), Path(server)])


register(Ngtcp2())
