"""Functions of upper layers that an experiment calls: ``run()`` and its HTML.

Specs import nothing from upper layers. `qbkit.accessor` is an upper layer and sets both functions
when qbkit is imported. It does so without importing specs, which take longer to import than the
rest of the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

run: Callable[..., xr.Dataset]
"""`qbkit.execution.runner.run`."""
html: Callable[..., str]
"""`qbkit.plots.html.experiment_html`."""
