"""Who sends: the registry of stacks, and one file for each."""

from qbkit.stacks import (
    aioquic,
    chromium,
    clients,
    external,
    google_quiche,
    msquic,
    neqo,
    ngtcp2,
    qbkit_cca,
    quic_go,
    quiche,
    quiche_0_7,
    quinn,
    s2n_quic,
    servers,
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
    "clients",
    "external",
    "get",
    "google_quiche",
    "msquic",
    "neqo",
    "ngtcp2",
    "qbkit_cca",
    "quic_go",
    "quiche",
    "quiche_0_7",
    "quinn",
    "register",
    "s2n_quic",
    "servers",
    "tcp",
    "tquic",
]
