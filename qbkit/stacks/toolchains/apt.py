"""Debian's apt, with state folders of its own: it changes nothing on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from qbkit.errors import StackNotReady


def private_apt(scratch: Path, suites: str) -> Path:
    """The file of an apt configuration for Debian's suites that writes to ``scratch`` alone.

    Raises StackNotReady without an apt.
    """
    archive, key = mirror()
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (scratch / name).mkdir(parents=True)
    (scratch / "status").touch()
    signed = f"Signed-By: {key}\n" if key else ""
    (scratch / "parts/debian.sources").write_text(
        f"Types: deb\nURIs: {archive}\nSuites: {suites}\nComponents: main\n{signed}"
    )
    config = scratch / "apt.conf"
    config.write_text(
        f'Dir::State "{scratch}/state";\nDir::State::status "{scratch}/status";\n'
        f'Dir::Cache "{scratch}/cache";\nDir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{scratch}/parts";\nAPT::Sandbox::User "";\n'
        'Acquire::Languages "none";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
        'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";\n'
    )
    return config


def apt_environment(scratch: Path, suites: str) -> dict[str, str]:
    """The environment of programs that read the configuration of `private_apt`."""
    return {**os.environ, "APT_CONFIG": str(private_apt(scratch, suites)), "LC_ALL": "C"}


def mirror() -> tuple[str, str]:
    """(URI, keyring) of the Debian archive that this machine's own apt uses."""
    if chosen := os.environ.get("QBKIT_DEBIAN_MIRROR"):
        return chosen, _keyring()
    if not shutil.which("apt-get"):
        raise StackNotReady("there is no apt here to fetch packages of Debian")
    for uri in _known_archives():
        if "security" not in uri:
            return uri, _keyring()
    raise StackNotReady(
        "this machine's apt knows no Debian archive; run apt-get update, or set "
        "QBKIT_DEBIAN_MIRROR to one"
    )


def security_mirror() -> str:
    """URI of the archive of Debian's security updates: this machine's, or that beside `mirror`."""
    if not os.environ.get("QBKIT_DEBIAN_MIRROR"):
        for uri in _known_archives():
            if "security" in uri:
                return uri
    return f"{mirror()[0].rstrip('/')}-security"


def _known_archives() -> list[str]:
    """URIs of the archives of Debian that this machine's apt has read the lists of."""
    form = ("--format", "$(REPO_URI) $(ORIGIN) $(SUITE)", "Identifier: Packages")
    argv = ["apt-get", "indextargets", *form]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    rows = [[*line.split(), ""] for line in listed.splitlines()]
    return [uri for uri, origin, *_ in rows if origin == "Debian"]


def this_suite() -> str:
    """The name of the suite that this machine has, such as ``bookworm``."""
    release = Path("/etc/os-release")
    text = release.read_text() if release.exists() else ""
    found = re.search(r"^VERSION_CODENAME=(\w+)$", text, re.M)
    return found[1] if found else "unknown"


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Package → version for those that are installed; empty without dpkg."""
    if not shutil.which("dpkg-query"):
        return {}
    argv = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", *packages]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    rows = [line.split(" ") for line in listed.splitlines()]
    return {package: version for status, package, version in rows if status == "installed"}


def _keyring() -> str:
    for name in ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp"):
        path = Path("/usr/share/keyrings") / name
        if path.exists():
            return str(path)
    return ""
