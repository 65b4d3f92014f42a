"""What layers above give an experiment: ``run()`` and its HTML.

The spec itself imports nothing from above. `qbkit.accessor`, which is above, sets both.
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
