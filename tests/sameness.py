"""Two runs that must be the same, to the byte."""

from __future__ import annotations

import xarray as xr


def assert_same_bytes(first: xr.Dataset, second: xr.Dataset) -> None:
    """The values and attributes of all variables are the same; those of the runs may differ."""
    assert first.identical(second.assign_attrs(first.attrs))
    for name, variable in first.variables.items():
        assert variable.values.tobytes() == second[name].values.tobytes(), name
