"""The objects of applications: when each was released, how large it is, and when it had arrived."""

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
    objects, arrived = (_rows(folder / f"{name}.csv") for name in ("objects", "arrived"))
    ends = objects["bytes"].to_numpy(float).cumsum()
    row = np.searchsorted(arrived["bytes"].to_numpy(float), ends)
    times_s = np.append((arrived["time_ns"].to_numpy(np.int64) - t0_ns) / 1e9, np.nan)
    at_s = times_s[row]
    release_s = (objects["time_ns"].to_numpy(np.int64) - t0_ns) / 1e9
    return release_s, objects["bytes"].to_numpy(float), np.where(at_s <= duration_s, at_s, np.nan)


def _rows(path: Path) -> pd.DataFrame:
    """A table; empty where its end never wrote one."""
    return read_table(path).reindex(columns=["time_ns", "bytes"])
