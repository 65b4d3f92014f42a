"""Published files and folders: the points that they hold, and what holds none."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import xarray as xr

from qbkit.errors import StoreError
from qbkit.measurement import measured_anew, version_of
from qbkit.metrics.parameters import infer
from qbkit.spec import Experiment
from qbkit.spec.spec_file import YAML
from qbkit.spec.sweep import Sweep
from qbkit.spec.web import WebLoad
from qbkit.store.datasets import attributes_of_run, load_run
from qbkit.store.index import INDEX, read_index, require_unchanged
from qbkit.store.published import STEP, load_published
from qbkit.studies.probing import alone
from qbkit.studies.reproduction import values
from qbkit.studies.reproduction.inputs import inputs_of_files, published_inputs
from qbkit.studies.reproduction.points import Point, Recipe, Table, one_run

MAKE = "make.py"
"""The program of a folder. ``REPRODUCIBLE`` has a `Table` for each file that it can make again,
``again(file, row)`` the recipe of a row, and ``OTHER`` says of the rest why it cannot."""
ENDINGS = {*YAML, ".csv", ".nc", ".png"}
"""Of files that may hold results."""
ALONE_SEEDS_BEFORE = 2
"""Of explanations that do not say how many lone runs of each side they rest on."""
UNKNOWN = "no make.py says how it was made"


def published_points(path: str | Path) -> Iterator[Point]:
    """All published points of a file or folder.

    A file is a sweep's YAML, a table or a run. Raises StoreError where there is no point, with the
    reason, and for a file that was changed.
    """
    place = Path(path)
    if not place.exists():
        raise StoreError(
            f"{path} does not exist; give data, a folder in it, or a published file", refused=True
        )
    found = False
    for source in _sources(place):
        for file in _files(source):
            if _named_by(place) in (file, *file.parents):
                yield from (points := list(_points(source, file)))
                found = found or bool(points)
    if not found:
        rest = without_points(place)
        why = f"{rest[0][0].name}: {rest[0][1]}" if rest else "it has no results"
        raise StoreError(
            f"{path} has no published point ({why}); give data, or a folder in it", refused=True
        )


def without_points(path: str | Path) -> list[tuple[Path, str]]:
    """The published files of a file or folder that hold no point, and why."""
    place = Path(path)
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    covered = {file for source in _sources(place) for file in _files(source)}
    results = [file for file in files if file.suffix in ENDINGS]
    return [(file, _reason(file)) for file in results if _named_by(file) not in covered]


def _sources(place: Path) -> list[Path]:
    """The sweeps, indices and programs that describe the points of a file or folder, in order."""
    if place.is_file():
        files = [_named_by(place), place.parent / INDEX]
    else:
        files = sorted(place.rglob("*"))
    return [file for file in (*files, *_programs_above(place)) if _is_source(file)]


def _is_source(file: Path) -> bool:
    if file.name == MAKE:
        return file.exists() and "REPRODUCIBLE" in file.read_text()
    is_sweep = file.suffix in YAML and bool(_facts(file))
    return file.exists() and (is_sweep or file.name == INDEX)


def _facts(sweep: Path) -> dict[str, Any]:
    """What a published sweep's JSON says beside it; empty where there is none of the kind."""
    try:
        facts = json.loads(sweep.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) and "stack_versions" in facts else {}


def _programs_above(place: Path) -> list[Path]:
    """Where a program stands that may make the file or folder: up to three folders above."""
    return [folder / MAKE for folder in place.parents[:3]]


def _points(source: Path, file: Path) -> Iterator[Point]:
    """The points of a file that a source describes."""
    if source.name == MAKE:
        return _of_rows(source, file) if file.suffix == ".csv" else _of_events(source, file)
    if file.name == INDEX:
        return _of_parameters(file)
    return _of_run(file) if source.name == INDEX else _of_sweep(source)


def _files(source: Path) -> list[Path]:
    """The files with points that a source describes."""
    if source.name == MAKE:
        return [source.parent / name for name in _program(source).REPRODUCIBLE]
    if source.name == INDEX:
        index = read_index(source.parent, "runs")
        runs = [source.parent / name for name, facts in index["files"].items() if _spec(facts)]
        return [*runs, source] if "parameters" in index else runs
    return [source]


def _named_by(place: Path) -> Path:
    """The file or folder, or of a sweep's other files its YAML."""
    specs = [place.with_suffix(ending) for ending in YAML] if place.name else []  # "." has none
    return next((spec for spec in specs if _is_source(spec)), place)


def _reason(file: Path) -> str:
    """Why a file has no point."""
    for make in filter(_is_source, _programs_above(file)):
        name = file.relative_to(make.parent).as_posix()
        for pattern, reason in getattr(_program(make), "OTHER", {}).items():
            if fnmatch(name, pattern):
                return str(reason)
    if file.suffix in YAML:
        return "it is no published sweep"
    index = file.parent / INDEX
    known = index.exists() and file.name in read_index(index.parent, "runs")["files"]
    is_import = known and file.suffix == ".nc"
    return "it is an imported capture" if is_import else UNKNOWN


def _of_sweep(path: Path) -> Iterator[Point]:
    """The runs of a published sweep."""
    facts = _facts(path)
    inputs = published_inputs(facts, facts["stack_versions"])
    cube = load_published(path)
    sweep = Sweep(**json.loads(cube.attrs["sweep"]))
    measure = partial(values.of_run, version=version_of(facts))
    done = cube["done"].transpose(*sweep.sweep).values
    for point in sweep.points():
        if done[point.index]:
            row = dict(zip(sweep.sweep, point.index, strict=True))
            published = partial(values.of_cube, cube, row)
            recipe = one_run(point.experiment, measure)
            ranges = partial(_ranges, cube, row)
            yield Point(path, recipe, published, values.Precision(step=STEP), inputs, ranges)


def _ranges(cube: xr.Dataset, row: Mapping[str, int]) -> values.Ranges:
    """Least and greatest value of the completed runs with all seeds of a run."""
    every = range(cube.sizes.get("seed", 0))
    places: list[dict[str, int]] = [{**row, "seed": i} for i in every]
    done = [place for place in places if bool(cube["done"].isel(place))]
    return values.ranges_of(cube, done)


def _of_run(path: Path) -> Iterator[Point]:
    """A run of a folder with an index."""
    provenance = read_index(path.parent, "runs")["files"][path.name]["provenance"]
    attrs = attributes_of_run(path)
    is_load = "web_load" in attrs
    spec: Experiment | WebLoad = (
        WebLoad.from_json(attrs["web_load"]) if is_load else Experiment.from_json(attrs["spec"])
    )
    inputs = inputs_of_files([provenance])
    recipe = one_run(spec, values.of_variables)
    yield Point(path, recipe, partial(_of_file, path), values.Precision(), inputs)


def _spec(facts: Mapping[str, Any]) -> Any:
    return (facts.get("provenance") or {}).get("spec")


def _of_file(path: Path) -> values.Values:
    """The values of a published run, without those that are measured otherwise today."""
    run = load_run(path)
    return values.of_variables(run.drop_vars(measured_anew(run.attrs), errors="ignore"))


def _of_parameters(index: Path) -> Iterator[Point]:
    """The inferred parameters of both sides of an explained study."""
    known = read_index(index.parent, "runs")
    for side, parameters in known["parameters"].items():
        names = [name for name in known["files"] if name.startswith(f"{side}-")]
        one = Experiment.from_json(attributes_of_run(index.parent / names[0])["spec"])
        seeds = min(len(names), int(known.get("alone_seeds", ALONE_SEEDS_BEFORE)))
        lone = alone(one.flows[0], one.bottleneck, duration_s=one.duration_s, seeds=seeds)
        recipe = Recipe([lone], lambda runs: infer(runs).to_dict()["estimates"])
        published = partial(values.values_of, parameters["estimates"])
        inputs = inputs_of_files(known["files"][name]["provenance"] for name in names)
        yield Point(index, recipe, published, inputs=inputs)


def _of_rows(make: Path, path: Path) -> Iterator[Point]:
    """The rows of a table."""
    program, inputs = _program(make), _inputs_beside(path)
    name = path.relative_to(make.parent).as_posix()
    table: Table = program.REPRODUCIBLE[name]
    for rows in _grouped(path, table):
        kept = rows if table.by else rows[0]
        recipe = _recipe(make, name, rows[0])
        yield Point(path, recipe, partial(values.values_of, kept), table.precision, inputs)


def _of_events(make: Path, path: Path) -> Iterator[Point]:
    """A file of events."""
    program, name = _program(make), path.relative_to(make.parent).as_posix()
    published = partial(values.of_variables, xr.load_dataset(path))
    precision, inputs = program.REPRODUCIBLE[name].precision, _inputs_beside(path)
    yield Point(path, _recipe(make, name, {}), published, precision, inputs)


def _recipe(make: Path, name: str, row: dict[str, Any]) -> Recipe:
    """What a program says of a row, or of a file of events; StoreError where it says nothing."""
    try:
        recipe = _program(make).again(name, row)
    except Exception as error:  # of a program that somebody else wrote
        raise StoreError(f"{make} makes no row like {row} ({error}); correct it") from None
    if not isinstance(recipe, Recipe) or not recipe.specs:
        raise StoreError(f"{make}: again({name!r}, {row}) returns no Recipe with a run; correct it")
    return recipe


def _grouped(path: Path, table: Table) -> Iterator[list[dict[str, Any]]]:
    """The rows of each point; StoreError for what is no table with the columns of its groups."""
    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is damaged or no table ({error}); fetch it again") from None
    if lacking := [name for name in table.by if name not in frame]:
        raise StoreError(f"{path} has no column {lacking[0]}, by which its rows are grouped")
    rows = enumerate(frame.to_dict("records"))
    for _, group in groupby(rows, lambda row: [row[1][name] for name in table.by] or row[0]):
        yield [row for _, row in group]


@cache
def _program(make: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"make_{make.parent.name}", make)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(make.parent))  # of its other files, as where Python starts it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise StoreError(f"{make} cannot be loaded ({error}); correct it") from None
    finally:
        sys.path.remove(str(make.parent))
    tables = getattr(module, "REPRODUCIBLE", None)
    if not isinstance(tables, dict) or not all(isinstance(t, Table) for t in tables.values()):
        raise StoreError(f"{make}: REPRODUCIBLE has a Table for each file, by name; correct it")
    return module


def _inputs_beside(file: Path) -> dict[str, str]:
    """The inputs that the index beside a file names, for it or for all, if there is one.

    Raises StoreError if the file is not the one whose inputs these are.
    """
    index = file.parent / INDEX
    if not index.exists():
        return {}
    common = read_index(index.parent, "tables")
    own = common["files"].get(file.name, {})
    if "sha256" in own:
        require_unchanged(file, file.read_bytes() if file.is_file() else None, own)
    facts = {**common, **own}
    return published_inputs(facts, facts.get("versions", {})) if "kernel_version" in facts else {}
