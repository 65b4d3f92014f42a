"""How published rows and files are made: their runs, and what these give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import xarray as xr

from qbkit.errors import StoreError
from qbkit.execution.many import run_every
from qbkit.execution.runner import namer, run
from qbkit.execution.web.load import run_web
from qbkit.spec import Experiment
from qbkit.spec.web import WebLoad
from qbkit.studies.reproduction.values import Precision

Spec = Experiment | WebLoad
Rows = list[dict[str, Any]]


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
