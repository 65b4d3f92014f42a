"""Small files of runs and sweeps, with their provenance, that open without an engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from qbkit import measurement, store
from qbkit.arguments import as_path
from qbkit.errors import MISNAMED, StoreError
from qbkit.files import writing
from qbkit.json_words import object_of
from qbkit.metrics import cell_envelopes, conformance_map, hull_table
from qbkit.metrics.envelopes.points import WINDOW_RTTS
from qbkit.metrics.maps.interactions import FIRST, SECOND
from qbkit.metrics.maps.kept import PREFIX, with_map
from qbkit.spec.spec_file import YAML
from qbkit.spec.sweep import Sweep, named_flow
from qbkit.store.index import (
    published_files,
    read_index,
    require_file_names,
    require_unchanged,
    write_index,
)
from qbkit.store.on_demand import of_content
from qbkit.store.sweep_folder import CUBE, load_cube

STEP = 0.01
"""Published values are rounded to 0.01 of their unit (ms, Mbit/s, %, s): a tenth of the size."""
EMPTY = np.iinfo(np.int32).min
PACKET_TABLES = {"packet", "ack", "sample", "object"}
"""Dimensions whose variables are not published."""
ENVELOPE_SERIES = ("throughput_mbps", "queue_delay_ms")
RUN_FACTS = (
    *("hash", "engine", "kernel_version", "kernel_build", "measurement_version"),
    *("stack_versions", "tool_versions", "qbkit_version", "seed", "created", "cpu_s"),
)


def publish_runs(
    runs: Mapping[str, xr.Dataset],
    folder: str | Path,
    *,
    facts: Mapping[str, Any] | None = None,
    series: Sequence[str] | None = None,
) -> Path:
    """Write runs by name as `without_tables` leaves them, and return the path of the index.

    All binned series are written, or those in ``series`` (an envelope needs `ENVELOPE_SERIES`).

    The index holds the ``facts``, and for each run its provenance (spec, versions, seed, date; for
    imported captures what is known of these) and the SHA-256 of its file. Raises SpecError for a
    name that is none of a file, and StoreError if two names give the same file, or if the folder
    cannot be written.
    """
    target = as_path(folder)
    require_file_names(runs)
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, Any]] = {}
    for name, run in runs.items():
        path = target / f"{name.replace(':', '-')}.nc"
        if path.name in files:
            raise StoreError(f"{files[path.name]['name']} and {name} are both {path}; rename one")
        binned = {n for n, v in run.data_vars.items() if "time" in v.dims}
        others = binned - set(series if series is not None else binned)
        # Without the encoding of a file that it was loaded from: its tables are gone here.
        store.save_run(without_tables(run).drop_vars(others).drop_encoding(), path)
        facts_of_run = {key: run.attrs[key] for key in RUN_FACTS if key in run.attrs}
        spec = json.loads(run.attrs["spec"] or "null")  # imported captures have none
        provenance = {"spec": spec, **facts_of_run}
        files[path.name] = {"name": name, "sha256": _sha256(path), "provenance": provenance}
    return write_index(target, files, facts)


def without_tables(run: xr.Dataset) -> xr.Dataset:
    """A run as it is published: without its packets, ACKs, samples and objects.

    Below an RTT of 10 ms it keeps them: its bins are longer than the windows of an envelope.
    """
    if "base_rtt_ms" in run and WINDOW_RTTS * run["base_rtt_ms"].min() < 1e3 * run.attrs["bin_s"]:
        return run
    return run.drop_vars([n for n, v in run.variables.items() if PACKET_TABLES & set(v.dims)])


def load_runs(folder: str | Path) -> dict[str, xr.Dataset]:
    """The runs that `publish_runs` wrote, by name; raises StoreError for a changed or lost file."""
    runs = {}
    for path, facts in published_files(folder, "runs"):
        runs[str(facts.get("name", path.stem))] = store.load_run(path)
    return runs


def published_index(folder: str | Path) -> dict[str, Any]:
    """The index of published runs; raises StoreError where there is none."""
    return read_index(folder, "runs")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_cube(cube: xr.Dataset, spec: str | Path) -> Path:
    """Write a sweep's cube (`qbkit.store.cube`) beside SPEC.yaml: SPEC.nc and SPEC.json.

    Values are rounded to 0.01 of their unit. A sweep that compares implementations with one (no
    ``flows.1`` is swept) also gets their hulls (`qbkit.metrics.hull_table`) and its conformance map
    (`qbkit.metrics.maps.kept`). Returns the path of the JSON.
    """
    source = as_path(spec)
    if FIRST in cube.dims and SECOND not in cube.dims:
        # Use the points as a reader will find them: rounding moves a hull.
        derived = [name for name in cube.data_vars if str(name).startswith(("hull_", PREFIX))]
        cube = of_content(source, _packed(cube.drop_vars(derived))).load()
        cube.attrs.pop("map", None)
        cube = cube.merge(hull_table(cell_envelopes(cube)))
        for flow in Sweep.from_file(source).base["flows"][1:2]:  # none beside a lone flow
            if (reference := named_flow(flow)) in cube[FIRST].values:
                cube = with_map(cube, conformance_map(cube, reference))
    target = source.with_suffix(".nc")
    target.write_bytes(_packed(cube))
    index = source.with_suffix(".json")
    index.write_text(json.dumps(_provenance(cube, source, target), indent=1) + "\n")
    return index


def load_sweep(path: str | Path) -> xr.Dataset:
    """The cube of a sweep, from the folder or URL where it ran, or as published beside SPEC.yaml.

    Raises StoreError where there is none, or where a published file or its SPEC.yaml was changed.
    """
    spec = as_path(path)
    if spec.suffix in {".nc", ".json"} and spec.with_suffix(".yaml").is_file():
        spec = spec.with_suffix(".yaml")
    if spec.suffix in YAML:
        cube = load_published(spec)
        _require_same_sweep(spec, cube)
        return cube
    specs = sorted(one.name for one in as_path(path).glob("*.yaml"))
    if specs and not (as_path(path) / CUBE).exists():
        raise StoreError(
            f"{path} holds specs of sweeps; name one of them: {', '.join(specs)}", refused=True
        )
    return load_cube(str(path))


def load_published(spec: str | Path) -> xr.Dataset:
    """The published cube of SPEC.yaml; raises StoreError if it is missing or was changed."""
    index = as_path(spec).with_suffix(".json")
    target = index.with_suffix(".nc")
    try:
        document = object_of(index.read_bytes())
        content = target.read_bytes()
    except (OSError, ValueError) as error:
        words = f"run it, or publish it with qb.publish_sweep('{spec}', FOLDER)"
        missing = isinstance(error, MISNAMED)
        raise StoreError(f"no results of {spec} are published; {words}", refused=missing) from None
    require_unchanged(target, content, document)
    try:
        version = measurement.version_of(document)
    except ValueError as error:
        raise StoreError(f"{index} is damaged: {error}; fetch it again") from None
    try:
        return of_content(target, content).load().assign_attrs(measurement_version=version)
    except Exception:  # h5py raises nearly anything on damaged files
        raise StoreError(f"{target} is damaged or no netCDF file; fetch it again") from None


def _require_same_sweep(spec: Path, cube: xr.Dataset) -> None:
    """Refuse a spec that was edited since its results were published; it may be left out."""
    if not spec.is_file():
        return
    asked, ran = Sweep.from_file(spec), Sweep.model_validate_json(cube.attrs["sweep"])
    fields = [n for n in {**asked.sweep, **ran.sweep} if asked.sweep.get(n) != ran.sweep.get(n)]
    fields += [n for n in {**asked.base, **ran.base} if asked.base.get(n) != ran.base.get(n)]
    fields += [n for n in ("unordered", "settle_s") if getattr(asked, n) != getattr(ran, n)]
    if fields:
        raise StoreError(
            f"{spec} was edited since its results were published ({', '.join(fields)}); undo that, "
            f"or run it and load the folder: qbkit sweep {spec} --out FOLDER",
            refused=True,
        )


def _packed(cube: xr.Dataset) -> bytes:
    """A cube as netCDF, with values rounded to `STEP`."""
    whole = {"dtype": "int32", "scale_factor": STEP, "_FillValue": EMPTY}
    small = {**whole, "zlib": True, "complevel": 9, "shuffle": True}
    exact = {"zlib": True, "complevel": 9, "shuffle": True}
    encoding = {
        name: exact if str(name).startswith(PREFIX) else small
        for name, v in cube.data_vars.items()
        if v.dtype.kind == "f"
    }
    return bytes(cube.to_netcdf(engine="h5netcdf", encoding=encoding))


def _provenance(cube: xr.Dataset, spec: Path, target: Path) -> dict[str, Any]:
    sweep, here = Sweep.from_file(spec), Path.cwd()
    source = spec.relative_to(here) if spec.is_relative_to(here) else spec
    return {
        "sweep": sweep.name,
        "command": f"qbkit sweep {source} --out FOLDER, then qb.publish_sweep('{source}', FOLDER)",
        "published": datetime.now(UTC).date().isoformat(),
        "runs": len(sweep),
        "done": int(cube["done"].sum()),
        "processor_hours": round(float(cube["cpu_s"].sum()) / 3600, 2),
        "qbkit_version": version("qbkit"),
        "kernel_version": cube.attrs["kernel_version"],
        "kernel_build": cube.attrs.get("kernel_build") or None,
        "tool_versions": json.loads(cube.attrs.get("tool_versions") or "null"),
        "measurement_version": measurement.version_of(cube.attrs),
        "stack_versions": json.loads(cube.attrs["stack_versions"]),
        "warnings": json.loads(cube.attrs["warnings"]),
        "file": target.name,
        "bytes": target.stat().st_size,
        "sha256": _sha256(target),
    }
