"""quicly (Fastly), by its sample program ``cli``, which is server and client.

Only its server sends much: a client that requests the path /N receives N bytes. Command line:
``cli --help``, in the sources usage() of src/cli.c (``-C ALGO[:IW[:p]]``, ``-M``, ``-m``) and
README.md, "Running quicly". With ``-O`` the client discards what it receives.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import ServingStack, Transfer
from qbkit.stacks.external.launcher import CERTIFICATE, ENDLESS_BYTES, KEY, WINDOW_BYTES, External
from qbkit.stacks.registry import register

DEFAULT_WINDOW_PACKETS = 10
"""The default according to its help; the flag for pacing comes after the window."""


class Quicly(External, ServingStack):
    """``cli`` with a certificate sends to ``cli`` without."""

    name: ClassVar[str] = "quicly"
    source: ClassVar[str] = "external: github.com/h2o/quicly"
    setting: ClassVar[str] = "QBKIT_QUICLY"
    programs: ClassVar[tuple[str, ...]] = ("cli",)
    on_path: ClassVar[bool] = False
    how: ClassVar[str] = "build cli of github.com/h2o/quicly"
    names: ClassVar[dict[str, str]] = {"cubic": "cubic", "reno": "reno", "pico": "pico"}
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window",
        "pacing": "true: send with pacing",
    }

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """The server, which chooses the controller."""
        ip, _, port = transfer.address.rpartition(":")
        choice = self.names[transfer.controller]
        if transfer.options.keys() & {"initial_window_packets", "pacing"}:
            choice += f":{transfer.options.get('initial_window_packets', DEFAULT_WINDOW_PACKETS)}"
            choice += ":p" if transfer.options.get("pacing") else ""
        keys = ["-c", CERTIFICATE, "-k", KEY]
        return self.listen(transfer.address, [self.at("cli"), *keys, "-C", choice, ip, port])

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """The client, with windows that never limit."""
        windows = ["-m", str(WINDOW_BYTES), "-M", str(WINDOW_BYTES)]
        path = ["-p", f"/{transfer.size_bytes or ENDLESS_BYTES}"]
        command = [self.at("cli"), "-O", *windows, *path, *transfer.address.rsplit(":", 1)]
        return self.connect(command, transfer.duration_s)


register(Quicly())
