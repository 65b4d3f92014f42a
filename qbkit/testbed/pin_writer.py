"""``make lock``: move the pins of Debian's packages to what its suites have today."""

from __future__ import annotations

import datetime
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from qbkit import stacks
from qbkit.stacks import jdk
from qbkit.stacks.toolchains.apt import apt_environment, this_suite
from qbkit.stacks.toolchains.build import run_tool
from qbkit.stacks.toolchains.debian import DebianPrograms, apt_suites
from qbkit.stacks.toolchains.pins import KERNEL, LOCK, SYSTEM, Pin, PinnedFile, pin
from qbkit.stacks.web import base as web
from qbkit.testbed import guest_root
from qbkit.testbed.kernel_source import SUITE, newest_package

WHAT = "make lock"
INSTALLED = (
    *("chromium", "chromium-common", "chromium-headless-shell", "firefox-esr"),
    *("libnss3", "libnss3-tools", "curl", "libcurl4"),
    *("iproute2", "mininet", "python3", "python3.11", "libc6"),
)
"""Packages of this machine that results may depend on, with those that need their very version."""
IMPORT = datetime.timedelta(hours=12)
"""The snapshot archive takes in what is new some hours later, and Debian keeps files for days."""
HEAD = """\
# Packages of Debian that results depend on, each with its version, its SHA-256 and its path in the
# archive. `make lock` writes this file; qbkit/stacks/toolchains/pins.py reads it.
"""
URI = re.compile(r"^'\S+?/(pool/\S+)' (\S+) \d+ SHA256:(\w+)$", re.M)


def debian_programs() -> Iterator[DebianPrograms]:
    """All programs of another suite than this machine's, each once."""
    every = [*stacks.all_stacks(), *web.servers(), *web.clients()]
    found = {debian.name: debian for debian in (jdk.DEBIAN, guest_root.DEBIAN)}
    for program in every:
        if isinstance(debian := getattr(program, "debian", None), DebianPrograms):
            found[debian.name] = debian
    return iter(sorted(found.values(), key=lambda debian: debian.name))


def write() -> None:
    """Write the lock file; raises StackNotReady when Debian cannot be reached."""
    date = (datetime.datetime.now(datetime.UTC) + IMPORT).strftime("%Y%m%dT%H%M%SZ")
    moved = [Pin(KERNEL, SUITE, date, _kernel())]
    moved.append(Pin(SYSTEM, this_suite(), date, _files(INSTALLED, dict(os.environ))))
    moved += [Pin(p.name, p.suite, date, _files_of(p)) for p in debian_programs()]
    LOCK.write_text(HEAD + "".join(_text(_same_or(new)) for new in moved))


def _same_or(new: Pin) -> Pin:
    """The pin as it was, with its date, if its files are the same."""
    old = pin(new.name)
    return old if old and old.files == new.files else new


def _kernel() -> tuple[PinnedFile, ...]:
    with tempfile.TemporaryDirectory() as scratch:
        apt = _updated(Path(scratch), SUITE)
        return _files([newest_package(apt)], apt)


def _files_of(programs: DebianPrograms) -> tuple[PinnedFile, ...]:
    """The packages and all that they depend on."""
    with tempfile.TemporaryDirectory() as scratch:
        apt = _updated(Path(scratch), apt_suites(programs.suite))
        how = ["--print-uris", "--yes", "--no-install-recommends", "-t", programs.suite]
        listed = run_tool(["apt-get", "install", "-qq", *how, *programs.packages], WHAT, env=apt)
        names = re.findall(r"^'\S+' ([^_\s]+)_([^_\s]+)_", listed, re.M)
        return _files([f"{name}={unquote(version)}" for name, version in names], apt)


def _files(packages: Iterable[str], apt: dict[str, str]) -> tuple[PinnedFile, ...]:
    listed = run_tool(["apt-get", "download", "-qq", "--print-uris", *packages], WHAT, env=apt)
    found = [(*name.split("_")[:2], sha256, path) for path, name, sha256 in URI.findall(listed)]
    return tuple(
        PinnedFile(name, unquote(v), hash_, path) for name, v, hash_, path in sorted(found)
    )


def _updated(scratch: Path, suites: str) -> dict[str, str]:
    """The environment of an apt that has read the lists of these suites."""
    apt = apt_environment(scratch, suites)
    run_tool(["apt-get", "update", "-q"], WHAT, env=apt)
    return apt


def _text(pin: Pin) -> str:
    lines = [f'  "{f.package} {f.version} {f.sha256} {f.path}",\n' for f in pin.files]
    head = f'\n["{pin.name}"]\nsuite = "{pin.suite}"\ndate = "{pin.date}"\n'
    return f"{head}files = [\n{''.join(lines)}]\n"


if __name__ == "__main__":
    write()
