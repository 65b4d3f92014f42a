"""Wheels of the Python package index, as pip finds them for this machine."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains.build import run_tool


def chosen(wanted: str, *options: str, what: str) -> list[dict[str, Any]]:
    """The newest wheels that fit a requirement, as pip's report has them; raises StackNotReady."""
    words = ["--dry-run", "--ignore-installed", "--report", "-", *options, wanted]
    wheels: list[dict[str, Any]] = json.loads(pip_install(*words, what=what))["install"]
    return wheels


def versions(package: str) -> list[str]:
    """The versions of a package that have a wheel for this machine; raises StackNotReady.

    pip names them where none fits, and nowhere else.
    """
    try:
        pip_install("--dry-run", "--no-deps", f"{package}<0", what=package)
    except StackNotReady as error:
        named = re.search(r"\(from versions: (.*)\)", str(error))
        if named and named[1] != "none":
            return named[1].split(", ")
    raise StackNotReady(f"the package index has no wheel of {package}, or cannot be reached")


def pip_install(*words: str, what: str) -> str:
    """What pip prints when it installs wheels; raises StackNotReady."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *words]
    return run_tool(command, what)
