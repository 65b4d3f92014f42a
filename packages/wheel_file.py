"""Write a wheel: files with their modes, metadata and RECORD, the same bytes for the same input."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LINUX = "py3-none-manylinux_2_34_x86_64"
"""What is compiled on Debian 12 needs a C library of 2.34 or newer."""
ANY = "py3-none-any"
DATE = (2026, 1, 1, 0, 0, 0)
MOST_BYTES = 100_000_000


@dataclass
class Wheel:
    """A distribution that is only data, with one module to find it by."""

    name: str
    version: str
    summary: str
    licence: str
    tag: str = LINUX
    requires: tuple[str, ...] = ()
    group: str = "qbkit.built"
    files: dict[str, Path | bytes] = field(default_factory=dict)
    """Path in the module → file or content."""

    @property
    def module(self) -> str:
        """The name that the distribution is imported by."""
        return self.name.replace("-", "_")

    def add(self, folder: Path, place: str) -> None:
        """Add the files of a folder, without byte code."""
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                self.files[f"{place}/{path.relative_to(folder)}"] = path

    def write(self, out: Path) -> Path:
        """Write the wheel into a folder; ValueError where it is too large for a registry."""
        info = f"{self.module}-{self.version}.dist-info"
        content: dict[str, Path | bytes] = {
            f"{self.module}/{name}": data for name, data in self.files.items()
        }
        if self.files:
            content[f"{self.module}/__init__.py"] = f'"""{self.summary}"""\n'.encode()
            points = f"[{self.group}]\n{self.name} = {self.module}\n"
            content[f"{info}/entry_points.txt"] = points.encode()
        content[f"{info}/METADATA"] = self._metadata().encode()
        kind = f"Wheel-Version: 1.0\nGenerator: qbkit\nRoot-Is-Purelib: true\nTag: {self.tag}\n"
        content[f"{info}/WHEEL"] = kind.encode()
        target = out / f"{self.module}-{self.version}-{self.tag}.whl"
        _zip(target, content, f"{info}/RECORD")
        if target.stat().st_size > MOST_BYTES:
            raise ValueError(f"{target.name} has {target.stat().st_size / 1e6:.0f} MB")
        return target

    def _metadata(self) -> str:
        needs = "".join(f"Requires-Dist: {need}\n" for need in self.requires)
        return (
            f"Metadata-Version: 2.4\nName: {self.name}\nVersion: {self.version}\n"
            f"Summary: {self.summary}\nLicense-Expression: {self.licence}\n"
            f"Requires-Python: >=3.11\n{needs}"
        )


def _zip(target: Path, content: Mapping[str, Path | bytes], record: str) -> None:
    """Write the archive, with a line for each file in its RECORD."""
    lines = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in content.items():
            raw = data if isinstance(data, bytes) else data.read_bytes()
            runs = isinstance(data, Path) and bool(data.stat().st_mode & 0o111)
            _add(archive, name, raw, 0o755 if runs else 0o644)
            digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(raw)}\n")
        _add(archive, record, "".join([*lines, f"{record},,\n"]).encode(), 0o644)


def _add(archive: zipfile.ZipFile, name: str, raw: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, DATE)
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, raw)
