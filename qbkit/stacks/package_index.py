"""Source distributions of the Python package index, of which only the C sources are used.

pip builds a package's metadata when it downloads its sources, which needs the package's tools and
its version of Python. So the file comes from the index by its address, and its hash is checked.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from qbkit.errors import StackNotReady
from qbkit.stacks.build import build_once, run_tool

USUAL_INDEX = "https://pypi.org/simple"
FORMATS = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
LIMIT_S = 60


@dataclass(frozen=True)
class SourceDistribution:
    """One release of a project, with the SHA-256 of its file."""

    project: str
    version: str
    sha256: str

    def fetch(self) -> Path:
        """The folder of its unpacked files, in the cache; raises StackNotReady."""
        top = f"{self.project}-{self.version}"
        return build_once(f"{self.project}-source", self.sha256[:12], self._unpack) / top

    def _unpack(self, folder: Path) -> None:
        file = f"{self.project}-{self.version}.tar.gz"
        index = _index()
        page = f"{index.rstrip('/')}/{self.project}/"
        try:
            listed = _get(page).decode()
            found = re.search(rf'"([^"]*/{re.escape(file)})["#]', listed)
            if not found:
                raise StackNotReady(f"the package index {index} has no {file}")
            content = _get(urljoin(page, found[1]))
        except (URLError, OSError) as error:
            raise StackNotReady(f"cannot fetch {file} from {index}: {error}") from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise StackNotReady(f"{file} from {index} is another file than the one in the lock")
        (folder / file).write_bytes(content)
        run_tool(["tar", "-xzf", folder / file, "-C", folder], file)
        (folder / file).unlink()


def _get(address: str) -> bytes:
    with urlopen(Request(address, headers={"Accept": FORMATS}), timeout=LIMIT_S) as answer:
        content: bytes = answer.read()
    return content


def _index() -> str:
    """The package index that this machine's pip uses."""
    if chosen := os.environ.get("PIP_INDEX_URL"):
        return chosen
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return told or USUAL_INDEX
