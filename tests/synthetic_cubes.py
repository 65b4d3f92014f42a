"""Cubes of sweeps that never ran, whose numbers are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr


def settings_cube(names: Sequence[str], *, apart_ms: float = 4.0, seeds: int = 2) -> xr.Dataset:
    """A cube over seed, RTT, buffer and ``flows.0``: each name's points lie further to the right.

    All have the points of one cloud, moved by ``apart_ms`` more queueing delay a name.
    """
    dims = ("seed", "bottleneck.rtt_ms", "bottleneck.buffer_bdp", "flows.0")
    coords = {dims[0]: range(seeds), dims[1]: [10, 50], dims[2]: [0.5, 5.0], dims[3]: list(names)}
    sizes = [len(list(v)) for v in coords.values()]
    rng = np.random.default_rng(0)
    cloud = rng.normal([30, 10], 1, (seeds, 2, 2, 1, 1, 40, 2)) + np.zeros((*sizes, 1, 40, 2))
    moved = cloud[..., 0] + apart_ms * np.arange(len(names))[:, None, None]
    each = (*dims, "flow", "point")
    variables = {
        "point_delay_ms": (each, moved),
        "point_throughput_mbps": (each, cloud[..., 1]),
        "done": (dims, np.ones(sizes, dtype=bool)),
    }
    return xr.Dataset(variables, {k: list(v) for k, v in coords.items()})


def pairs_cube(names: Sequence[str], *, rate_mbps: float = 10.0, steps: int = 20) -> xr.Dataset:
    """A cube of all unordered pairs: the earlier name gets more, the further apart they are."""
    count = len(names)
    ratio = 0.5 + 0.4 * (np.arange(count)[None, :] - np.arange(count)[:, None]) / count
    ratio[np.tril_indices(count, -1)] = np.nan
    mbps = rate_mbps * np.stack([ratio, 1 - ratio], axis=-1)
    dims = ("flows.0", "flows.1")
    series = np.repeat(mbps[..., None], steps, axis=-1)
    variables = {
        "throughput_mbps": ((*dims, "flow"), mbps),
        "series_throughput_mbps": ((*dims, "flow", "time"), series),
        "done": (dims, np.isfinite(ratio)),
    }
    coords = {d: list(names) for d in dims} | {"time": np.arange(steps, dtype=float)}
    return xr.Dataset(variables, coords)
