"""Who sends: the registry of stacks, and one file for each."""

from qbkit.stacks import (
    aioquic,
    chromium,
    external,
    google_quiche,
    msquic,
    neqo,
    ngtcp2,
    quic_go,
    quiche,
    quinn,
    s2n_quic,
    tcp,
    tquic,
)
from qbkit.stacks.base import ServingStack, Stack, Status
from qbkit.stacks.registry import all_stacks, get, register

__all__ = [
    "ServingStack",
    "Stack",
    "Status",
    "aioquic",
    "all_stacks",
    "chromium",
    "external",
    "get",
    "google_quiche",
    "msquic",
    "neqo",
    "ngtcp2",
    "quic_go",
    "quiche",
    "quinn",
    "register",
    "s2n_quic",
    "tcp",
    "tquic",
]
