"""noq, a fork of quinn, with its CUBIC, NewReno and BBRv3 (draft-ietf-ccwg-bbr), from its crate."""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.quinn import Quinn
from qbkit.stacks.registry import register


class Noq(Quinn):
    """quinn's driver, compiled against the fork; only ``api.rs`` differs."""

    name = crate = "noq"
    source = "crate noq, a fork of quinn"
    controller_names = ("cubic", "newreno", "bbr3")
    transport_crate = "noq-proto"

    def _driver_folders(self) -> list[Path]:
        """Its own, and quinn's, whose files it compiles."""
        return [*super()._driver_folders(), self.workspace / "quinn-flow"]


register(Noq())
