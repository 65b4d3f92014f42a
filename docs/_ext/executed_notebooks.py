"""Executes the tutorials before Sphinx reads them: on real flows where an engine works.

Elsewhere they open published runs of the same experiments, and say so. The tutorials are the
notebooks that docs/tutorials/index.md lists, so that a notebook of your own in the same folder is
not published. One is executed again when it, the package, the published data, or what can run here
has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.util import logging

import qbkit as qb
from qbkit.execution import notebooks
from qbkit.testbed import engines

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
KEYS = TUTORIALS / ".executed.json"
LINK = re.compile(r"\]\((\w+)\.ipynb\)")

log = logging.getLogger(__name__)


def tutorials() -> list[Path]:
    """The notebooks that the page of tutorials lists."""
    listed = LINK.findall((TUTORIALS / "index.md").read_text())
    return [notebooks.FOLDER / f"{name}.ipynb" for name in dict.fromkeys(listed)]


def execute_all(_app: Sphinx) -> None:
    """Bring the executed copies in docs/tutorials up to date."""
    common = _digest([*ROOT.glob("qbkit/**/*.py"), *ROOT.glob("data/**/*")]) + _machine()
    keys = {path.name: common + _digest([path]) for path in tutorials()}
    done = json.loads(KEYS.read_text()) if KEYS.exists() else {}
    for copy in TUTORIALS.glob("*.ipynb"):
        if copy.name not in keys or done.get(copy.name) != keys[copy.name]:
            copy.unlink()
    stale = [name for name in keys if not (TUTORIALS / name).exists()]
    if stale:
        log.info("executing %s", ", ".join(stale))
        _execute(stale)
        KEYS.write_text(json.dumps(keys))


def _execute(names: list[str]) -> None:
    # Papermill changes the working directory, so each notebook needs a process of its own.
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), _quiet) as pool:
        list(pool.map(_execute_one, names))


def _quiet() -> None:
    """Several progress bars at once say nothing; a failure comes back as an exception."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _execute_one(name: str) -> None:
    copy = notebooks.execute(Path(name).stem, TUTORIALS, {})
    executed = nbformat.read(copy, as_version=4)
    for cell in executed.cells:
        # Links to the documentation start from its folder of tutorials. The pictures that an
        # executed notebook carries are there too; Sphinx reads no attachments.
        links = cell.source.replace("](../docs/", "](../")
        cell.source = links.replace("](attachment:", "](../_static/pictures/")
        cell.pop("attachments", None)
    nbformat.write(executed, copy)


def _machine() -> str:
    """A digest of what can run here: the engine, and the stacks with their versions."""
    stacks = qb.list_stacks()
    ready = stacks[stacks.ready][["stack", "version"]].to_csv()
    return hashlib.sha256(f"{engines.named().problem()}\n{ready}".encode()).hexdigest()[:16]


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
