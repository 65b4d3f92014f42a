"""This machine's curl over HTTP/2; its own report of times becomes the load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import RunFailed
from qbkit.stacks.base import Status
from qbkit.stacks.toolchains.build import GUEST_PATH, program_fingerprint, run_tool
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS
from qbkit.stacks.web.base import HOST, Target, WebClient, register_client

REPORT = "%{stderr}%{json}\\n%{onerror}%{errormsg}\\n"
"""What curl writes when it ends: its times, and as the last line why it failed, if it did."""
QUIET, DISCARD = ["--silent", "--show-error", "--fail"], ["--output", "/dev/null", "-w", REPORT]
WAYS = {"h2": ["--http2"], "h3": ["--http3-only"]}
PROTOCOLS = {"1.1": "http/1.1", "2": "h2", "3": "h3"}


class Curl(WebClient):
    """curl without verification of certificates, as in the paper by Yu and Benson (WWW '21)."""

    name: ClassVar[str] = "curl"
    source: ClassVar[str] = "Debian's package curl"
    protocols: ClassVar[tuple[str, ...]] = ("h2",)
    tls: ClassVar[tuple[str, ...]] = ()
    """Options for TLS."""

    def version(self) -> str:
        """curl's version, and the fingerprint of program and libraries."""
        path = _path()
        if path is None:
            return "not installed"
        return f"{run_tool([path, '--version'], 'curl').split()[1]}, {program_fingerprint(path)}"

    def status(self) -> Status:
        """Ready when curl is installed and speaks HTTP/2."""
        path = _path()
        if path is None or "HTTP2" not in run_tool([path, "--version"], "curl"):
            return Status(False, "apt-get install curl")
        return Status(True)

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from OpenSSL, so that runs repeat."""
        return NO_RANDOM_INSTRUCTIONS

    def argv(
        self, *, address: str, protocol: str, path: str, out: str, zero_rtt: bool
    ) -> list[str]:
        """curl, which writes the report to stderr, that is to the log of the receiver."""
        return [str(_path() or "curl"), "--http2", *options(address, path)]

    def url_argv(self, target: Target, *, protocol: str, verify: bool) -> list[str]:
        """curl without the user's settings and proxies, on one address of the host."""
        how = [*WAYS[protocol], *self.tls, "--noproxy", "*", *([] if verify else ["--insecure"])]
        ip = f"[{target.ip}]" if ":" in target.ip else target.ip
        where = ["--connect-to", f"::{ip}:{target.port}", target.url]  # for every name of a host
        # Without --globoff, {a,b} and [1-9] in a URL stand for several.
        return [*self.command_here(), "--disable", "--globoff", *how, *QUIET, *DISCARD, *where]

    def command_here(self) -> list[str]:
        """The start of a command line on this machine."""
        return [str(_path() or "curl")]

    def url_report(self, output: str) -> dict[str, Any]:
        """The last line that is JSON; RunFailed with curl's own words if the load failed."""
        lines = [line for line in output.splitlines() if line.strip()]
        reports = [json.loads(line) for line in lines if line.startswith("{")]
        if not reports:
            raise RunFailed(f"curl left no report of its times: {(lines or ['no output'])[-1]}")
        found = reports[-1]
        if found.get("exitcode"):
            raise RunFailed(f"curl: {found['errormsg'] or lines[-1]}")
        return {
            "version": 1,
            "client": self.name,
            "client_version": found["curl_version"].split()[0],
            "protocol": PROTOCOLS.get(found["http_version"], found["http_version"]),
            "connect_s": found["time_connect"],
            "handshake_s": found["time_appconnect"],
            "first_byte_s": found["time_starttransfer"],
            "last_byte_s": found["time_total"],
            "bytes": found["size_download"],
            "status": found["http_code"],
        }

    def load(self, folder: Path) -> dict[str, Any]:
        """The report in its log."""
        return self.url_report((folder / "receiver.log").read_text(errors="replace"))


def options(address: str, path: str) -> list[str]:
    """The options of curl for either protocol, and the URL."""
    ip, _, port = address.rpartition(":")
    where = ["--resolve", f"{HOST}:{port}:{ip}", f"https://{HOST}:{port}{path}"]
    return [*QUIET, "--insecure", *DISCARD, *where]


def _path() -> Path | None:
    found = shutil.which("curl", path=GUEST_PATH)
    return Path(found) if found else None


register_client(Curl())
