"""Executes the tutorials before Sphinx reads them, as if no engine were installed.

The notebooks then open their published data, so a build needs neither a kernel nor a driver, and
every machine builds the same pages. A notebook is executed again when it, the package or the
published data has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from qbkit.execution import notebooks

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
KEYS = TUTORIALS / ".executed.json"
NO_ENGINE = ROOT / "build" / "docs-no-engine"
"""A cache folder without a kernel or drivers. It keeps the scripts that draw charts."""

log = logging.getLogger(__name__)


def execute_all(_app: Sphinx) -> None:
    """Bring the executed copies in docs/tutorials up to date."""
    common = _digest([*ROOT.glob("qbkit/**/*.py"), *ROOT.glob("data/**/*")])
    keys = {path: common + _digest([path]) for path in sorted(notebooks.FOLDER.glob("*.ipynb"))}
    done = json.loads(KEYS.read_text()) if KEYS.exists() else {}
    for copy in TUTORIALS.glob("*.ipynb"):
        if done.get(copy.name) != keys.get(notebooks.FOLDER / copy.name):
            copy.unlink()
    stale = [path for path in keys if not (TUTORIALS / path.name).exists()]
    if stale:
        log.info("executing %s", ", ".join(path.stem for path in stale))
        _execute(stale)
        KEYS.write_text(json.dumps({path.name: key for path, key in keys.items()}))


def _execute(paths: list[Path]) -> None:
    before = dict(os.environ)
    os.environ |= {"QBKIT_CACHE": str(NO_ENGINE), "QBKIT_RUNS": str(NO_ENGINE / "runs")}
    try:
        # Papermill changes the working directory, so each notebook needs a process of its own.
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), _quiet) as pool:
            list(pool.map(_execute_one, [path.stem for path in paths]))
    finally:
        os.environ.clear()
        os.environ.update(before)


def _quiet() -> None:
    """Several progress bars at once say nothing; a failure comes back as an exception."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _execute_one(name: str) -> None:
    notebooks.execute(name, TUTORIALS, {})


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", execute_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
