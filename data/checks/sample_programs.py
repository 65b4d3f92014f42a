"""The sample programs of five stacks, from their packages, as stacks that a flow can name.

They are built once into the cache, which takes about a quarter of an hour on one processor.
sample_programs.toml says how they are called.
"""

from __future__ import annotations

import os
import tomllib
from functools import partial
from pathlib import Path

from qbkit import stacks
from qbkit.stacks import picoquic
from qbkit.stacks.external.configured import from_table
from qbkit.stacks.toolchains.build import build_once, fingerprint, run_tool
from qbkit.stacks.toolchains.c_program import FLAGS, OBJECT

TABLES = Path(__file__).with_name("sample_programs.toml")
SUFFIX = "-sample"
COMMANDS = {
    "quic-go": (
        "go install github.com/quic-go/quic-go/example@v0.65.0 "
        "github.com/quic-go/quic-go/example/client@v0.65.0",
    ),
    "quiche": (
        "cargo install --locked tokio-quiche@0.20.1 --example async_http3_server",
        "cargo install --locked quiche@0.30.0 --example http3-client",
    ),
    "quinn": ("cargo install --locked quinn@0.11.12 --example server --example client",),
    "tquic": ("cargo install --locked tquic_tools@1.6.0",),
}
"""Stack → the commands that install its programs. picoquicdemo is compiled here."""
ZEROS, ZEROS_BYTES = "zeros", 160_000_000
"""A file for servers to send: more than a link of 20 Mbit/s carries in a minute."""
QUIET = '#!/bin/sh\n# {}\nexec > /dev/null "$@"\n'
"""Runs a client that prints what it receives. Names the packages, as runs depend on this file."""


def register() -> None:
    """Build what is missing, and name the programs ``<stack>-sample``."""
    for name, table in tomllib.loads(TABLES.read_text())["stack"].items():
        folder = built(name.removesuffix(SUFFIX)) / "bin"
        places = {key: f"{folder}/{table[key]}" for key in ("program", "server") if key in table}
        stacks.register(from_table(name, table | places, TABLES))


def built(stack: str) -> Path:
    """The folder of a stack's sample programs."""
    if stack == "picoquic":
        return build_once(f"picoquic{SUFFIX}", picoquic.Picoquic().library_key(), build_picoquic)
    commands = COMMANDS[stack]
    key = fingerprint([], *commands, str(ZEROS_BYTES), QUIET)
    return build_once(f"{stack}{SUFFIX}", key, partial(install, commands))


def install(commands: tuple[str, ...], folder: Path) -> None:
    """Install programs into the folder ``bin``, beside a file to send and the script ``quiet``."""
    programs = folder / "bin"
    places = {"CARGO_INSTALL_ROOT": str(folder), "GOBIN": str(programs), "CGO_ENABLED": "0"}
    for command in commands:
        run_tool(command.split(), command, os.environ | places)
    with (programs / ZEROS).open("wb") as file:
        file.truncate(ZEROS_BYTES)
    (programs / "quiet").write_text(QUIET.format(" ".join(commands)))
    (programs / "quiet").chmod(0o755)


def build_picoquic(folder: Path) -> None:
    """Compile picoquicdemo with the same library, flags and libcrypto as our driver."""
    stack, library, target = picoquic.Picoquic(), folder / OBJECT, folder / "bin/picoquicdemo"
    stack.compile_library(library)
    top = picoquic.AIOPQUIC.fetch() / "third_party/picoquic"
    include = [f"-I{path}" for path in (*stack.include(), top / "picohttp")]
    flags = [*FLAGS, *stack.defines, "-w", *include]
    demo = [top / "picoquicfirst" / name for name in ("picoquicdemo.c", "getopt.c")]
    files = [*demo, *sorted(top.glob("picohttp/*.c")), library]
    target.parent.mkdir()
    run_tool(["gcc", *flags, "-o", target, *files, *stack.links], target.name)
    library.unlink()
