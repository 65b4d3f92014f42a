"""Jars of Maven Central, which come by their address, with the right hash only.

Maven itself is not needed. `MIRROR` names another repository with the same layout.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from qbkit.stacks.toolchains.build import build_once
from qbkit.stacks.toolchains.source_packages import fetch_checked

CENTRAL = "https://repo.maven.apache.org/maven2"
MIRROR = "QBKIT_MAVEN_MIRROR"
"""Environment variable with the address of a repository to use instead of `CENTRAL`."""


@dataclass(frozen=True)
class Jar:
    """One release of an artifact, with the SHA-256 of its jar."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Name of the jar."""
        return f"{self.artifact}-{self.version}.jar"

    def address(self) -> str:
        """As Maven finds it."""
        repository = os.environ.get(MIRROR, CENTRAL).rstrip("/")
        group = self.group.replace(".", "/")
        return f"{repository}/{group}/{self.artifact}/{self.version}/{self.file}"

    def fetch(self) -> Path:
        """The jar, in the cache; raises StackNotReady."""
        return build_once(f"{self.artifact}-jar", self.sha256[:12], self._save) / self.file

    def _save(self, folder: Path) -> None:
        content = fetch_checked(self.address(), self.file, self.sha256)
        (folder / self.file).write_bytes(content)


def listed_jars(path: Path) -> list[Jar]:
    """The jars that a file lists: group, artifact, version and SHA-256, one jar a line."""
    lines = path.read_text().splitlines()
    return [Jar(*line.split()) for line in lines if line and not line.startswith("#")]
