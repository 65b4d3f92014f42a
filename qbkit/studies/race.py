"""Who takes the bottleneck? A run of competing flows, as a chart and a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr

from qbkit.errors import MetricError
from qbkit.execution.runner import run
from qbkit.kinds import require_settings
from qbkit.metrics import jain_index, link_share, summary
from qbkit.plots import timeline_chart
from qbkit.plots.drawing.html import run_html
from qbkit.plots.drawing.render import chart_fragment
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.bottleneck import Qdisc
from qbkit.spec.flow import as_flow

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Race:
    """A run of flows that compete; a notebook shows its table and its chart."""

    run: xr.Dataset

    def frame(self) -> pd.DataFrame:
        """One row per flow: `qbkit.metrics.summary`, and its share of the throughput in percent.

        Shares are NaN where the flows share no link, or were never active together.
        """
        table = summary(self.run)
        share = 100 * table.throughput_mbps / table.throughput_mbps.sum()
        if not self._is_shared:
            share = math.nan
        table.insert(table.columns.get_loc("throughput_mbps") + 1, "share_percent", share)
        return table

    def chart(self) -> alt.VConcatChart:
        """Throughput, queueing delay and congestion window over time."""
        return timeline_chart(self.run, title=f"Race of {' and '.join(self.run.label.values)}")

    @property
    def jain_index(self) -> float:
        """See `qbkit.metrics.jain_index`: 1 if the throughputs are equal, 1/n at worst."""
        return jain_index(self.run)

    @property
    def _is_shared(self) -> bool:
        """Whether there is a link that all flows used at one time."""
        try:
            link_share(self.run, range(self.run.sizes["flow"]))
        except MetricError:
            return False
        return True

    def __repr__(self) -> str:
        rows = list(self.frame().itertuples())
        if not self._is_shared:
            rates = (f"{row.label} {row.throughput_mbps:.2f} Mbit/s" for row in rows)
            return f"<Race: {', '.join(rates)}; not of one link at one time>"
        shares = (f"{row.label} {row.share_percent:.0f} %" for row in rows)
        return f"<Race: {', '.join(shares)}; Jain's index {self.jain_index:.2f}>"

    def _repr_html_(self) -> str:
        return run_html(self.run) + chart_fragment(self.chart().to_dict())


def race(
    *flows: str | Flow,
    rate_mbps: float = 20.0,
    rtt_ms: float = 50.0,
    buffer_bdp: float = 1.0,
    qdisc: Qdisc = "fifo",
    duration_s: float = 30.0,
    seed: int = 1,
    **how: Any,
) -> Race:
    """Let flows (``stack:controller``, or `Flow`) share a bottleneck: ``race("qbkit:my-cc", ...)``.

    ``how`` goes to `qbkit.run`. A stored race is loaded. Raises what `qbkit.run` raises, and
    SpecError for a setting that neither has. For a link
    or flows with more settings, run an `Experiment` and give its dataset to `Race`.
    """
    require_settings(how, race, run)
    link = Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=buffer_bdp, qdisc=qdisc)
    experiment = Experiment(
        bottleneck=link, flows=tuple(map(as_flow, flows)), duration_s=duration_s, seed=seed
    )
    return Race(run(experiment, **how))
