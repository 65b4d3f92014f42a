"""Another QUIC stack's receiver for a sender: what then changes is the receiver's doing."""

from __future__ import annotations

from pathlib import Path

from qbkit.errors import SpecError
from qbkit.spec.misbehaving import RECEIVER_FORMS, RECEIVERS
from qbkit.stacks.about.listing import all_stacks
from qbkit.stacks.base import Options, ServingStack, Stack, Status, Transfer, changed
from qbkit.stacks.external.program import Configured
from qbkit.stacks.registry import get
from qbkit.suggestions import did_you_mean

SPEAKING = (
    *("aioquic", "kwik", "lsquic", "msquic", "noq", "openssl", "picoquic", "qbkit", "quic-go"),
    *("quiche", "quinn", "s2n-quic", "tquic", "x-net-quic"),
)
"""Stacks whose drivers speak with each other: QUIC with ALPN ``perf``, and one stream."""


class ToReceiver(Stack):
    """One stack's sender and another one's receiver, which has its defaults."""

    def __init__(self, sender: Stack, receiver: Stack) -> None:
        """Of two stacks that speak QUIC."""
        self.sender, self.receiver = sender, receiver

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of both."""
        return f"{self.sender.name} to {self.receiver.name}"

    @property
    def most_window_bytes(self) -> int:  # type: ignore[override]
        """The receiver's."""
        return self.receiver.most_window_bytes

    def version(self) -> str:
        """Versions of both ends."""
        return f"{self.sender.version()}; {self.receiver.name}: {self.receiver.version()}"

    def transport(self) -> str:
        """The sender's."""
        return self.sender.transport()

    def status(self) -> Status:
        """Whether both can run here."""
        mine = self.sender.status()
        return self.receiver.status() if mine.ready else mine

    def controllers(self) -> tuple[str, ...]:
        """The sender's."""
        return self.sender.controllers()

    def mounts(self) -> dict[str, Path]:
        """What both ends need."""
        return {**self.sender.mounts(), **self.receiver.mounts()}

    def program(self) -> list[str]:
        """The sender's."""
        return self.sender.program()

    def env(self) -> dict[str, str]:
        """What the sender needs; the receiver sees it, too."""
        return self.sender.env()

    def receiver_env(self) -> dict[str, str]:
        """What the receiver needs."""
        return self.receiver.env()

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The sender's command."""
        return self.sender.send_argv(transfer)

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The receiver's command; ``options`` are the sender's, so it has none."""
        return self.receiver.recv_argv(address=address, out=out, options={})


def to_stack(stack: Stack, name: str) -> Stack:
    """The stack that sends to the receiver of another one; SpecError if it cannot."""
    able = [each.name for each in all_stacks() if exchanges(each)]
    try:
        other = get(name)
    except SpecError:
        near = did_you_mean(name, [*able, *RECEIVERS])
        raise SpecError(f"there is no receiver {name!r}{near}; write {RECEIVER_FORMS}") from None
    for each, does in ((stack, "sends to"), (other, "receives from")):
        if not exchanges(each):
            crafted = f"; tcp has {' and '.join(RECEIVERS)}" if stack.name == "tcp" else ""
            raise SpecError(
                f"{each.name} {does} its own driver alone{crafted}; {', '.join(able)} can have "
                "each other's receivers"
            )
    if stack.certificate:  # what its TLS library cannot verify, another's may show
        other = changed(other, certificate=stack.certificate)
    return ToReceiver(stack, other)


def exchanges(stack: Stack) -> bool:
    """Whether its two ends speak with those of another stack that does so, too."""
    own = isinstance(stack, Configured) and not isinstance(stack, ServingStack)
    return own or stack.name.partition("@")[0] in SPEAKING
