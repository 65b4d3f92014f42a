"""Conformance maps kept in the cube from which they were computed, so that a reader need not wait.

A map of three hundred cells takes many seconds. A cube with its map holds one variable ``map_NAME``
for each variable of the map, and in its attribute ``map`` what the map was computed from. A cube
whose points differ, after a selection for instance, has no map.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import xarray as xr

from qbkit.metrics.maps.interactions import FIRST

PREFIX = "map_"


def with_map(cube: xr.Dataset, found: xr.Dataset) -> xr.Dataset:
    """The cube with the conformance map that `qbkit.metrics.conformance_map` found for it."""
    kept = found.reindex({FIRST: cube[FIRST].values}).drop_attrs(deep=False)
    named = {name: f"{PREFIX}{name}" for name in kept.data_vars}
    origin = json.dumps(_origin(cube, found.attrs["reference"], found.attrs["definition"]))
    return cube.merge(kept.rename(named)).assign_attrs(map=origin)


def kept_map(cube: xr.Dataset, reference: str, definition: str) -> xr.Dataset | None:
    """The map that the cube keeps of exactly these points; None without one."""
    kept = [str(name) for name in cube.data_vars if str(name).startswith(PREFIX)]
    if not kept or "map" not in cube.attrs:  # a selection of variables keeps the attribute
        return None
    if json.loads(cube.attrs["map"]) != _origin(cube, reference, definition):
        return None
    found = cube[kept].rename({name: name.removeprefix(PREFIX) for name in kept})
    found.attrs = {"reference": reference, "definition": definition}
    return found.drop_sel({FIRST: reference})


def _origin(cube: xr.Dataset, reference: str, definition: str) -> dict[str, Any]:
    """What a map depends on: the points, and how they are compared."""
    digest = hashlib.sha256()
    for name in ("point_delay_ms", "point_throughput_mbps"):
        points = cube[name]
        digest.update(json.dumps({str(d): n for d, n in points.sizes.items()}).encode())
        digest.update(np.round(points.values.astype(float), 2).tobytes())
    for dim in cube["done"].dims:
        digest.update(json.dumps(cube[dim].values.tolist()).encode())
    return {"reference": reference, "definition": definition, "points": digest.hexdigest()}
