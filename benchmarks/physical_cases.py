"""Where does virtual time matter? An experiment of each kind of a book in both times.

    python benchmarks/physical_cases.py [--seeds 5] [--write]

A question of the book of RFC 9743, two test cases of the BBR draft, and Prague beside CUBIC on
`dualpi2`: in virtual time, and in the same guest on the machine's clock. Shares of two flows are
those of `physical_time.py`. A run in physical time whose guest needs more than half a processor is
refused, and reported. Runs are stored, so the benchmark can be stopped and started. Leave the
machine idle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from markdown_tables import arguments, record

import qbkit as qb
from qbkit.metrics.evaluation.measures import MEASURES, Part
from qbkit.studies.evaluation.shelf import open_book
from qbkit.traces.run.attributes import run_experiment

ENGINES = ("virtual", "physical")
FRAMES = "frames of 2 Mbit/s that come too late beside it"


@dataclass(frozen=True)
class Kind:
    """An experiment, and what is measured of it."""

    words: str
    experiment: Callable[[int], qb.Experiment]
    """For a seed."""
    measures: tuple[str, ...]
    from_s: float


def question(sender: str) -> Kind:
    """Frames that come too late beside a sender: section 5.2.2 of RFC 9743."""
    every = open_book("rfc9743").scenarios
    (scenario,) = [one for _, one in every if one.name == FRAMES]
    setting = next(scenario.settings(quick=True))
    made = partial(scenario.experiment, sender, setting)
    return Kind(f"frames beside {sender}", made, scenario.measures, scenario.from_s)


def case(sender: str, number: int) -> Kind:
    """A test case of the BBR draft, which changes the rate."""
    (found,) = [one for one in open_book("bbr-draft").cases if one.number == number]
    made = partial(found.scenario.experiment, sender, found.setting())
    expected = found.expects[0]
    return Kind(f"{found.title}, {sender}", made, (expected.measure,), expected.from_s)


def l4s(sender: str) -> Kind:
    """A sender of L4S beside the kernel's CUBIC: a cell of ``data/l4s/queues.yaml``."""
    link = qb.Bottleneck(rate_mbps=40, rtt_ms=20, buffer_bytes=500_000, qdisc="dualpi2")

    def made(seed: int) -> qb.Experiment:
        return qb.Experiment(bottleneck=link, flows=[sender, "tcp:cubic"], duration_s=30, seed=seed)

    return Kind(f"{sender} beside tcp:cubic on dualpi2", made, ("share", "queue"), 10.0)


KINDS = (question("tcp:bbr"), case("tcp:bbr", 15), case("quinn:bbr", 16), l4s("picoquic:prague"))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    rows = [row for kind in KINDS for row in compared(kind, args.seeds)]
    record("physical_cases", rows, ["experiment", "measure"], args.write)


def compared(kind: Kind, seeds: int) -> list[dict[str, object]]:
    """A row for each measure; none where a time has no run."""
    experiments = [kind.experiment(seed) for seed in range(1, seeds + 1)]
    runs = {}
    for engine in ENGINES:
        outcomes = qb.run_all(experiments, engine=engine)
        for outcome in outcomes:
            if outcome.run is None:
                print(f"{kind.words}, {engine}: {outcome.error}", flush=True)
        runs[engine] = [o.run for o in outcomes if o.run is not None]
    if not all(runs.values()):
        return []
    rows = []
    for name in kind.measures:
        row: dict[str, object] = {"experiment": kind.words, "measure": words(name)}
        for engine, found in runs.items():
            values = [MEASURES[name].compute(part(run, kind, name)) for run in found]
            row[engine] = f"{np.mean(values):.3g} ({min(values):.3g} to {max(values):.3g})"
            row[f"runs, {engine}"] = len(values)
        used = [run.attrs["cpu_s"] / run.attrs["wall_s"] for run in runs["physical"]]
        rows.append({**row, "processor": float(np.mean(used))})
    return rows


def words(name: str) -> str:
    """A measure and its unit."""
    measure = MEASURES[name]
    return f"{measure.words}, {measure.unit}" if measure.unit else measure.words


def part(run: xr.Dataset, kind: Kind, name: str) -> Part:
    """The flows that a measure is of, from the start of the span on; the first is tested."""
    count = run.sizes["flow"]
    flows = {"tested": [0], "others": range(1, count), "all": range(count)}[MEASURES[name].of]
    return Part(run, flows, kind.from_s, run_experiment(run).duration_s)


if __name__ == "__main__":
    main()
