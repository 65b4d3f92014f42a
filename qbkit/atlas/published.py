"""What a folder of published data holds: sweeps, studies, lone runs, parameters, releases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.atlas.differences import Difference, differences
from qbkit.atlas.inferred import Inferred, estimates_of, read_inferred
from qbkit.errors import StoreError
from qbkit.metrics import cell_envelopes, conformance_map, dominance, interactions, settling
from qbkit.metrics.envelopes.envelope import Envelope
from qbkit.metrics.maps.interactions import FIRST, SECOND, SEED
from qbkit.spec import Experiment
from qbkit.spec.network_words import network_text
from qbkit.spec.sweep import Sweep
from qbkit.store.faults import Fault, read_faults
from qbkit.store.index import INDEX
from qbkit.store.published import load_runs, load_sweep, published_index
from qbkit.studies.conformance import Study
from qbkit.studies.explanation import Explanation
from qbkit.studies.results import open_results, reference_of

RELEASE_COLUMNS = (
    *("conformance", "conformance_low", "conformance_high", "noise_floor"),
    *("mean_throughput_difference_mbps", "decrease_factor", "cubic_c", "emulated_flows", "pacing"),
)
"""What the table of releases shows: the comparison with the kernel, and inferred parameters."""
Setting = dict[str, Any]
"""Value of each swept field but the flows and the seed."""


@dataclass(frozen=True)
class PublishedSweep:
    """A published sweep: its name (``conformance/cubic``), cube and provenance."""

    name: str
    cube: xr.Dataset
    facts: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        """Its name in a page."""
        return self.name.replace("/", "-")

    @cached_property
    def settings(self) -> list[Setting]:
        """All settings, in the order of the sweep."""
        fields = [str(d) for d in self.cube["done"].dims if d not in (FIRST, SECOND, SEED)]
        places = np.ndindex(*(self.cube.sizes[f] for f in fields))
        return [
            {f: self.cube[f].values[i].item() for f, i in zip(fields, place, strict=True)}
            for place in places
        ]

    @property
    def base(self) -> dict[str, Any]:
        """The experiment that the sweep varies."""
        found: dict[str, Any] = json.loads(self.cube.attrs["sweep"])["base"]
        return found

    def experiment(self, flows: list[str], setting: Setting, seed: int) -> Experiment:
        """The experiment of one run."""
        chosen = {f"flows.{i}": flow for i, flow in enumerate(flows)} | {**setting, "seed": seed}
        only = Sweep(name=self.name, base=self.base, sweep={f: [v] for f, v in chosen.items()})
        return next(only.points()).experiment

    @property
    def seeds(self) -> list[int]:
        """Seeds of the trials."""
        if SEED in self.cube.coords:
            return [int(seed) for seed in np.atleast_1d(self.cube[SEED].values)]
        return [int(self.base.get("seed", 1))]


@dataclass(frozen=True)
class ConformanceSweep(PublishedSweep):
    """Implementations against one reference, which is among them."""

    @property
    def reference(self) -> str:
        """The implementation that all others are compared with."""
        return reference_of(self.cube)

    @cached_property
    def map(self) -> xr.Dataset:
        """See `qbkit.metrics.conformance_map`."""
        return conformance_map(self.cube, self.reference)

    @cached_property
    def settling(self) -> xr.Dataset:
        """See `qbkit.metrics.verdicts.settling`."""
        return settling(self.cube)

    @cached_property
    def _envelopes(self) -> xr.DataArray:
        return cell_envelopes(self.cube)

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """See `qbkit.atlas.differences`."""
        return differences(self.cube, self.map)

    @cached_property
    def implementations(self) -> list[str]:
        """All implementations, without the reference."""
        return [str(name) for name in self.map[FIRST].values]

    def row(self, name: str) -> xr.Dataset:
        """The map of one implementation."""
        return self.map.sel({FIRST: name})

    def figures(self, name: str, setting: Setting) -> dict[str, float]:
        """Every number of the map and of `settling` of one implementation in one setting."""
        return self._figures[(name, *setting.values())]

    def noise_floor(self, setting: Setting) -> float:
        """Conformance of one trial of the reference with another."""
        return self.figures(self.implementations[0], setting)["noise_floor"]

    @cached_property
    def _figures(self) -> dict[tuple[Any, ...], dict[str, float]]:
        settling = self.settling.sel({FIRST: self.map[FIRST]})
        every = self.map.drop_attrs().merge(settling.drop_attrs())
        frame = every.to_dataframe(dim_order=[FIRST, *self.settings[0]])
        places = frame.index if frame.index.nlevels > 1 else zip(frame.index)  # a single setting
        return dict(zip(places, frame.astype(float).to_dict("records"), strict=True))

    def envelope(self, name: str, setting: Setting) -> Envelope | None:
        """Envelope of all trials in one setting; None without a trial."""
        found: Envelope | None = self._envelopes.sel({FIRST: name, **setting}).item()
        return found


class Share(NamedTuple):
    """The share of an implementation against another, over all trials."""

    value: float
    low: float
    """The lower end of its 95 % interval; NaN for a single trial."""
    high: float
    wins: float
    trials: int


@dataclass(frozen=True)
class InteractionSweep(PublishedSweep):
    """Every pair of several implementations."""

    @cached_property
    def table(self) -> xr.Dataset:
        """See `qbkit.metrics.interactions`."""
        return interactions(self.cube)

    @cached_property
    def implementations(self) -> list[str]:
        """All implementations."""
        return [str(name) for name in self.cube[FIRST].values]

    def shares(self, name: str, setting: Setting) -> dict[str, Share]:
        """The share of an implementation against each one, the smallest first."""
        mine = self.table.sel({FIRST: name, **setting}).to_dataframe()
        mine = mine[mine.trials > 0].sort_values("throughput_ratio")
        return {
            str(row.Index): Share(
                row.throughput_ratio,
                row.throughput_ratio_low,
                row.throughput_ratio_high,
                row.win_share * row.trials,
                row.trials,
            )
            for row in mine.itertuples()
        }

    def mean_share(self, name: str, setting: Setting) -> float:
        """Its mean share against all others."""
        ratios = self.table.throughput_ratio.sel(setting, drop=True)
        return float(dominance(ratios).sel({FIRST: name}))

    def order_of(self, name: str, other: str, setting: Setting) -> list[str]:
        """The pair in the order in which it was run."""
        done = self.cube["done"].sel({FIRST: name, SECOND: other, **setting})
        return [name, other] if bool(done.any()) else [other, name]


@dataclass(frozen=True)
class PublishedStudy:
    """A published study, with the inferred parameters where they were published."""

    name: str
    results: Study | Explanation

    @property
    def study(self) -> Study:
        """The runs."""
        return self.results.study if isinstance(self.results, Explanation) else self.results

    @property
    def explanation(self) -> Explanation | None:
        """What distinguishes the two sides, if it was published."""
        return self.results if isinstance(self.results, Explanation) else None

    @property
    def implementation(self) -> str:
        """The test without its options."""
        return self.experiment.flows[0].name

    @property
    def test(self) -> str:
        """The implementation under test with its options."""
        return self.experiment.flows[0].text

    @property
    def title(self) -> str:
        """The test and its network."""
        return f"{self.test} at {network_text(self.experiment.bottleneck)}"

    @property
    def experiment(self) -> Experiment:
        """The experiment of the first trial of the test."""
        return Experiment.from_json(self.study.tests[0].attrs["spec"])


@dataclass(frozen=True)
class Published:
    """Everything that the atlas shows."""

    folder: Path
    conformance: tuple[ConformanceSweep, ...]
    interactions: tuple[InteractionSweep, ...]
    studies: tuple[PublishedStudy, ...]
    alone: Mapping[str, xr.Dataset]
    """One run of each implementation alone on a link."""
    parameters: Mapping[str, Inferred]
    """The parameters of each implementation, inferred from lone flows."""
    releases: pd.DataFrame | None
    """A row per release (``stack``, ``version``, ``date``, ``controller``, `RELEASE_COLUMNS`), if
    releases are published."""
    faults: Mapping[str, Sequence[Fault]]
    """The known faults of an implementation."""
    clocks: Mapping[str, Sequence[Mapping[str, Any]]]
    """The cells of an implementation in virtual and in physical time, beside the kernel's: a row of
    ``checks/physical-time.csv`` each."""
    external: Mapping[str, Mapping[str, str]]
    """``version``, ``source`` and ``build`` of each stack that was built outside of qbkit."""

    @property
    def sweeps(self) -> tuple[PublishedSweep, ...]:
        """All sweeps."""
        return (*self.conformance, *self.interactions)

    @cached_property
    def implementations(self) -> list[str]:
        """Every implementation that the data name."""
        found = set(self.alone)
        for sweep in self.conformance:
            found |= {*sweep.implementations, sweep.reference}
        for pairs in self.interactions:
            found |= {*pairs.implementations}
        found |= {each.implementation for each in self.studies} | {*self.parameters}
        return sorted(found)

    def difference(self, name: str) -> Difference | None:
        """The difference in the first sweep that compares an implementation; None without one."""
        found = (sweep.differences.get(name) for sweep in self.conformance)
        return next(filter(None, found), None)

    def version(self, name: str) -> str:
        """The version of a stack, as the newest data name it; "" where none does."""
        stack = name.partition(":")[0]
        if stack == "tcp":
            return f"Linux {self.sweeps[-1].facts['kernel_version']}"
        found: dict[str, str] = {}
        for sweep in self.sweeps:
            found |= sweep.facts["stack_versions"]
        if name in self.alone:
            found |= json.loads(self.alone[name].attrs["stack_versions"])
        # The driver's version follows: it is the hash of our own program.
        return str(found.get(stack, "")).partition(",")[0].partition("driver")[0].strip()


def read_published(folder: Path) -> Published:
    """What a folder holds; StoreError if it holds no sweep, or if a file was changed."""
    sweeps = [_sweep(folder, spec) for spec in sorted(folder.glob("*/*.yaml"))]
    conformance = tuple(s for s in sweeps if isinstance(s, ConformanceSweep))
    interactions = tuple(s for s in sweeps if isinstance(s, InteractionSweep))
    if not conformance:
        raise StoreError(
            f"{folder} holds no conformance sweep; give the folder of published data", refused=True
        )
    alone = load_runs(folder / "gallery") if (folder / "gallery" / INDEX).exists() else {}
    return Published(
        folder,
        conformance,
        interactions,
        tuple(_studies(folder)),
        alone,
        read_inferred(folder),
        _releases(folder / "releases"),
        read_faults(folder / "faults.csv"),
        _rows(folder / "checks/physical-time.csv", "flow"),
        _external(folder / "external.csv"),
    )


def _sweep(folder: Path, spec: Path) -> PublishedSweep | None:
    """The sweep of a specification, if it compares implementations."""
    index = spec.with_suffix(".json")
    if not index.exists() or FIRST not in Sweep.from_file(spec).sweep:
        return None
    cube, facts = load_sweep(spec), json.loads(index.read_text())
    name = spec.relative_to(folder).with_suffix("").as_posix()
    if FIRST in cube.dims and SECOND in cube.dims:
        alike = set(cube[FIRST].values.tolist()) == set(cube[SECOND].values.tolist())
        return InteractionSweep(name, cube, facts) if alike else None
    # A sweep with a reference among its implementations is published with its map. A reference with
    # options is an experiment.
    compares = "map" in cube.attrs and "?" not in reference_of(cube)
    return ConformanceSweep(name, cube, facts) if compares else None


def _studies(folder: Path) -> Iterator[PublishedStudy]:
    """The studies of stacks as they are: options and qbkit's own controllers are experiments."""
    for index in sorted([*folder.glob(f"*/{INDEX}"), *folder.glob(f"*/*/{INDEX}")]):
        facts = published_index(index.parent)
        if "test" not in facts:
            continue
        first, *_ = facts["files"].values()
        flow = first["provenance"]["spec"]["flows"][0]
        if flow["stack"] != "qbkit" and not flow["options"]:
            results = open_results(index.parent)
            assert isinstance(results, Study | Explanation)
            yield PublishedStudy(index.parent.relative_to(folder).as_posix(), results)


def _releases(folder: Path) -> pd.DataFrame | None:
    """Date, conformance and inferred parameters of each release, the oldest first."""
    if not (folder / "dates.csv").exists():
        return None
    table = pd.read_csv(folder / "dates.csv", dtype=str).set_index("release")
    measured = []
    if (folder / "conformance.csv").exists():
        measured.append(pd.read_csv(folder / "conformance.csv", index_col="release"))
    if (folder / "parameters.csv").exists():
        measured.append(_by_release(pd.read_csv(folder / "parameters.csv", dtype=str)))
    for each in measured:
        table = table.join(each[[name for name in each if name in RELEASE_COLUMNS]])
    table = table.reindex(columns=["version", "date", "controller", *RELEASE_COLUMNS])
    table["stack"] = table.index.str.partition("@").get_level_values(0)
    known = table.dropna(subset=list(RELEASE_COLUMNS), how="all")
    return known.sort_values(["stack", "date"]).reset_index()


def _rows(table: Path, column: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of each implementation, which that column names; none without a table."""
    if not table.exists():
        return {}
    return {
        str(name): rows.drop(columns=column).to_dict("records")
        for name, rows in pd.read_csv(table).groupby(column)
    }


def _external(table: Path) -> dict[str, dict[str, str]]:
    """The row of each external stack; none without a table."""
    if not table.exists():
        return {}
    rows = pd.read_csv(table, dtype=str).set_index("stack")
    return {str(stack): row.to_dict() for stack, row in rows.iterrows()}


def _by_release(parameters: pd.DataFrame) -> pd.DataFrame:
    """A row per release, and a column with value and interval of each parameter."""
    shown = parameters.assign(text=[str(each) for each in estimates_of(parameters)])
    return shown.pivot(index="release", columns="parameter", values="text")
