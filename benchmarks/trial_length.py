"""Conformance and noise floor by the length of the trials, from the published data. No run.

    python benchmarks/trial_length.py

Trials are cut off after a part of their time. The first table is the mean over the settings and
implementations of ``data/conformance`` (60 s, five seeds per side), by the number of operating
points of a trial; the second one is the study in ``data/envelope`` (120 s, five seeds per side).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import qbkit as qb
from qbkit.metrics import DEFINITIONS, assess
from qbkit.metrics.cells import cell_trials
from qbkit.metrics.trials import Trials

DATA = Path(__file__).parents[1] / "data"
PARTS = (0.25, 0.5, 0.75, 1.0)
DURATIONS_S = (15, 30, 60, 90, 120)


def of_maps() -> pd.DataFrame:
    """Mean conformance and noise floor by family, RTT and number of points."""
    rows = []
    for family in ("cubic", "reno", "bbr"):
        every = cell_trials(qb.load_sweep(DATA / f"conformance/{family}.yaml"))
        reference = every.sel({"flows.0": f"tcp:{family}"})
        for name in every["flows.0"].values:
            if name != f"tcp:{family}":
                cells = every.sel({"flows.0": name})
                rows += [{"family": family, **row} for row in _of_cells(cells, reference)]
    return pd.DataFrame(rows).groupby(["family", "rtt_ms", "points"]).mean().round(2)


def _of_cells(cells: xr.DataArray, reference: xr.DataArray) -> list[dict[str, float]]:
    rows = []
    for place in np.ndindex(*cells.shape):
        ours, theirs = cells.values.item(place), reference.values.item(place)
        for part in PARTS:
            sides = ([_xy(t)[: int(part * len(t))] for t in side] for side in (ours, theirs))
            trials = Trials.of(*sides, DEFINITIONS["imc22"])
            rows.append(
                {
                    "rtt_ms": cells["bottleneck.rtt_ms"].values[place[0]],
                    "points": int(part * len(theirs[0])),
                    "conformance": trials.conformance().value,
                    "noise_floor": trials.noise_floor().value,
                }
            )
    return rows


def _xy(trial: object) -> np.ndarray:
    return trial if isinstance(trial, np.ndarray) else trial.xy


def of_envelope() -> pd.DataFrame:
    """Conformance and noise floor of the published study, by duration."""
    study = qb.load_study(DATA / "envelope")
    rows = []
    for duration_s in DURATIONS_S:
        sides = ([_cut(run, duration_s) for run in s] for s in (study.tests, study.references))
        a = assess(*sides, bootstrap=1)
        rows.append(
            {
                "duration_s": duration_s,
                "conformance": a.conformance,
                "noise_floor": a.noise_floor,
                "conformance_pooled": a.conformance_pooled,
                "outcome": a.outcome,
            }
        )
    return pd.DataFrame(rows).round(2)


def _cut(run: xr.Dataset, duration_s: float) -> xr.Dataset:
    """A run without what came after ``duration_s``."""
    kept = run.sel(time=run["time"] < duration_s - 1e-6)
    return kept.assign(stop_s=kept["stop_s"].clip(max=duration_s)).assign_attrs(
        duration_s=duration_s
    )


def main() -> None:
    print(of_maps().to_string())
    print(of_envelope().to_string(index=False))


if __name__ == "__main__":
    main()
