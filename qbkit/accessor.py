"""``ds.qb``: what can be asked of a run, beside the data. Importing this module registers it.

Each method is also a plain function: `qbkit.metrics.summary`, `qbkit.metrics.envelope`,
`qbkit.metrics.packet_balance`, `qbkit.plots.timeline_chart`, `qbkit.plots.envelope_chart`,
`qbkit.plots.linked`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from qbkit.attributes import run_experiment, run_warnings
from qbkit.metrics import Envelope, envelope, packet_balance, summary
from qbkit.metrics.flows import flow_labels

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from qbkit.spec import Experiment

# Charts are imported when they are asked for: Altair costs more than all the rest together.


class RunPlots:
    """``ds.qb.plot``: charts of one run; each is an Altair chart, to layer or to save."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def timeline(self) -> alt.VConcatChart:
        """Throughput, queueing delay and cwnd over time; see `qbkit.plots.timeline_chart`."""
        from qbkit.plots.timeline import timeline_chart

        return timeline_chart(self._ds)

    def envelope(self, definition: str = "imc22") -> alt.LayerChart:
        """Performance Envelope of every flow; see `qbkit.plots.envelope_chart`."""
        from qbkit.plots.envelope import envelope_chart

        labels = flow_labels(self._ds)
        return envelope_chart(
            {label: envelope(self._ds, definition, flow=i) for i, label in enumerate(labels)}
        )

    def linked(self, definition: str = "imc22") -> alt.HConcatChart:
        """Timeline and envelope, linked by a brush; see `qbkit.plots.linked`."""
        from qbkit.plots.linked import linked

        return linked(self._ds, definition=definition)


@xr.register_dataset_accessor("qb")
class RunAccessor:
    """``ds.qb``: summary, envelope and charts of a run dataset."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def summary(self) -> pd.DataFrame:
        """One row per flow; see `qbkit.metrics.summary`."""
        return summary(self._ds)

    def packet_balance(self) -> pd.DataFrame:
        """Packets in, out and lost per flow and bottleneck; see `qbkit.metrics.packet_balance`."""
        return packet_balance(self._ds)

    def envelope(self, flow: str | int = 0, definition: str = "imc22") -> Envelope:
        """Performance Envelope of a flow (label or index); see `qbkit.metrics.envelope`."""
        return envelope(self._ds, definition, flow=flow)

    @property
    def experiment(self) -> Experiment | None:
        """The experiment the run was made of; None for imported captures."""
        return run_experiment(self._ds)

    @property
    def warnings(self) -> list[str]:
        """What to know before trusting the run, in sentences."""
        return run_warnings(self._ds)

    @property
    def plot(self) -> RunPlots:
        """Charts of the run."""
        return RunPlots(self._ds)

    def __repr__(self) -> str:
        from qbkit.plots.html import run_sentence

        flows = ", ".join(flow_labels(self._ds))
        return f"<run of {flows}: {run_sentence(self._ds)}>"

    def _repr_html_(self) -> str:
        from qbkit.plots.html import run_html

        return run_html(self._ds)
