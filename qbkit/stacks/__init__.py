"""Who sends: the registry of stacks, and one file for each."""

from qbkit.stacks import (
    aioquic,
    google_quiche,
    msquic,
    quic_go,
    quiche,
    quinn,
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
    "get",
    "google_quiche",
    "msquic",
    "quic_go",
    "quiche",
    "quinn",
    "register",
    "tcp",
    "tquic",
]
