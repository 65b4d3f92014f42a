"""Cumulative distributions of what the packets and bins of a run have."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.lookup import delivered_packets, flow_labels, has_packets, span_s
from qbkit.plots.envelopes.reproduction import cumulative_chart
from qbkit.plots.flows.series import series_names
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run.attributes import require_whole

PERCENTS = np.unique(np.concatenate([np.arange(0, 100.5, 0.5), [99.9]]))
DELAY = "queue_delay_ms"


def distribution_chart(
    ds: xr.Dataset, quantity: str = DELAY, *, title: str | None = None
) -> alt.LayerChart:
    """Cumulative distribution (CDF) of a quantity, one line per flow of a run.

    ``quantity`` is the queueing delay of each packet that left the queue (``queue_delay_ms``), or
    any series of the run in its bins, such as ``throughput_mbps`` or ``srtt_ms``, while the flow is
    active. Raises MetricError for another quantity, and if no flow has a value of it; TraceError
    for the packets of a run whose time was cut.
    """
    labels, series = flow_labels(ds), series_names(ds)
    if quantity not in series:
        raise MetricError(f"the run has no {quantity!r}; choose from {', '.join(series)}")
    per_packet = quantity == DELAY and has_packets(ds)
    if per_packet:
        require_whole(ds)
    parts = []
    for index, label in enumerate(labels):
        values = delivered_packets(ds, index)[2] if per_packet else _bins(ds, quantity, index)
        if len(values):
            spread = np.percentile(values, PERCENTS)
            parts.append(pd.DataFrame({"label": label, "percent": PERCENTS, "value": spread}))
    if not parts:
        raise MetricError(f"no flow has a value of {quantity}")
    name, unit = ("queueing delay", "ms") if quantity == DELAY else _named(ds[quantity])
    return cumulative_chart(
        pd.concat(parts),
        title=title or f"Distribution of the {name}",
        unit=f"{name[:1].upper() + name[1:]} ({unit})" if unit != "1" else name,
        share="Packets with at most that (%)" if per_packet else "Bins with at most that (%)",
    )


def _named(values: xr.DataArray) -> tuple[str, str]:
    return str(values.attrs.get("long_name", values.name)), str(values.attrs.get("units", "1"))


def _bins(ds: xr.Dataset, quantity: str, index: int) -> FloatArray:
    """Values of the bins in which the flow is active."""
    start_s, stop_s = span_s(ds, index)
    inside = (ds["time"].values >= start_s) & (ds["time"].values < stop_s)
    values: FloatArray = ds[quantity].values[index][inside].astype(float)
    return values[np.isfinite(values)]
