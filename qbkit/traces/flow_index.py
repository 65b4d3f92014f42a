"""The index of a run's flows: ``run.sel(flow="tcp:bbr")`` finds a flow by its label.

xarray aligns objects only where their indexes have the same type. A run and the same file opened by
xarray itself are therefore equal, not identical, and ``reindex`` and ``interp`` over ``flow`` need
``run.drop_indexes("flow").set_xindex("flow")`` first, which has numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr
from xarray.indexes import PandasIndex


class FlowIndex(PandasIndex):
    """The numbers of flows, which their labels can stand for."""

    labels: Mapping[str, int] = MappingProxyType({})
    """Label → number."""

    def _replace(self, index: Any, dim: Any = None, coord_dtype: Any = None) -> FlowIndex:
        replaced: FlowIndex = super()._replace(index, dim, coord_dtype)
        replaced.labels = self.labels
        return replaced

    @classmethod
    def concat(cls, indexes: Sequence[Any], dim: Any, positions: Any = None) -> FlowIndex:
        """As for numbers; labels that stand for the same number everywhere are kept."""
        joined: FlowIndex = super().concat(indexes, dim, positions)
        numbers: dict[str, set[int]] = {}
        for index in indexes:
            for label, number in index.labels.items():
                numbers.setdefault(label, set()).add(number)
        joined.labels = {label: one.pop() for label, one in numbers.items() if len(one) == 1}
        return joined

    def sel(self, labels: dict[Any, Any], method: str | None = None, tolerance: Any = None) -> Any:
        """As for numbers; KeyError in one sentence for an unknown label."""
        ((name, wanted),) = labels.items()
        if isinstance(wanted, slice):
            wanted = slice(self._end(wanted.start), self._end(wanted.stop), wanted.step)
        else:
            wanted = np.asarray(wanted)
            if wanted.dtype.kind in "UO":
                numbers = [self._number(word) for word in wanted.ravel().tolist()]
                wanted = np.array(numbers).reshape(wanted.shape)
        return super().sel({name: wanted}, method, tolerance)

    def _end(self, end: Any) -> Any:
        """The number at an end of a slice."""
        return self._number(end) if isinstance(end, str) else end

    def _number(self, word: Any) -> int:
        here = {label: number for label, number in self.labels.items() if number in self.index}
        if word not in here:
            known = ", ".join(here) or "known by their numbers only"
            raise KeyError(f"there is no flow {word!r}; the flows are {known}")
        return here[word]


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
