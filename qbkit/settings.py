"""Where qbkit keeps what it builds and measures, and how it displays charts."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from qbkit.errors import StoreError

CHARTS = "QBKIT_CHARTS"
"""Environment variable; ``png`` displays charts as pictures, for pages that run no scripts."""


def chosen_path(variable: str) -> Path | None:
    """What an environment variable names; ``~`` is the user's home, as in a shell."""
    chosen = os.environ.get(variable)
    # Unlike Path.expanduser, this leaves the home of an unknown user as it is written.
    return Path(os.path.expanduser(chosen)) if chosen else None  # noqa: PTH111


def cache_folder() -> Path:
    """``QBKIT_CACHE``, else the user's cache (Linux: ``$XDG_CACHE_HOME`` or ``~/.cache``)/qbkit.

    Raises StoreError where the variable names a file.
    """
    chosen = chosen_path("QBKIT_CACHE")
    if chosen is not None and chosen.is_file():
        raise StoreError(f"QBKIT_CACHE names {chosen}, which is a file; name a folder")
    return chosen or platformdirs.user_cache_path("qbkit")


@cache
def packed_folders() -> tuple[Path, ...]:
    """Folders of installed packages that hold what qbkit would build, as its cache does.

    They are the entry points of the group ``qbkit.built`` (packages/README.md).
    """
    return tuple(_modules_of("qbkit.built"))


def shipped(name: str) -> Path:
    """The folder ``notebooks`` or ``data``: beside this package, or of qbkit-notebooks if that is
    installed; where there is neither, it does not exist."""
    here = Path(__file__).parents[1] / name
    places = (place / name for place in _modules_of("qbkit.published"))
    return here if here.exists() else next(places, here)


def _modules_of(group: str) -> Iterator[Path]:
    """Folders of the modules that installed packages name as entry points."""
    for point in entry_points(group=group):
        if (spec := find_spec(point.module)) and spec.origin:
            yield Path(spec.origin).parent


def built_in(folder: str, name: str) -> Path:
    """``FOLDER/NAME`` of the cache; if it is not there, of the installed package that has it."""
    ours = cache_folder() / folder / name
    packed = (place / folder / name for place in packed_folders())
    return ours if ours.exists() else next((path for path in packed if path.exists()), ours)


def is_built(file: Path) -> bool:
    """Whether a file is one that qbkit builds: in the cache, or in an installed package."""
    return any(file.is_relative_to(place) for place in (cache_folder(), *packed_folders()))


def writable_folder() -> Path:
    """The cache folder; if it cannot be written to, ``qbkit-UID`` in the temporary folder.

    A container may have a read-only home, with a kernel and drivers in its cache. Warns once.
    Raises StoreError if the temporary folder holds that name for another user.
    """
    wanted = cache_folder()
    return wanted if _is_writable(wanted) else _temporary_folder(wanted)


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _is_writable(folder: Path) -> bool:
    return os.access(existing(folder), os.W_OK | os.X_OK)


@cache
def _temporary_folder(wanted: Path) -> Path:
    folder = Path(tempfile.gettempdir()) / f"qbkit-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise StoreError(f"{folder} belongs to another user; set QBKIT_CACHE to another folder")
    if multiprocessing.parent_process() is None:  # its workers need not repeat it
        warnings.warn(
            f"{wanted} cannot be written to: runs go to {folder}, which may not last "
            "(QBKIT_RUNS sets their folder)",
            stacklevel=2,
        )
    return folder
