"""IPv6: which stacks have it, and the addresses of an experiment with it.

Most of our drivers know IPv4 alone, and what they are compiled from may not change, because the
names of published runs depend on it. Those of `Stack.for_app` are others, which know both.
"""

from __future__ import annotations

import ipaddress

from qbkit.errors import SpecError
from qbkit.stacks.base import Stack, changed
from qbkit.stacks.quic_go import MOUNT as QUIC_GO_MOUNT
from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.registry import all_stacks

TAKE_ADDRESSES = frozenset({"msquic", "ngtcp2", "ngtcp2-0.12"})
"""Stacks whose programs take an address of either version."""
BESIDE_QUIC_GO = frozenset({"chromium", "google-quiche", "haproxy", "nginx", "nginx-1.26"})
"""The same, but the other end of their flows is our driver of quic-go."""
PREFIX = int(ipaddress.ip_address("fd00::"))


def with_ip6(stack: Stack, **more: bool) -> Stack:
    """The stack whose programs speak IPv6; SpecError where there is none.

    ``more`` is what `Stack.with_more` takes beside it.
    """
    if stack.name in TAKE_ADDRESSES:
        return stack.with_more(**more)
    if stack.name in BESIDE_QUIC_GO:
        return _beside_quic_go(stack)
    if stack.ip6:
        return stack.with_more(ip6=True, **more)
    raise SpecError(
        f"{stack.name} runs over IPv4 alone here; over IPv6 do {', '.join(names())}; "
        "take one of them, or leave out ip_version"
    )


def names() -> list[str]:
    """The stacks that have it."""
    by_driver = {stack.name for stack in all_stacks() if stack.ip6}
    return sorted({*by_driver, *TAKE_ADDRESSES, *BESIDE_QUIC_GO})


def _beside_quic_go(stack: Stack) -> Stack:
    """The same stack, but the quic-go at the other end is that of `Stack.for_app`."""
    other = QuicGo().for_app()
    (folder,) = other.mounts().values()
    status = stack.status() if other.status().ready else other.status()
    return changed(
        stack,
        name=f"{stack.name}-ip6",
        status=lambda _: status,
        version=lambda _: f"{stack.version()}, with IPv6 {other.version()}",
        mounts=lambda _: {**stack.mounts(), QUIC_GO_MOUNT: folder},
    )


def address(four: str) -> str:
    """The IPv6 address of the host that has an IPv4 address otherwise: that in fd00::/96."""
    return str(ipaddress.IPv6Address(PREFIX + int(ipaddress.IPv4Address(four))))


def command(words: list[str], fours: dict[str, int]) -> list[str]:
    """A program's words with IPv6 addresses in place of IPv4 ones, each given with its port."""
    for four, port in fours.items():
        six = address(four)
        words = [w.replace(f"{four}:{port}", f"[{six}]:{port}").replace(four, six) for w in words]
        words = [w.replace(f"quic4@[{six}]", f"quic6@[{six}]") for w in words]  # haproxy's
    return words
