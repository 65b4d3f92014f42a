"""The licences of what a wheel's programs are compiled from: a list, and each text once."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from qbkit.errors import StackNotReady
from qbkit.stacks import openssl, picoquic
from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains.rust import RustProgram, locked_crates
from qbkit.stacks.toolchains.source_packages import SourcePackage

TEXT = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.I)
CRATES = Path.home() / ".cargo/registry/src"
C_SOURCES: dict[str, SourcePackage] = {
    "picoquic": picoquic.AIOPQUIC,
    "openssl": openssl.OPENSSL,
}
"""Stack in C → what it is compiled from. lsquic's crate carries no licence text."""


class Component(NamedTuple):
    """A package in a program: its name and version, licence, and the folder of its source."""

    name: str
    licence: str
    folder: Path


def files(group: str, stacks: Iterable[Stack]) -> dict[str, Path | bytes]:
    """Path in the wheel → file: LICENCES.md, and the texts by their hash."""
    find = {"rust": _crates, "go": _modules, "c": _sources}[group]
    found: dict[str, Path | bytes] = {}
    lines = ["# Licences", "", "| component | licence | texts |", "|---|---|---|"]
    for part in sorted({part for stack in stacks for part in find(stack)}):
        texts = []
        for path in _texts(part.folder):
            name = f"licences/{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}.txt"
            found[name] = path
            texts.append(name)
        lines.append(f"| {part.name} | {part.licence} | {', '.join(dict.fromkeys(texts))} |")
    return {**found, "LICENCES.md": ("\n".join(lines) + "\n").encode()}


def _texts(folder: Path) -> Iterator[Path]:
    """The files with licences in a source, near its top."""
    for depth in ("*", "*/*", "*/*/*"):
        found = [p for p in sorted(folder.glob(depth)) if p.is_file() and TEXT.match(p.name)]
        yield from (p for p in found if p.suffix not in (".rs", ".go", ".py", ".pl", ".c", ".h"))


def _crates(stack: Stack) -> Iterator[Component]:
    assert isinstance(stack, RustProgram)
    for line in locked_crates(stack._program(), stack.workspace):
        name, version, checksum = line.split(" ")
        if not checksum:
            continue  # ours
        folder = next(CRATES.glob(f"*/{name}-{version}"), Path("/nonexistent"))
        manifest = folder / "Cargo.toml"
        package = tomllib.loads(manifest.read_text())["package"] if manifest.exists() else {}
        address = f"https://crates.io/crates/{name}/{version}"
        yield Component(address, str(package.get("license", "see the address")), folder)


def _modules(stack: Stack) -> Iterator[Component]:
    """The modules that a Go program says it is built from, and Go itself."""
    (folder,) = stack.mounts().values()
    (program,) = (path for path in folder.iterdir() if path.is_file())
    said = subprocess.run(
        ["go", "version", "-m", program], capture_output=True, text=True, check=True
    ).stdout
    root, cache = subprocess.run(
        ["go", "env", "GOROOT", "GOMODCACHE"], capture_output=True, text=True, check=True
    ).stdout.split()
    yield Component("https://go.dev", "BSD-3-Clause", Path(root))
    for name, version in re.findall(r"^\tdep\t(\S+)\t(\S+)", said, re.M):
        escaped = re.sub(r"[A-Z]", lambda letter: f"!{letter[0].lower()}", name)
        yield Component(
            f"https://{name} {version}", "see the text", Path(cache, f"{escaped}@{version}")
        )


def _sources(stack: Stack) -> Iterator[Component]:
    source = C_SOURCES[stack.name]
    folder = source.fetch()
    if not any(_texts(folder)):
        raise StackNotReady(f"{source.file} carries no licence text; leave {stack.name} out")
    yield Component(source.file, "see the texts", folder)
