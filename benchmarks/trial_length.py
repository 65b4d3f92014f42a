"""Conformance and noise floor by the length of the trials, from the published data. No run.

    python benchmarks/trial_length.py

writes ``benchmarks/tables/trial_length.md``, which the documentation includes. Trials are cut off
after a part of their time. The first table is the mean over the settings and implementations of
``data/conformance`` (60 s, five seeds per side), by the number of operating points of a trial. The
second one is the study in ``data/envelope`` (120 s, five seeds per side).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from markdown_tables import publish, table

import qbkit as qb
from qbkit.metrics import DEFINITIONS, assess
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.maps.cells import cell_trials
from qbkit.metrics.maps.families import FAMILIES

DATA = Path(__file__).parents[1] / "data"
PARTS = (0.25, 0.5, 0.75, 1.0)
FIGURES = {"conformance": "conformance", "noise_floor": "noise floor"}
DURATIONS_S = (15, 30, 60, 90, 120)


def of_maps() -> pd.DataFrame:
    """Mean conformance and noise floor by RTT and number of points (rows) and family (columns)."""
    rows = []
    for family in FAMILIES:
        every = cell_trials(qb.load_sweep(DATA / f"conformance/{family}.yaml"))
        reference = every.sel({"flows.0": f"tcp:{family}"})
        for name in every["flows.0"].values:
            if name != f"tcp:{family}":
                cells = every.sel({"flows.0": name})
                rows += [{"family": family, **row} for row in _of_cells(cells, reference)]
    means = pd.DataFrame(rows).groupby(["rtt_ms", "points", "family"]).mean()
    by_family = means.unstack("family").swaplevel(axis="columns")
    return by_family[[(family, figure) for family in FAMILIES for figure in FIGURES]]


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
                "pooled_conformance": a.conformance_pooled,
            }
        )
    return pd.DataFrame(rows)


def _cut(run: xr.Dataset, duration_s: float) -> xr.Dataset:
    """A run without what came after ``duration_s``."""
    kept = run.sel(time=run["time"] < duration_s - 1e-6)
    return kept.assign(stop_s=kept["stop_s"].clip(max=duration_s)).assign_attrs(
        duration_s=duration_s
    )


def text() -> str:
    """Both tables, in Markdown."""
    titles = (FAMILIES[family] for family in FAMILIES)
    head = [
        "RTT",
        "points",
        *(f"{title}: {figure}" for title in titles for figure in FIGURES.values()),
    ]
    rows = [[f"{rtt_ms:g} ms", points, *row] for (rtt_ms, points), *row in of_maps().itertuples()]
    maps = table(head, rows)
    study = of_envelope().set_index("duration_s").T
    head = ["quic-go's CUBIC, 50 ms, 1 BDP", *(f"{duration_s} s" for duration_s in study.columns)]
    rows = [[name.replace("_", " "), *row] for name, *row in study.itertuples()]
    return f"{maps}\n{table(head, rows)}"


def main() -> None:
    publish("trial_length", text())


if __name__ == "__main__":
    main()
