"""Runs of which some flows were chosen: ``run.isel(flow=0)``, ``run.sel(flow="tcp:bbr")``."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import xarray as xr

TABLES = ("packet", "ack", "sample", "object", "forged")
"""Dimensions of the tables, whose rows name their flow in ``packet_flow`` and so on."""
OF_ALL = "qdisc_"
"""Prefix of the counters of a queue, which count all flows."""


def chosen_flows(ds: xr.Dataset) -> xr.Dataset:
    """The flows of a run that ``isel`` or ``sel`` left, as a run of these flows alone.

    xarray does not know that ``packet_flow`` and the like refer to ``flow``: it keeps the rows of
    all flows, under their old numbers. The queues' own counters still count all flows. A dataset of
    all flows is returned as it is, and so is one with a flow twice, which is no run.
    """
    if "flow" not in ds.coords:
        return ds
    chosen = np.atleast_1d(ds["flow"].values)
    if "flow" in ds.dims and np.array_equal(chosen, np.arange(_flows(ds, len(chosen)))):
        return ds
    if len(np.unique(chosen)) < len(chosen):
        return ds
    if "flow" not in ds.dims:
        ds = _expanded(ds)
    number = np.zeros(chosen.max(initial=-1) + 1, np.int64)
    number[chosen] = np.arange(len(chosen))
    for table in TABLES:
        name = f"{table}_flow"
        if name in ds:
            ds = ds.isel({table: np.isin(ds[name].values, chosen)})
            ds[name] = ds[name].copy(data=number[ds[name].values].astype(ds[name].dtype))
    return ds.assign_coords(flow=("flow", np.arange(len(chosen)), ds["flow"].attrs))


def _flows(ds: xr.Dataset, chosen: int) -> int:
    """Number of flows of the whole run: by its experiment, or else by its tables."""
    with suppress(ValueError, TypeError, KeyError):  # whoever reads it says that it is damaged
        if flows := json.loads(ds.attrs["spec"])["flows"]:
            return len(flows)
    tables = [ds[f"{table}_flow"].values for table in TABLES if f"{table}_flow" in ds]
    return max([chosen, *(int(flow.max()) + 1 for flow in tables if len(flow))])


def _expanded(ds: xr.Dataset) -> xr.Dataset:
    """A dataset of one flow, with ``flow`` as the first dimension of all that belongs to it."""
    mine = [
        name
        for name, variable in ds.variables.items()
        if name not in ds.dims
        and not str(name).startswith(OF_ALL)
        and set(variable.dims) <= {"time", "bottleneck"}
    ]
    return ds.assign({name: ds.variables[name].expand_dims("flow") for name in mine}).set_coords(
        [name for name in mine if name in ds.coords]
    )
