"""Digests of a run's variables: whether two runs are the same to the byte, and if not, where."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np
import xarray as xr


def digest(values: np.ndarray) -> str:
    """SHA-256 over type, shape and little-endian bytes; text counts as UTF-8.

    All NaNs count as the same NaN: IEEE 754 leaves their bits open.
    """
    if values.dtype.kind in "OUT":
        kind, content = "text", json.dumps(values.astype(str).tolist()).encode()
    else:
        ordered = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        if ordered.dtype.kind == "f":
            ordered = np.where(np.isnan(ordered), np.array(np.nan, ordered.dtype), ordered)
        kind, content = ordered.dtype.str, ordered.tobytes()
    return hashlib.sha256(f"{kind} {values.shape} ".encode() + content).hexdigest()


def digests(ds: xr.Dataset) -> dict[str, str]:
    """The digest of each data variable; attributes, which hold cost and date, do not count."""
    return {str(name): digest(v.values) for name, v in sorted(ds.data_vars.items())}


def moved(recorded: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Variables whose digests differ, and those that only one of the two has."""
    names = recorded.keys() | found.keys()
    return sorted(name for name in names if recorded.get(name) != found.get(name))
