"""The second connections of flows that resume: whether 0-RTT was accepted, and what that saved.

A sender writes ``resumed.csv`` once the second handshake is complete: when the connection began,
whether it resumed a session, and whether the server accepted data before that handshake. Its
receiver's ``arrived.csv`` says how many bytes of both connections had come when.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from qbkit.spec import Flow
from qbkit.traces.run.schema import Variable, named
from qbkit.traces.run.telemetry import read_table

MEANINGS = {
    "resumed_start_s": named("s", "start of the flow's second connection"),
    "resumed_session": named("1", "whether the second connection resumed the session of the first"),
    "resumed_early_data": named("1", "whether the server accepted data before the handshake's end"),
    "resumed_first_byte_s": named("s", "arrival of the second connection's first byte"),
    "resumed_last_byte_s": named(
        "s", "arrival of the last byte of a second connection with a size"
    ),
}
"""Variables of runs in which a flow resumes, one value per flow → its attributes."""
STARTED = "resumed_start_s"


def resumed_variables(
    flows: Sequence[Flow], folders: Sequence[Path], t0_ns: int
) -> dict[str, Variable]:
    """`MEANINGS` as variables; NaN for what did not happen, nothing where no flow resumes."""
    if not any(flow.resume for flow in flows):
        return {}
    rows = [_second(flow, folder, t0_ns) for flow, folder in zip(flows, folders, strict=True)]
    columns = zip(MEANINGS.items(), zip(*rows, strict=True), strict=True)
    return {name: (("flow",), np.array(values, float), attrs) for (name, attrs), values in columns}


def resumed_warnings(flows: Sequence[Flow], labels: Sequence[str], starts_s: object) -> list[str]:
    """A sentence for each flow whose second connection never stood."""
    return [
        f"{label} has no second connection: its time was over before that one's handshake"
        for flow, label, start_s in zip(flows, labels, np.asarray(starts_s), strict=True)
        if flow.resume and math.isnan(start_s)
    ]


def _second(flow: Flow, folder: Path, t0_ns: int) -> tuple[float, ...]:
    """The values of one flow, in the order of `MEANINGS`."""
    made = read_table(folder / "resumed.csv")
    if flow.resume is None or not len(made):
        return (math.nan,) * len(MEANINGS)
    begun = made.iloc[-1]
    first, total = flow.resume.first_bytes, flow.total_bytes
    arrived = read_table(folder / "arrived.csv").reindex(columns=["time_ns", "bytes"])
    return (
        (int(begun["time_ns"]) - t0_ns) / 1e9,
        float(begun["session"]),
        float(begun["early"]),
        _when_s(arrived, first + 1, t0_ns),
        math.nan if total is None else _when_s(arrived, total, t0_ns),
    )


def _when_s(arrived: pd.DataFrame, size_bytes: int, t0_ns: int) -> float:
    """When so many bytes had arrived; NaN if they never had."""
    row = int(np.searchsorted(arrived["bytes"].to_numpy(), size_bytes))
    if row == len(arrived):
        return math.nan
    return float((int(arrived["time_ns"].iloc[row]) - t0_ns) / 1e9)
