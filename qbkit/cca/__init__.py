"""Congestion controllers in Python: the interface, and the built-in ones in ``builtin/``.

Runs in the guest as on the host, on the standard library alone. How to write one:
``docs/howto/own-controller.md``.
"""

from .controller import NOT_PACED, Controller, RateController, Settings, WindowController
from .events import (
    Ack,
    AppLimited,
    DeliverySample,
    Idle,
    Loss,
    Packet,
    Sent,
    SpuriousLoss,
    Timeout,
)
from .loss_based import LossBasedController
from .options import Option, number, switch, whole
from .rounds import RoundTrips

__all__ = [
    "NOT_PACED",
    "Ack",
    "AppLimited",
    "Controller",
    "DeliverySample",
    "Idle",
    "Loss",
    "LossBasedController",
    "Option",
    "Packet",
    "RateController",
    "RoundTrips",
    "Sent",
    "Settings",
    "SpuriousLoss",
    "Timeout",
    "WindowController",
    "number",
    "switch",
    "whole",
]
