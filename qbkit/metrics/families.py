"""Which implementations can be compared: those of one congestion-control algorithm."""

from __future__ import annotations

from collections.abc import Iterable

FAMILIES = {"cubic": "CUBIC", "reno": "Reno", "bbr": "BBR"}
"""The three algorithms of the papers; the key is also the kernel's name of its own."""


def family(controller: str) -> str:
    """Key of FAMILIES that a controller (``newreno``, ``bbr2``, …) belongs to, "" for none."""
    if controller.startswith("bbr"):
        return "bbr"
    return next((key for key in ("cubic", "reno") if controller.endswith(key)), "")


def kernel_counterpart(name: str) -> str:
    """``tcp:controller`` that ``stack:controller`` is to be compared with, "" for none."""
    key = family(name.partition(":")[2])
    return f"tcp:{key}" if key else ""


def by_family(names: Iterable[str]) -> dict[str, list[str]]:
    """Names ``stack:controller`` under the algorithm's name, the kernel's first; rest: "Others"."""
    groups: dict[str, list[str]] = {}
    for key, title in [*FAMILIES.items(), ("", "Others")]:
        mine = [name for name in names if family(name.partition(":")[2]) == key]
        if mine:
            groups[title] = sorted(mine, key=lambda name: (name != f"tcp:{key}", name))
    return groups
