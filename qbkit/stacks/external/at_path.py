"""A program named by its path in place of a stack: ``./build/mine:cubic``, without any table."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Options
from qbkit.stacks.external.program import Configured
from qbkit.stacks.toolchains.build import fingerprint


class AtPath(Configured):
    """A program that speaks the contract of a driver; any word is one of its controllers."""

    name: str  # type: ignore[misc]  # that of an instance
    names: ClassVar[dict[str, str]] = {}
    version_command: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: str) -> None:
        self.name, self.source = path, f"external: {path}"  # type: ignore[misc]
        self.file = Path(path).resolve()  # type: ignore[misc]

    def check(self, controller: str, options: Options, source: str | None) -> None:
        """Leave controllers and options to the program, which alone knows them."""

    def _mount(self, file: Path) -> str:
        return f"/run/qb/stacks/program-{fingerprint([], self.name)}"
