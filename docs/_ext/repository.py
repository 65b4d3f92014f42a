"""The address of the repository from which the site is built, for a link to it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SSH = re.compile(r"(?:ssh://)?[\w.-]+@([\w.-]+)[:/](.+)")


def repository() -> str:
    """Where the remote ``origin`` of this repository is on the web; empty without one."""
    words = ["git", "config", "--get", "remote.origin.url"]
    try:
        done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:  # no git: built from an archive
        return ""
    return web_address(done.stdout.strip())


def web_address(remote: str) -> str:
    """The web page of a git remote, by HTTPS; empty for a folder."""
    ssh = SSH.fullmatch(remote)
    address = f"https://{ssh[1]}/{ssh[2]}" if ssh else remote
    if not address.startswith(("https://", "http://")):
        return ""
    return re.sub(r"//[^/@]*@", "//", address).removesuffix(".git")
