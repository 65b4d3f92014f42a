"""Families of controllers: implementations of the same algorithm, which can be compared."""

from __future__ import annotations

from collections.abc import Iterable

from qbkit.spec.flow import controller_of

FAMILIES = {"cubic": "CUBIC", "reno": "Reno", "bbr": "BBR"}
"""The three algorithms of the papers; each key is also the name of the kernel's controller."""


def family(controller: str) -> str:
    """Key in `FAMILIES` of a controller (``newreno``, ``bbr2``, …); "" for none."""
    if controller.startswith("bbr"):
        return "bbr"
    return next((key for key in ("cubic", "reno") if controller.endswith(key)), "")


def kernel_counterpart(name: str) -> str:
    """The ``tcp:controller`` to compare ``stack:controller`` with; "" for none."""
    key = family(controller_of(name))
    return f"tcp:{key}" if key else ""


def by_family(names: Iterable[str]) -> dict[str, list[str]]:
    """Names ``stack:controller`` by algorithm, the kernel's first; the rest are under "Others"."""
    groups: dict[str, list[str]] = {}
    several = list(names)
    for key, title in [*FAMILIES.items(), ("", "Others")]:
        mine = [name for name in several if family(controller_of(name)) == key]
        if mine:
            groups[title] = sorted(mine, key=lambda name: (name != f"tcp:{key}", name))
    return groups
