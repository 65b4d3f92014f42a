"""Programs that send packets no kernel would: in Python with scapy (``drivers/crafted``)."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from qbkit import extras
from qbkit.errors import SpecError
from qbkit.spec.misbehaving import RECEIVERS, Receiver
from qbkit.stacks.aioquic import FLAGS, python, site_packages_of
from qbkit.stacks.base import GuestProgram, Options, Stack
from qbkit.stacks.tcp import Tcp
from qbkit.stacks.toolchains import byte_code
from qbkit.stacks.toolchains.build import fingerprint

DRIVER = Path(__file__).parents[1] / "drivers/crafted"
MOUNT = "/run/qb/stacks/crafted"
SITE_MOUNT = "/run/qb/stacks/crafted-site"
MODULES = ("crafted.attacker", "crafted.receiver")


class Crafted(GuestProgram):
    """The scapy of this Python environment, and our programs with it."""

    name = "crafted"
    source = "the Python package scapy"

    def version(self) -> str:
        """Version of scapy, and a fingerprint of our programs; MissingExtra without scapy."""
        extras.require("scapy", to="craft packets")
        ours = fingerprint(DRIVER.glob("*.py"), byte_code.version(), *FLAGS)
        return f"scapy {importlib.metadata.version('scapy')}, driver {ours}"

    def argv(self, module: str, *words: str) -> list[str]:
        """The command that runs one of `MODULES`."""
        return [python(), *FLAGS, *byte_code.flags(self.name), "-m", module, *words]

    def env(self) -> dict[str, str]:
        """The folders to import from."""
        return {
            "PYTHONPATH": f"{MOUNT}:{SITE_MOUNT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
        }

    def mounts(self) -> dict[str, Path]:
        """Our programs, scapy, and the byte code of both."""
        folders = {f"{MOUNT}/{DRIVER.name}": DRIVER, SITE_MOUNT: site_packages_of("scapy")}
        words, path = [python(), *FLAGS], self.env()["PYTHONPATH"]
        code = byte_code.mounts(self.name, words, MODULES, path, folders, self.version())
        return {**folders, **code}


class TcpToCrafted(Tcp):
    """The kernel's TCP, which sends to a receiver that misbehaves."""

    name = "tcp-to-crafted"

    def __init__(self, receiver: Receiver) -> None:
        """Of a flow with this receiver."""
        self.receiver, self.crafted = receiver, Crafted()

    def version(self) -> str:
        """Versions of both ends."""
        return f"{super().version()}, {self.crafted.version()}"

    def mounts(self) -> dict[str, Path]:
        """What both ends need."""
        return {**super().mounts(), **self.crafted.mounts()}

    def env(self) -> dict[str, str]:
        """What Python needs; the sender has no use for it."""
        return self.crafted.env()

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The crafted receiver, which has no options of the kernel's."""
        kind = self.receiver.kind
        number = f"{getattr(self.receiver, RECEIVERS[kind]):g}"
        words = ["--listen", address, "--out", out, kind, number]
        return self.crafted.argv("crafted.receiver", *words)


def to_crafted(stack: Stack, controller: str, receiver: Receiver) -> Stack:
    """The stack that sends to a receiver that misbehaves.

    Raises SpecError if it is not the kernel's, or its controller needs ECN.
    """
    if isinstance(stack, Tcp) and controller == "dctcp":
        raise SpecError(
            "tcp:dctcp needs ECN, which a receiver that misbehaves does not have; take another "
            "controller, or leave out receiver"
        )
    if isinstance(stack, Tcp):
        return TcpToCrafted(receiver)
    raise SpecError(
        f"{stack.name} has no receiver {receiver.kind}: only TCP segments can be crafted, as "
        "QUIC's are encrypted; take tcp, or leave out receiver"
    )
