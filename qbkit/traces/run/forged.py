"""What the attackers of a run forged: how many packets, when, and in which flow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from qbkit.spec import Experiment
from qbkit.spec.misbehaving import Attack
from qbkit.testbed.attacks import TABLE, in_order
from qbkit.traces.run.schema import Variable, variable
from qbkit.traces.run.telemetry import read_table


def forged_variables(folder: Path, experiment: Experiment, t0_ns: int) -> dict[str, Variable]:
    """One row for each flow that each attack struck; nothing without attacks."""
    if not experiment.attacks:
        return {}
    rows = _rows(folder)
    time_s = (rows["time_ns"].to_numpy(np.int64) - t0_ns) / 1e9
    texts = [str(attack) for attack in in_order(experiment.attacks)]
    said = np.array([texts[i] for i in rows["attack"]], str)
    return {
        "forged_time_s": variable("forged", time_s, "s", "when the attack began"),
        "forged_flow": variable("forged", rows["flow"].to_numpy(np.uint16), "1", "flow"),
        "forged_packets": variable(
            "forged", rows["packets"].to_numpy(np.int64), "1", "packets forged"
        ),
        "forged_attack": variable("forged", said, "1", "the attack"),
    }


def forged_warnings(folder: Path, attacks: Sequence[Attack]) -> list[str]:
    """A sentence for each attack of a run that found no flow to strike."""
    if not attacks:
        return []
    struck = set(_rows(folder)["attack"])
    return [
        f"the attack {str(attack)!r} struck no flow: no packet passed within a second"
        for i, attack in enumerate(in_order(attacks))
        if i not in struck
    ]


def _rows(folder: Path) -> pd.DataFrame:
    columns = ["time_ns", "attack", "flow", "packets"]
    return read_table(folder / TABLE).reindex(columns=columns).astype(np.int64)
