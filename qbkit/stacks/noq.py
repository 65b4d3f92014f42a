"""noq, a fork of quinn, with its CUBIC, NewReno and BBRv3 (draft-ietf-ccwg-bbr), from its crate."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.quinn import Quinn
from qbkit.stacks.registry import register


class Noq(Quinn):
    """quinn's driver, compiled against the fork; only ``api.rs`` differs."""

    name: ClassVar[str] = "noq"
    source: ClassVar[str] = "crate noq, a fork of quinn"
    controller_names: ClassVar[tuple[str, ...]] = ("cubic", "newreno", "bbr3")
    crate: ClassVar[str] = "noq"
    transport_crate: ClassVar[str] = "noq-proto"

    def _driver_folders(self) -> list[Path]:
        """Its own, and quinn's, whose files it compiles."""
        return [*super()._driver_folders(), self.workspace / "quinn-flow"]


register(Noq())
