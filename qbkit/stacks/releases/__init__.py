"""Released versions of a stack as stacks of their own: ``quinn@0.8.4``."""

from qbkit.stacks.releases import (
    aioquic,
    google_quiche,
    noq,
    openssl,
    picoquic,
    quic_go,
    quiche,
    quinn,
    s2n_quic,
    tquic,
    x_net_quic,
)

__all__ = [
    "aioquic",
    "google_quiche",
    "noq",
    "openssl",
    "picoquic",
    "quic_go",
    "quiche",
    "quinn",
    "s2n_quic",
    "tquic",
    "x_net_quic",
]
