"""Programs of ours, other than the driver of the stack aioquic, that run with aioquic."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.aioquic import AioQuic


class BesideAioQuic(AioQuic):
    """The interpreter, modules and byte code of the stack, with another package to run.

    A class sets ``name``, ``folder`` and ``package``, the name of that folder.
    """

    folder: ClassVar[Path]
    """Our package."""

    @property
    def _mount(self) -> str:
        return f"/run/qb/stacks/{self.name}"

    def packages(self) -> dict[str, Path]:
        """The stack's packages and ours."""
        return {**super().packages(), f"{self._mount}/{self.package}": self.folder}

    def modules(self) -> tuple[str, ...]:
        """Ours."""
        return (f"{self.package}.__main__",)

    def env(self) -> dict[str, str]:
        """The folders to import from."""
        env = super().env()
        return {**env, "PYTHONPATH": f"{self._mount}:{env['PYTHONPATH']}"}
