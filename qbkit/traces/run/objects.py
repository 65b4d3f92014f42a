"""The objects of applications: when each was released, how large it is, and when it had arrived.

A sender's ``objects.csv`` has a row for each. Of a byte stream the receiver's ``arrived.csv`` says
how many bytes had come when. Of frames, which may be lost, its ``frames.csv`` says which of them
(from 0) could be shown when.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.schema import Variable, variable
from qbkit.traces.run.telemetry import read_table

TEXTS = {
    "object_release_s": ("s", "release of the object by the application"),
    "object_arrived_s": ("s", "arrival of the object's last byte at its receiver"),
}


def object_variables(flows: list[Path], t0_ns: int, duration_s: float) -> dict[str, Variable]:
    """One row for each object of each flow, from their folders; nothing without an application.

    Objects that arrive after the end of the experiment, or not at all, have not arrived (NaN).
    """
    tables = {i: folder for i, folder in enumerate(flows) if (folder / "objects.csv").exists()}
    if not tables:
        return {}
    found = {i: _objects(folder, t0_ns, duration_s) for i, folder in tables.items()}
    flow = np.repeat([*found], [len(sizes) for _, sizes, _ in found.values()]).astype(np.uint16)
    release_s, size, arrived_s = (np.concatenate(c) for c in zip(*found.values(), strict=True))
    columns = {"object_release_s": release_s, "object_arrived_s": arrived_s}
    return {
        "object_flow": variable("object", flow, "1", "flow"),
        "object_size_bytes": variable("object", size, "B", "size of the object"),
        **{name: variable("object", values, *TEXTS[name]) for name, values in columns.items()},
    }


def _objects(
    folder: Path, t0_ns: int, duration_s: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Release (s), size (B) and arrival (s) of a flow's objects, in order."""
    objects = _rows(folder, "objects", "bytes")
    size = objects["bytes"].to_numpy(float)
    if (folder / "frames.csv").exists():
        at_s = _shown_s(_rows(folder, "frames", "frame"), t0_ns, len(size))
    else:
        at_s = _streamed_s(_rows(folder, "arrived", "bytes"), t0_ns, size)
    return _since(objects, t0_ns), size, np.where(at_s <= duration_s, at_s, np.nan)


def _streamed_s(arrived: pd.DataFrame, t0_ns: int, size: FloatArray) -> FloatArray:
    """When as many bytes as all objects up to each had arrived; NaN if they never had."""
    row = np.searchsorted(arrived["bytes"].to_numpy(float), size.cumsum())
    times_s: FloatArray = np.append(_since(arrived, t0_ns), np.nan)[row]
    return times_s


def _shown_s(frames: pd.DataFrame, t0_ns: int, count: int) -> FloatArray:
    """When each of so many frames could be shown; NaN if it never could."""
    times_s = np.full(count, np.nan)
    number = frames["frame"].to_numpy(np.int64)
    known = number < count  # a killed sender may have left no row of its last frame
    times_s[number[known]] = _since(frames, t0_ns)[known]
    return times_s


def _since(table: pd.DataFrame, t0_ns: int) -> FloatArray:
    times_s: FloatArray = (table["time_ns"].to_numpy(np.int64) - t0_ns) / 1e9
    return times_s


def _rows(folder: Path, name: str, column: str) -> pd.DataFrame:
    """A table; empty where its end never wrote one."""
    return read_table(folder / f"{name}.csv").reindex(columns=["time_ns", column])
