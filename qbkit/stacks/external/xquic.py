"""xquic (Alibaba), by its sample programs ``test_client`` and ``test_server``.

The client uploads bodies of at most 100 MiB by HTTP/3, two at a time so that it never pauses.
Command line: ``test_client -h`` and ``test_server -h``, in the sources usage() of
tests/test_client.c and tests/test_server.c. The server reads its certificate from its working
folder. ``-C`` turns on pacing, which BBR expects. Windows are the library's; no option widens them.
Controllers other than CUBIC and BBR must be compiled in (XQC_ENABLE_RENO, _BBR2, _COPA).
"""

from __future__ import annotations

import shlex
from typing import ClassVar

from qbkit.errors import SpecError
from qbkit.stacks.base import Options, Transfer
from qbkit.stacks.external.launcher import CERTIFICATE, KEY, External
from qbkit.stacks.registry import register

MAX_BODY_BYTES = 100 * 1024 * 1024
"""MAX_BUF_SIZE of both programs."""
MANY = "1000000"
QUIET = ["-l", "e", "--qlog_disable", "-o", "/dev/null"]


class Xquic(External):
    """``test_client`` uploads to ``test_server``."""

    name: ClassVar[str] = "xquic"
    source: ClassVar[str] = "external: github.com/alibaba/xquic"
    setting: ClassVar[str] = "QBKIT_XQUIC"
    programs: ClassVar[tuple[str, ...]] = ("test_client", "test_server")
    on_path: ClassVar[bool] = False
    how: ClassVar[str] = "build test_client and test_server of github.com/alibaba/xquic"
    names: ClassVar[dict[str, str]] = {
        "cubic": "c",
        "reno": "r",
        "bbr": "b",
        "bbr2": "bbr2",
        "copa": "P",
    }
    options: ClassVar[dict[str, str]] = {
        "pacing": "send with pacing; the default for the BBRs and Copa"
    }

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The server, started in the folder of its certificate; its responses have one byte."""
        ip, _, port = address.rpartition(":")
        command = [self.at("test_server"), "-a", ip, "-p", port, "-s", "1", *QUIET]
        links = f"ln -s {CERTIFICATE} server.crt && ln -s {KEY} server.key"
        script = f'cd "$(mktemp -d)" && {links} && exec {shlex.join(command)}'
        return self.listen(address, ["/bin/sh", "-c", script])

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The client, with one body of ``size_bytes``, or one body after the other."""
        if transfer.size_bytes and transfer.size_bytes > MAX_BODY_BYTES:
            raise SpecError(
                f"xquic's test_client sends at most {MAX_BODY_BYTES} bytes, not "
                f"{transfer.size_bytes}; give the flow a duration instead"
            )
        ip, _, port = transfer.address.rpartition(":")
        controller = transfer.controller
        command = [self.at("test_client"), "-a", ip, "-p", port, "-c", self.names[controller]]
        if transfer.options.get("pacing", controller.startswith("bbr") or controller == "copa"):
            command.append("-C")
        command += ["-s", str(transfer.size_bytes or MAX_BODY_BYTES), "-t", "10", *QUIET]
        if not transfer.size_bytes:
            command += ["-P", "2", "-n", MANY]
        return self.connect(command, transfer.duration_s)


register(Xquic())
