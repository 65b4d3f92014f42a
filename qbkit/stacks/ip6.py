"""IPv6: which stacks have it, and the addresses of an experiment with it.

Most of our drivers know IPv4 alone, and what they are compiled from may not change, because the
names of published runs depend on it.
"""

from __future__ import annotations

import ipaddress

from qbkit.errors import SpecError
from qbkit.stacks.base import Stack
from qbkit.stacks.tcp import Tcp, TcpApp, TcpAppIp6, TcpIp6

TAKE_ADDRESSES = frozenset({"msquic", "ngtcp2", "ngtcp2-0.12"})
"""Stacks whose programs take an address of either version."""
STACKS = sorted({*TAKE_ADDRESSES, Tcp.name})
PREFIX = int(ipaddress.ip_address("fd00::"))


def with_ip6(stack: Stack) -> Stack:
    """The stack whose programs speak IPv6; SpecError where there is none."""
    if type(stack) in (Tcp, TcpApp):
        return TcpIp6() if type(stack) is Tcp else TcpAppIp6()
    if stack.name in TAKE_ADDRESSES:
        return stack
    raise SpecError(
        f"{stack.name} runs over IPv4 alone here; over IPv6 do {', '.join(STACKS)}; "
        "take one of them, or leave out ip_version"
    )


def address(four: str) -> str:
    """The IPv6 address of the host that has an IPv4 address otherwise: that in fd00::/96."""
    return str(ipaddress.IPv6Address(PREFIX + int(ipaddress.IPv4Address(four))))


def command(words: list[str], fours: dict[str, int]) -> list[str]:
    """A program's words with IPv6 addresses in place of IPv4 ones, each given with its port."""
    for four, port in fours.items():
        six = address(four)
        words = [w.replace(f"{four}:{port}", f"[{six}]:{port}").replace(four, six) for w in words]
    return words
