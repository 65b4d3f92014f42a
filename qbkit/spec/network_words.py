"""Rate, RTT and buffer of a link in a few words: ``20 Mbit/s, 50 ms, 1 BDP``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FORMS = {"rate_mbps": "{:g} Mbit/s", "rtt_ms": "{:g} ms", "buffer_bdp": "{:g} BDP"}
"""Field of a link → how its value is written."""


def network_text(link: Any, fields: Iterable[str] = FORMS) -> str:
    """Fields of `FORMS` of anything that has them as attributes."""
    return ", ".join(FORMS[name].format(getattr(link, name)) for name in fields)
