"""xarray without Dask, until there is an array of Dask.

xarray imports Dask, and with it SciPy, to learn whether an array is one of Dask's. That takes 0.4 s
and 40 MB, which is most of what it takes to open a stored run. An array of Dask can only exist once
``dask.array`` is imported, so until then the answer is known.
"""

from __future__ import annotations

import sys
from typing import Any


class _DaskOnDemand:
    """Stands for xarray's own description of Dask (``DuckArrayModule``)."""

    @property
    def type(self) -> tuple[type, ...]:
        """The types of Dask's arrays; none before any can exist."""
        return (sys.modules["dask.array"].Array,) if _arrays_exist() else ()

    def __getattr__(self, name: str) -> Any:
        from xarray.namedarray.pycompat import DuckArrayModule

        return getattr(DuckArrayModule("dask"), name)


def _arrays_exist() -> bool:
    return hasattr(sys.modules.get("dask.array"), "Array")


def spare_dask() -> None:
    """Make xarray import Dask when it is needed; does nothing where xarray is not as it was."""
    from xarray.namedarray import pycompat, utils

    known = getattr(pycompat, "_cached_duck_array_modules", None)
    asks = getattr(utils, "is_dask_collection", None)
    if isinstance(known, dict) and asks is not None:
        known.setdefault("dask", _DaskOnDemand())
        utils.is_dask_collection = lambda x: "dask" in sys.modules and asks(x)  # type: ignore
