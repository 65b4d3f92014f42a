"""What hides differences between processors from the stacks' programs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from qbkit.stacks.toolchains.processor import SAME_LIBRARY_FOLDERS

LOADER = Path("/lib64/ld-linux-x86-64.so.2")
EVERYWHERE = {"x86-64-v2", "x86_64", "tls"}
"""Folders that the loader searches on every x86-64 processor since 2010."""


@pytest.mark.skipif(not LOADER.exists(), reason="no C library of GNU here")
def test_the_loader_searches_no_folders_for_newer_processors():
    env = {**os.environ, **SAME_LIBRARY_FOLDERS}
    said = subprocess.run([LOADER, "--help"], env=env, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^  (\S+) \(.*searched\)", said.stdout, re.M)) <= EVERYWHERE
