"""Runs on disk: one netCDF file each, and the index of a folder of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import pandas as pd
import xarray as xr

from qbkit import measurement
from qbkit.arguments import as_path
from qbkit.errors import QbkitError, StoreError, TraceError
from qbkit.files import write_whole
from qbkit.store.netcdf import netcdf_bytes
from qbkit.store.on_demand import RunBackend
from qbkit.store.places import default_folder, require_run_name
from qbkit.traces.flow_index import with_flow_index
from qbkit.traces.run.attributes import require_run
from qbkit.traces.run.dataset import FORMAT_VERSION
from qbkit.traces.run.pcap import is_capture

FORMAT = "format_version"
"""The attribute that every run has."""
INDEX = ("hash", "rate_mbps", "rtt_ms", "queue_bytes", "qdisc", "duration_s", "seed", "engine")


def save_run(ds: xr.Dataset, path: str | Path) -> None:
    """Write a run atomically, and set ``ds.encoding["source"]`` to its path.

    Raises StoreError for what `load_run` would not open again, for runs that were joined, for a
    name that does not end in ``.nc``, and when the file cannot be written (full disk, no
    permission).
    """
    if not isinstance(ds, xr.Dataset) or FORMAT not in ds.attrs:
        raise StoreError("only a run can be saved as a run; give a dataset that qb.run returns")
    _require_flows(ds, "this")
    _require_one(ds)
    require_run_name(path)
    target, content = as_path(path), netcdf_bytes(ds)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    except OSError as error:
        why = f"{error.strerror}; free space or choose another folder"
        raise StoreError(f"cannot write {target}: {why}") from None
    ds.encoding["source"] = str(target)


def load_run(path: str | Path) -> xr.Dataset:
    """Open a run; ``ds.encoding["source"]`` is its path.

    Values are read when they are asked for, from a copy in memory of the compressed file: that may
    be changed, renamed or deleted, and the run may be pickled. Raises StoreError for a missing,
    damaged or foreign file, for a flow without the dimension flow, and for a format newer than this
    qbkit reads. Damage inside a variable raises it when that is read; ``load_run(path).load()``
    reads all.
    """
    with _opening(path):
        ds = xr.open_dataset(Path(path), engine=RunBackend)
    _require_format(ds.attrs, path)
    _require_flows(ds, str(path))
    ds.attrs = {name: _plain(value) for name, value in ds.attrs.items()}
    ds.encoding["source"] = str(path)
    return with_flow_index(ds)


def attributes_of_run(path: str | Path) -> dict[str, Any]:
    """The attributes of a run, read without its variables. Raises StoreError as `load_run` does."""
    with _opening(path), h5py.File(path, "r") as file:
        attrs = {name: _plain(value) for name, value in file.attrs.items()}
    _require_format(attrs, path)
    return attrs


@contextmanager
def _opening(path: str | Path) -> Iterator[None]:
    """Raises StoreError where a run's file is missing, or what is done with it fails."""
    if not as_path(path).exists():
        raise StoreError(f"there is no run file {path}", refused=True)
    if as_path(path).is_dir():
        raise StoreError(f"{path} is a folder; name a file of a run, FILE.nc", refused=True)
    try:
        yield
    except Exception:  # h5py raises nearly anything on damaged files
        raise StoreError(_why_unread(Path(path))) from None


def _why_unread(path: Path) -> str:
    """Why a file cannot be read as a run."""
    with suppress(OSError), path.open("rb") as file:
        if is_capture(file.read(4)):
            return f"{path} is a capture, not a run; `qbkit import-pcaps` makes a run of two"
    return f"{path} is damaged or no netCDF file"


def require_free(path: str | Path, spec_hash: str = "") -> None:
    """Raise StoreError if a file is there, except a run of the experiment with this hash."""
    if not as_path(path).exists():
        return
    try:
        found = load_run(path)
    except StoreError:
        what = "is no run"
    else:
        if spec_hash and found.attrs.get("spec_hash") == spec_hash:
            return
        what = f"holds {_described(found)}"
    raise StoreError(
        f"{path} {what}; choose another file, or overwrite it with --force (force=True)",
        refused=True,
    )


def _described(ds: xr.Dataset) -> str:
    """What a file holds, so that nobody overwrites it unawares."""
    if "label" not in ds or "seed" not in ds.attrs:
        return "other measurements"
    flows = " + ".join(ds["label"].values.tolist())
    return f"another experiment's run ({flows}, seed {ds.attrs['seed']})"


def list_runs(folder: str | Path | None = None) -> pd.DataFrame:
    """A table of the run files in a folder (default: `default_folder`), one row per file.

    It reads attributes only. For a file that cannot be read, ``problem`` gives the reason. Raises
    StoreError where a file is in the folder's place.
    """
    place = Path(folder) if folder is not None else default_folder()
    if place.is_file():
        raise StoreError(f"{place} is a file; give a folder of runs", refused=True)
    rows = [_index_row(path) for path in sorted(place.glob("*.nc"))]
    columns = ["path", "flows", *INDEX, "measurement_version", "created", "problem"]
    return pd.DataFrame(rows, columns=columns)


def _index_row(path: Path) -> dict[str, Any]:
    try:
        attrs = attributes_of_run(path)
        spec = json.loads(attrs["spec"] or '{"flows": []}')
        flows = " + ".join(map(_flow_text, spec["flows"]))
    except StoreError as error:
        return {"path": str(path), "problem": str(error)}
    except Exception:  # as in `load_run`
        return {"path": str(path), "problem": f"{path} is damaged"}
    found = {name: attrs.get(name) for name in (*INDEX, "created")}
    if attrs["spec"]:  # imported captures were not measured
        found["measurement_version"] = measurement.version_of(attrs)
    return {"path": str(path), "flows": flows or "imported", **found, "problem": ""}


def _flow_text(fields: dict[str, Any]) -> str:
    """A flow as one writes it; its name alone if this qbkit cannot read the rest."""
    from qbkit.spec import Flow

    try:
        return Flow.model_validate(fields).text
    except (ValueError, QbkitError):
        return f"{fields['stack']}:{fields['controller']}"


def _require_format(attrs: dict[Any, Any], path: str | Path) -> None:
    try:
        found = int(attrs[FORMAT])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise StoreError(f"{path} is no run of qbkit", refused=True) from None
    if found > FORMAT_VERSION:
        raise StoreError(
            f"{path} has format {found}, this qbkit reads up to {FORMAT_VERSION}; update qbkit"
        )


def _require_flows(ds: xr.Dataset, what: str) -> None:
    """Raise StoreError for one flow of a run that was selected without a list."""
    if "flow" in ds.variables and "flow" not in ds.dims:
        label = str(ds["label"].values) if "label" in ds else "LABEL"
        raise StoreError(
            f"{what} is one flow of a run, without the dimension flow; save what a list selects: "
            f'run.sel(flow=["{label}"])',
            refused=True,
        )


def _require_one(ds: xr.Dataset) -> None:
    """Raise StoreError for several runs in one dataset."""
    try:
        if "label" in ds:
            require_run(ds)
    except TraceError as error:
        raise StoreError(str(error), refused=True) from None


def _plain(value: Any) -> Any:
    """An attribute as a Python value."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
