"""Where qbkit keeps what it builds and measures."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """``QBKIT_CACHE``, else the user's cache (Linux: ``$XDG_CACHE_HOME`` or ``~/.cache``)/qbkit."""
    chosen = os.environ.get("QBKIT_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("qbkit")
