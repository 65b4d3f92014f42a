"""What is checked of a grid of notebooks before the first of them is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qbkit import extras, store
from qbkit.errors import SpecError
from qbkit.execution.preflight import needs, require_room
from qbkit.execution.runner import check_writable, namer
from qbkit.metrics.envelopes.envelope import definition_of, require_hull
from qbkit.spec import Bottleneck, Experiment
from qbkit.stacks.about.listing import list_implementations
from qbkit.suggestions import did_you_mean
from qbkit.testbed import engines

Parameters = Mapping[str, Any]
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text, in quotation marks where it looks like a number"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "list": ((list,), "a list"),
    "dict": ((dict,), "a dictionary"),
}
"""Annotation of a notebook's parameter → types of its values, and the same in words."""
COUNTS = ("seeds", "transfers")
"""Parameters that count something, and are 1 or more."""
FLOWS = ("test", "reference")
INPUTS = (
    *("test_log", "reference_log", "sweeps", "longer", "faster"),
    *("shallow", "deep", "start", "data", "checks"),
)
"""Parameters that name a file or a folder to read, from the notebook's folder on."""
VERDICT = "verdict_file"
WRITTEN = (VERDICT, "publish")
"""Parameters that name what one notebook writes: a file, and a folder."""
PLACES = (*WRITTEN, "out")
"""Parameters that name where to write; relative ones count from where the command runs."""
FALLBACK = "published"
"""A notebook with this parameter shows published results where its default flows cannot run."""


def require_known(source: Path, parameters: Iterable[str]) -> dict[str, Any]:
    """What papermill says of each parameter of a notebook; SpecError for one that it lacks."""
    extras.require("papermill", "jupyterlab", to="execute notebooks")
    import papermill

    known: dict[str, Any] = papermill.inspect_notebook(str(source))
    for name in parameters:
        if name not in known:
            raise SpecError(
                f"{source.stem} has no parameter {name}{did_you_mean(name, list(known))}; "
                f"it has {', '.join(known) or 'none'}"
            )
    return known


def require_runnable(
    source: Path, out: Path, combinations: Sequence[Parameters], scheduler: str | None
) -> None:
    """Raise an error of qbkit, in one sentence, for what cannot run in any of the notebooks.

    ``combinations`` has the parameters of each notebook; ``out`` is the folder of the results.
    Covers the parameters themselves, stacks, releases, controllers and options, and for all runs
    together memory and disk space.
    """
    check_writable(out / source.name)
    for name in WRITTEN:
        if len(combinations) > 1 and combinations[0].get(name):
            raise SpecError(
                f"{source.stem}: all {len(combinations)} notebooks would write {name} = "
                f"{combinations[0][name]}, each over the last; leave it out, or execute one at a "
                "time"
            )
    room = []
    for given in combinations:
        known = require_known(source, given)
        for name, value in given.items():
            _require_kind(f"{source.stem}: {name}", known[name]["inferred_type_name"], value)
        for name in WRITTEN:
            if file := given.get(name):
                path = source.parent / file
                check_writable(path if name == VERDICT else path / source.stem)
        whole = {**_defaults(known), **given}
        _require_values(source, whole, given)
        engine, experiments = whole.get("engine"), _experiments(whole, given)
        if {"definition", "duration_s", "rtt_ms"} <= whole.keys():
            require_hull(whole["definition"], whole["duration_s"], whole["rtt_ms"])
        if engines.named(engine).problem() is not None:
            continue  # it shows published results
        name_of = namer(engine)
        for experiment, count in experiments:
            name_of(experiment)  # raises for what is unknown or not ready
            room += [needs(experiment, engine)] * count
    engine = combinations[0].get("engine")
    require_room(room, store.default_folder(), engine, scheduler)


def _defaults(known: Parameters) -> dict[str, Any]:
    """The values that a notebook's parameters have by default."""
    return {name: ast.literal_eval(facts["default"]) for name, facts in known.items()}


def _require_kind(what: str, kind: str, value: Any) -> None:
    types, words = KINDS.get(kind, ((object,), ""))
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise SpecError(f"{what} is {words}, not {value!r}")


def _require_values(source: Path, whole: Parameters, given: Parameters) -> None:
    """Raise SpecError for a value that is of the right type but cannot be."""
    for name in COUNTS:
        if whole.get(name, 1) < 1:
            raise SpecError(f"{source.stem}: {name} is 1 or more, not {whole[name]}")
    if "definition" in given:
        definition_of(given["definition"])
    for name in INPUTS:
        for file in _texts(given.get(name)):
            if not (source.parent / file).exists():
                raise SpecError(
                    f"{source.stem}: {name} names {file}, which is not in {source.parent}, from "
                    "where its paths count; give the whole path of a file or folder that exists"
                )


def _texts(value: Any) -> list[str]:
    """The texts that are not empty in a value: a text, or a list or dictionary of texts."""
    values = value.values() if isinstance(value, dict) else value
    return [str(text) for text in ([values] if isinstance(values, str) else values or []) if text]


def _experiments(whole: Parameters, given: Parameters) -> list[tuple[Experiment, int]]:
    """The main runs of a notebook of flows, and how many there are of each; else SpecError."""
    names = [
        whole[name]
        for name in FLOWS
        if name in whole
        and not whole.get(f"{name}_log")
        and (name in given or FALLBACK not in whole)
    ]
    if given.get("who"):
        names += list_implementations(given["who"].split())
    link = Bottleneck(**{k: v for k, v in whole.items() if k in Bottleneck.model_fields})
    duration_s = whole.get("duration_s", 1.0)
    flows = names or ["tcp:cubic"]  # so that the duration is checked in any case
    made = [Experiment(bottleneck=link, flows=(flow,), duration_s=duration_s) for flow in flows]
    return [(experiment, whole.get("seeds", 1)) for experiment in made[: len(names)]]
