"""Where runs are stored."""

from __future__ import annotations

from pathlib import Path

from qbkit.arguments import as_path
from qbkit.errors import StoreError
from qbkit.settings import chosen_path, writable_folder

ENDING = ".nc"
"""Of the names of runs; whoever opens a file goes by it."""


def default_folder() -> Path:
    """``QBKIT_RUNS``, else ``runs`` in `settings.writable_folder`."""
    return chosen_path("QBKIT_RUNS") or writable_folder() / "runs"


def path_of(name: str) -> Path:
    """The path of the run with this name (its hash), stored or not."""
    return default_folder() / f"{name}{ENDING}"


def require_run_name(path: str | Path) -> None:
    """Raise StoreError for a name that is not one of a run's file."""
    target = as_path(path)
    if target.suffix != ENDING:
        raise StoreError(
            f"a run cannot be saved as {target.name!r}; choose a name with {ENDING}", refused=True
        )
