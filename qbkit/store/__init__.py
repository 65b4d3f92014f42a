"""What is kept on disk: runs, the results of sweeps, published data."""

from qbkit.store.datasets import FORMAT_VERSION, default_folder, load, path_of, runs, save

__all__ = ["FORMAT_VERSION", "default_folder", "load", "path_of", "runs", "save"]
