"""Data on disk: runs, the results of sweeps, published data."""

from qbkit.store.datasets import (
    FORMAT_VERSION,
    default_folder,
    list_runs,
    load_run,
    path_of,
    require_free,
    save_run,
)

__all__ = [
    "FORMAT_VERSION",
    "default_folder",
    "list_runs",
    "load_run",
    "path_of",
    "require_free",
    "save_run",
]
