"""The index of a run's flows: ``run.sel(flow="tcp:bbr")`` finds a flow by its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.indexes import PandasIndex


class FlowIndex(PandasIndex):
    """The numbers of flows, which their labels can stand for."""

    labels: Mapping[str, int]
    """Label → number."""

    def _replace(self, index: Any, dim: Any = None, coord_dtype: Any = None) -> FlowIndex:
        replaced: FlowIndex = super()._replace(index, dim, coord_dtype)
        replaced.labels = self.labels
        return replaced

    def sel(self, labels: dict[Any, Any], method: str | None = None, tolerance: Any = None) -> Any:
        """As for numbers; KeyError in one sentence for an unknown label."""
        ((name, wanted),) = labels.items()
        if not isinstance(wanted, slice):
            wanted = np.asarray(wanted)
            if wanted.dtype.kind in "UO":
                numbers = [self._number(word) for word in wanted.ravel().tolist()]
                wanted = np.array(numbers).reshape(wanted.shape)
        return super().sel({name: wanted}, method, tolerance)

    def _number(self, word: Any) -> int:
        if word not in self.labels:
            known = ", ".join(self.labels)
            raise KeyError(f"there is no flow {word!r}; the flows are {known}")
        return self.labels[word]


def with_flow_index(ds: xr.Dataset) -> xr.Dataset:
    """A run whose flows can be selected by their labels."""
    if "flow" not in ds.dims or "label" not in ds.coords or "flow" not in ds.xindexes:
        return ds
    flow = ds["flow"]
    index = FlowIndex(ds.indexes["flow"], "flow")
    index.labels = dict(zip(ds["label"].values.tolist(), flow.values.tolist(), strict=True))
    coords = xr.Coordinates({"flow": flow.variable}, indexes={"flow": index})
    found = ds.drop_indexes("flow").assign_coords(coords)
    found.encoding = ds.encoding
    return found
