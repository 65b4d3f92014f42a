"""Who takes the bottleneck? A run of competing flows, as a chart and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr

from qbkit.execution.runner import run
from qbkit.kinds import require_settings
from qbkit.metrics import jain_index, summary
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
        """One row per flow: `qbkit.metrics.summary`, and its share of the throughput in percent."""
        table = summary(self.run)
        share = 100 * table.throughput_mbps / table.throughput_mbps.sum()
        table.insert(table.columns.get_loc("throughput_mbps") + 1, "share_percent", share)
        return table

    def chart(self) -> alt.VConcatChart:
        """Throughput, queueing delay and congestion window over time."""
        return timeline_chart(self.run, title=f"Race of {' and '.join(self.run.label.values)}")

    @property
    def jain_index(self) -> float:
        """See `qbkit.metrics.jain_index`: 1 if the throughputs are equal, 1/n at worst."""
        return jain_index(self.run)

    def __repr__(self) -> str:
        shares = (f"{row.label} {row.share_percent:.0f} %" for row in self.frame().itertuples())
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
