"""Options of Reno and CUBIC: β, and the number of flows that one behaves like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .options import number, whole

OPTIONS = {
    "emulated_flows": whole("flows it behaves like: chromium's 2 (1)", 1, high=100),
    "beta": number(
        "part of one flow's window that a loss leaves (CUBIC 0.7, Reno 0.5)", None, 0.05, 0.95
    ),
}


def beta_of(option: Mapping[str, Any], one_flow_beta: float) -> float:
    """The part of the window that a loss leaves, by these options' values.

    N emulated flows share a loss: one of them backs off to β, so that (N − 1 + β)/N is left
    (chromium's ``tcp_cubic_sender_bytes``).
    """
    flows, beta = option["emulated_flows"], option["beta"]
    return (flows - 1 + (one_flow_beta if beta is None else beta)) / flows
