"""Published points: what was run, how their rows and files are made of it, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import xarray as xr

from qbkit.errors import QbkitError, StoreError
from qbkit.execution.many import run_every
from qbkit.execution.runner import namer, run
from qbkit.execution.web.load import run_web
from qbkit.spec import Experiment
from qbkit.spec.web import WebLoad
from qbkit.studies.reproduction.values import Precision, Ranges, Values, values_of

Spec = Experiment | WebLoad
Rows = list[dict[str, Any]]
SHOWN = ("flow", "other", "seed", "rate_mbps", "rtt_ms", "buffer_bdp", "buffer_packets")
"""Keys of rows that the description of the runs shows."""


@dataclass(frozen=True)
class Table:
    """A published table or file that recipes can make again."""

    precision: Precision = field(default_factory=Precision)
    by: tuple[str, ...] = ()
    """The columns that the rows of one recipe have in common; () if each row has its own."""


@dataclass(frozen=True)
class Recipe:
    """The runs behind a row of a table, or behind several rows, or behind a file."""

    groups: Sequence[Sequence[Spec]]
    """The runs; those of a group differ in their seeds."""
    measure: Callable[..., dict[str, Any] | Rows | xr.Dataset]
    """What the runs give, one argument for each group: a row, rows, or the dataset of a file."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """The columns of a row that say what was run."""
    keep: str = ""
    """What `measure` needs of the files of a run: "pcap" or "qlog"."""
    in_this_process: bool = False
    """Whether only this process knows the stacks."""

    @property
    def specs(self) -> list[Spec]:
        """All runs."""
        return [spec for group in self.groups for spec in group]

    def made(self, runs: Sequence[xr.Dataset]) -> dict[str, Any] | Rows | xr.Dataset:
        """What the runs, in the order of `specs`, give; a row begins with its `keys`."""
        left = iter(runs)
        found = self.measure(*(list(islice(left, len(group))) for group in self.groups))
        return {**self.keys, **found} if self.keys and isinstance(found, dict) else found

    def runs(self) -> list[xr.Dataset]:
        """Run everything in parallel, and load what is stored.

        Raises SpecError, StackNotReady or EngineError before the first run if one cannot run.
        """
        experiments = [spec for spec in self.specs if isinstance(spec, Experiment)]
        if self.in_this_process or self.keep or len(experiments) < max(2, len(self.specs)):
            require_ready(experiments)
            return [self._run(spec) for spec in self.specs]
        return run_every(experiments)

    def _run(self, spec: Spec) -> xr.Dataset:
        keep = self.keep or ()
        return run(spec, keep=keep) if isinstance(spec, Experiment) else run_web(spec, keep=keep)


@dataclass(frozen=True)
class Point:
    """One published point."""

    source: Path
    """The file or folder that holds it."""
    recipe: Recipe
    """What was run, and what it gives."""
    published: Callable[[], Values]
    """Its values by name."""
    precision: Precision = field(default_factory=Precision)
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What it was made with, as far as it is published: stacks, kernel, measurement version."""
    ranges: Callable[[], Ranges] = dict
    """Least and greatest published value of all seeds, by name; empty if one seed is published."""

    @property
    def name(self) -> str:
        """Where it is, and what was run."""
        first, seeds = self.recipe.specs[0], sorted({spec.seed for spec in self.recipe.specs})
        link = first.bottleneck
        what = _flow_words(_flows(first)) if isinstance(first, Experiment) else first.name
        buffer = next(
            f"{value:g} {unit}"
            for unit in ("bdp", "bytes", "packets")
            if (value := getattr(link, f"buffer_{unit}")) is not None
        )
        more = [f"{k} {v}" for k, v in self.recipe.keys.items() if k not in SHOWN and v != ""]
        words = [f"{link.rate_mbps:g} Mbit/s", f"{link.rtt_ms:g} ms", buffer, *more]
        when = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
        return f"{self.source}: {what}, {', '.join([*words, when])}"

    def values(self, runs: Sequence[xr.Dataset]) -> Values:
        """The same values of other runs of it; StoreError where its recipe cannot measure them."""
        try:
            return values_of(self.recipe.made(runs))
        except QbkitError:
            raise
        except Exception as error:  # of a program that somebody else wrote
            what = f"{type(error).__name__}: {error}"
            raise StoreError(f"its recipe cannot measure the runs ({what})") from error

    def has(self, wanted: Mapping[str, str]) -> bool:
        """Whether it has every wanted value; raises as `known`."""
        return all(
            any(_number(found) == _number(value) for found in self.known(name))
            for name, value in wanted.items()
        )

    def known(self, name: str) -> list[str]:
        """The values of a field of its experiments, or of their link.

        ``flow`` is the first flow, which a sweep over implementations changes, or a load's server,
        also without its options, or its stack alone;
        ``against`` is one of the others.
        Raises StoreError for a field that an experiment does not have.
        """
        return list(dict.fromkeys(v for spec in self.recipe.specs for v in _values(spec, name)))


def _flows(spec: Spec) -> list[str]:
    """The flows of an experiment, or the server of a load."""
    return [flow.name for flow in spec.flows] if isinstance(spec, Experiment) else [spec.server]


def _flow_words(flows: Sequence[str]) -> str:
    """The flows in a few words: those that are alike and more than two are counted."""
    alike = [(name, len(list(same))) for name, same in groupby(flows)]
    return " + ".join(f"{n} × {name}" if n > 2 else " + ".join([name] * n) for name, n in alike)


def _values(spec: Spec, name: str) -> list[str]:
    flows = _flows(spec)
    if name == "flow":
        name = flows[0].partition("?")[0]
        stack = name.partition(":")[0]
        return [name, flows[0], stack, stack.partition("@")[0]]
    if name == "against":
        return flows[1:]
    for holder in (spec, spec.bottleneck):
        if name in type(holder).model_fields:
            return [str(getattr(holder, name))]
    raise StoreError(
        f"an experiment has no field {name!r}; choose by flow, seed, rtt_ms, …", refused=True
    )


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def one_run(spec: Spec, measure: Callable[[xr.Dataset], Any]) -> Recipe:
    """The recipe of what a single run gives."""
    return Recipe([[spec]], partial(_of_first, measure))


def _of_first(measure: Callable[[xr.Dataset], Any], runs: Sequence[xr.Dataset]) -> Any:
    return measure(runs[0])


def require_ready(experiments: Sequence[Experiment]) -> None:
    """Raise SpecError, StackNotReady or EngineError if one of the experiments cannot run."""
    name = namer()
    for experiment in experiments:
        name(experiment)


def recipe_of(recipes: Iterable[Recipe], row: Mapping[str, Any]) -> Recipe:
    """The recipe with the keys of a row; StoreError if there is none."""
    for recipe in recipes:
        if all(row[name] == value for name, value in recipe.keys.items()):
            return recipe
    raise StoreError(f"no recipe makes the row {dict(row)}; was the table made by another version?")
