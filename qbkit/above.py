"""What layers above give an experiment: ``run()`` and its HTML.

A spec imports nothing from above. `qbkit.accessor`, which is above, sets both when qbkit is
imported, without importing specs: they cost more than the rest of the command line.
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
