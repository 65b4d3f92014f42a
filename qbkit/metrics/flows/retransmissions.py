"""First retransmissions and transfer times: does an early loss cost more than a late one?

After Yu and Benson, "Dissecting Performance of Production QUIC", WWW '21, §7.1.2 and figure 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.over_time import APPLICATION, bytes_acked
from qbkit.traces.arrays import FloatArray

LEAST_TRANSFERS = 3
"""Fewest transfers for a regression: a line through two points always fits."""


@dataclass(frozen=True)
class Regression:
    """Least squares line of time (s) over offset (bytes), with the data for its uncertainty."""

    slope_s_per_byte: float
    intercept_s: float
    r_squared: float
    p_value: float
    transfers: int
    mean_bytes: float
    sum_of_squares_bytes2: float
    residual_s: float

    def line_s(self, offset_bytes: FloatArray) -> FloatArray:
        """Times on the line."""
        return self.intercept_s + self.slope_s_per_byte * offset_bytes

    def band_s(self, offset_bytes: FloatArray, level: float = 0.95) -> FloatArray:
        """Half width of the confidence band of the line, by Student's t."""
        from scipy import special

        t = float(special.stdtrit(self.transfers - 2, (1 + level) / 2))
        leverage = (offset_bytes - self.mean_bytes) ** 2 / self.sum_of_squares_bytes2
        half_width: FloatArray = t * self.residual_s * np.sqrt(1 / self.transfers + leverage)
        return half_width


def first_retransmission(events: xr.Dataset) -> tuple[float, float]:
    """Data offset of the first retransmission (bytes; NaN: none), and transfer time (s).

    The transfer lasts from the first packet to the last acknowledgement (in a receiver's log: to
    the last packet received). A packet is a retransmission if its data begin below the highest
    offset sent before. If a log reports no offsets, the bytes sent before the first lost packet
    count. Raises MetricError for a log without packets.
    """
    if not events.sizes["sent"]:
        raise MetricError("this log has no sent packet, so it has no transfer")
    start_s = float(events["sent_time_s"].values.min())
    ends_s, _ = bytes_acked(events)
    return _first_offset(events), float(ends_s[-1]) - start_s


def transfer_table(transfers: Mapping[str, Sequence[xr.Dataset]]) -> pd.DataFrame:
    """One row per transfer: ``label``, ``offset_bytes``, ``time_s`` of `first_retransmission`."""
    rows = [
        (label, *first_retransmission(log)) for label, logs in transfers.items() for log in logs
    ]
    return pd.DataFrame(rows, columns=["label", "offset_bytes", "time_s"])


def regression(offset_bytes: FloatArray, time_s: FloatArray) -> Regression:
    """Least squares line through transfers; those without a retransmission are left out.

    Raises MetricError for fewer than three transfers, and if all have the same offset.
    """
    from scipy import stats

    known = np.isfinite(offset_bytes) & np.isfinite(time_s)
    x, y = offset_bytes[known].astype(float), time_s[known].astype(float)
    if len(x) < LEAST_TRANSFERS or np.ptp(x) == 0:
        raise MetricError(
            f"a regression needs {LEAST_TRANSFERS} transfers with retransmissions at different "
            f"offsets; there are {len(np.unique(x))}"
        )
    fit = stats.linregress(x, y)
    residuals = y - (fit.intercept + fit.slope * x)
    return Regression(
        slope_s_per_byte=float(fit.slope),
        intercept_s=float(fit.intercept),
        r_squared=float(fit.rvalue) ** 2,
        p_value=float(fit.pvalue),
        transfers=len(x),
        mean_bytes=float(x.mean()),
        sum_of_squares_bytes2=float(((x - x.mean()) ** 2).sum()),
        residual_s=float(np.sqrt((residuals**2).sum() / (len(x) - 2))),
    )


def _first_offset(events: xr.Dataset) -> float:
    mine = events["sent_space"].values == APPLICATION
    if "sent_offset_bytes" in events:
        offset = events["sent_offset_bytes"].values[mine]
        offset = offset[offset >= 0]
        if len(offset):
            highest = np.maximum.accumulate(offset)
            again = np.flatnonzero(offset < highest)
            return float(offset[again[0]]) if len(again) else math.nan
    lost = events["lost_number"].values[events["lost_space"].values == APPLICATION]
    if not len(lost):
        return math.nan
    before = events["sent_number"].values[mine] < lost.min()
    return float(events["sent_size_bytes"].values[mine][before].sum())
