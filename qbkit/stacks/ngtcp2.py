"""ngtcp2 1.11 as Debian packages it: its sample client uploads to its sample server.

Its BBR is the newer of the two that 0.12 has (`qbkit.stacks.ngtcp2_0_12`). Both programs speak
HTTP/3, on GnuTLS; their options are those of ``gtlsclient --help``. The client is the sender, so
its ``--cc`` chooses the controller. Its qlog, which has whole milliseconds only, becomes the
telemetry; the server does not report how much it received. A small preloaded library makes
``std::random_device``, which seeds BBR's randomness, read the guest's seeded source.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Say, Stack, Status, Transfer
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import compile_c, fingerprint
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.toolchains.processor import SAME_LIBRARY_FOLDERS

DRIVER = Path(__file__).parent / "drivers/ngtcp2"
SERVER = Path(__file__).parent / "drivers/server"
MOUNT, SERVER_MOUNT = "/run/qb/stacks/ngtcp2", "/run/qb/stacks/server"
RANDOM_MOUNT = "/run/qb/stacks/random_device"
PYTHON = ["/usr/bin/python3", "-S", "-B"]
PACKAGES = ("ngtcp2-client", "ngtcp2-server")
CLIENT, RECEIVER = "usr/bin/gtlsclient", "usr/sbin/gtlsserver"
WINDOW = "128M"
WINDOWS = ("max-data", "max-stream-data-bidi-remote", "max-window", "max-stream-window")


class Ngtcp2(Stack):
    """``gtlsclient`` and ``gtlsserver`` of a suite of Debian."""

    name: ClassVar[str] = "ngtcp2"
    source: ClassVar[str] = "packages ngtcp2-client and ngtcp2-server of Debian bookworm-backports"
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "ngtcp2-1.11", "bookworm-backports", PACKAGES, (CLIENT, RECEIVER)
    )
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
        """Those that the client's help lists."""
        return ("cubic", "reno", "bbr")

    def version(self) -> str:
        """Versions of the Debian package and of our driver."""
        files = [Path(__file__), *DRIVER.glob("*.*"), *SERVER.glob("*.py")]
        package = self.debian.version(PACKAGES[0]) if self.debian.ready else "not fetched"
        return f"{package}, driver {fingerprint(files)}"

    def status(self) -> Status:
        """Ready when the packages are unpacked."""
        how = f"qbkit stacks build {self.name}"
        return Status(True) if self.debian.ready else Status(False, how)

    def build(self, say: Say = lambda _: None) -> None:
        """Fetch and unpack the packages, and compile the preloaded library."""
        if not self.debian.ready:
            self.debian.build(say)
        _library()

    def program(self) -> list[str]:
        """The client."""
        return self.debian.command(CLIENT)

    def mounts(self) -> dict[str, Path]:
        """The programs, the scripts that start them, and the library preloaded into them."""
        ours = {MOUNT: DRIVER, SERVER_MOUNT: SERVER, RANDOM_MOUNT: _library().parent}
        return {self.debian.mount: self.debian.folder, **ours}

    def env(self) -> dict[str, str]:
        """Preload the library."""
        return {"LD_PRELOAD": f"{RANDOM_MOUNT}/random_device.so", **SAME_LIBRARY_FOLDERS}

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The server, which reads whatever is uploaded."""
        ip, _, port = address.rpartition(":")
        command = [*self.debian.command(RECEIVER), "--quiet", f"--htdocs={MOUNT}"]
        command += [f"--{name}={WINDOW}" for name in WINDOWS]
        if "ack_every_packets" in options:
            command.append(f"--ack-thresh={options['ack_every_packets']}")
        if options.get("qlog"):
            command.append(f"--qlog-dir={out}")
        keys = [f"{CERTIFICATE_MOUNT}/key.pem", f"{CERTIFICATE_MOUNT}/cert.pem"]
        return [*PYTHON, f"{SERVER_MOUNT}/serve.py", port, "--", *command, ip, port, *keys]

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The client, which uploads for a duration or a number of bytes."""
        ip, _, port = transfer.address.rpartition(":")
        start = [*PYTHON, f"{MOUNT}/upload.py", "--out", transfer.out, *transfer.limit_words()]
        if transfer.options.get("qlog"):
            start.append("--qlog")
        command = [*self.program(), f"--cc={transfer.controller}", "--exit-on-all-streams-close"]
        command.append("--handshake-timeout=10s")
        if transfer.options.get("pmtud") is False:
            command.append("--no-pmtud")
        return [*start, "--", *command, ip, port, f"https://{transfer.address}/"]


def _library() -> Path:
    return compile_c(DRIVER / "random_device.c", "random_device.so", shared=True)


register(Ngtcp2())
