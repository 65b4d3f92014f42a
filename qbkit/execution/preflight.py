"""What is checked of a list of experiments before the first of them runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from qbkit.errors import StoreError
from qbkit.spec import FRAME_BYTES, Experiment
from qbkit.testbed import engines, memory

STORED_BYTES_PER_FRAME = 20
"""A stored run of 186,000 full frames has 18 bytes a frame, its ACKs included."""


def require_room(
    missing: Sequence[Experiment], folder: Path, engine: str | None, scheduler: str | None
) -> None:
    """Raise EngineError or StoreError if memory or disk are too small for runs yet to come.

    ``folder`` gets the results. Other machines have memory of their own, so nothing is checked
    with a ``scheduler``.
    """
    if not missing or scheduler is not None:
        return
    chosen = engines.named(engine).name
    memory.require(max(missing, key=lambda e: memory.needed_bytes(e, chosen)), chosen)
    needed_bytes = sum(map(stored_bytes, missing))
    free_bytes = shutil.disk_usage(_existing(folder)).free
    if needed_bytes > free_bytes:
        raise StoreError(
            f"the results of {len(missing)} runs may need {needed_bytes / 1e6:.1f} MB, but "
            f"{free_bytes / 1e6:.1f} MB are free in {folder}; free space, or use another folder"
        )


def stored_bytes(experiment: Experiment) -> float:
    """About the largest size of the stored run: its link is full all the time."""
    frames = experiment.most_data_mbps * 125_000 * experiment.duration_s / FRAME_BYTES
    return frames * STORED_BYTES_PER_FRAME


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())
