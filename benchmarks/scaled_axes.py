"""How much does it matter that the definition's distance adds ms and Mbit/s? No run.

    python benchmarks/scaled_axes.py

writes ``benchmarks/tables/scaled_axes.md``, which the documentation includes. It computes published
cells again with both axes divided by their maxima over the cell, as the deviation does. Hulls and
intersections do not depend on the unit, so only the choice of the 95 % of points does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from markdown_tables import publish, table

import qbkit as qb
from qbkit.metrics import DEFINITIONS
from qbkit.metrics.envelopes.trials import Trials
from qbkit.metrics.maps.cells import cell_trials
from qbkit.metrics.maps.families import FAMILIES

DATA = Path(__file__).parents[1] / "data"
CELLS = 12
SEED = 1


def cells() -> list[tuple[list[str], list[np.ndarray], list[np.ndarray]]]:
    """``CELLS`` random published cells: setting, and the trials of the test and the reference."""
    rng = np.random.default_rng(SEED)
    every = []
    for family in FAMILIES:
        found = cell_trials(qb.load_sweep(DATA / f"conformance/{family}.yaml"))
        reference = found.sel({"flows.0": f"tcp:{family}"})
        for place in np.ndindex(*found.shape):
            at = found[place]
            name = str(at["flows.0"].values)
            if name != f"tcp:{family}" and at.item():
                setting = [name] + [f"{at[dim].values:g}" for dim in found.dims[1:]]
                every.append((setting, at.item(), reference[place[1:]].item()))
    return [every[i] for i in sorted(rng.choice(len(every), CELLS, replace=False))]


def text() -> str:
    """The table, in Markdown."""
    rows = []
    for setting, ours, theirs in cells():
        points = np.concatenate([*ours, *theirs])
        most = points.max(axis=0)
        plain = conformance(ours, theirs)
        scaled = conformance([t / most for t in ours], [t / most for t in theirs])
        rows.append([*setting, plain, scaled, scaled - plain])
    head = ["flow", "RTT (ms)", "buffer (BDP)", "conformance", "scaled axes", "difference"]
    largest = max(abs(scaled - plain) for *_, plain, scaled, _ in rows)
    return f"{table(head, rows)}\nThe largest difference is {largest:.2f}.\n"


def conformance(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """Conformance of one trial with one of the reference, as in a map."""
    return Trials.of(ours, theirs, DEFINITIONS["imc22"]).conformance().value


def main() -> None:
    publish("scaled_axes", text())


if __name__ == "__main__":
    main()
