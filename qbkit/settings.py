"""Where qbkit keeps what it builds and measures."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``QBKIT_CACHE``, else ``$XDG_CACHE_HOME/qbkit``, else ``~/.cache/qbkit``."""
    chosen = os.environ.get("QBKIT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "qbkit"
