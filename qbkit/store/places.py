"""Where runs are stored."""

from __future__ import annotations

import os
from pathlib import Path

from qbkit.settings import writable_folder


def default_folder() -> Path:
    """``QBKIT_RUNS``, else ``runs`` in `settings.writable_folder`."""
    chosen = os.environ.get("QBKIT_RUNS")
    return Path(chosen) if chosen else writable_folder() / "runs"


def path_of(name: str) -> Path:
    """The path of the run with this name (its hash), stored or not."""
    return default_folder() / f"{name}.nc"
