"""``ds.qb``: summaries, events and charts of a run dataset.

xarray's datasets have the accessor as soon as qbkit and xarray are both imported, in either order.
qbkit does not import xarray itself: that takes half a second, and much of the command line does not
need it.

Each method is also a plain function that takes the dataset and then the same arguments:
`qbkit.metrics.summary`, `qbkit.metrics.packet_balance`, `qbkit.metrics.envelope`,
`qbkit.traces.packets_around`, `qbkit.replay`, `qbkit.flow_events`, and for each chart
``qbkit.plots.NAME_chart``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from qbkit import above, metrics, plots, traces
from qbkit.dask_on_demand import spare_dask

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import xarray as xr

    from qbkit.metrics import Envelope
    from qbkit.spec import Experiment
    from qbkit.studies.replay import Replay
    from qbkit.studies.replay_on_click import ReplayOnClick

# Metrics, charts and traces are imported at their first use, and by methods where they are not
# public: they take longer to import than the rest of qbkit.


class RunPlots:
    """``ds.qb.plot``: charts of one run, as Altair charts that can be layered and saved."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def timeline(
        self, *, also: Sequence[str] | None = None, reference: str | None = None
    ) -> alt.VConcatChart:
        """Throughput, queueing delay and cwnd over time; see `qbkit.plots.timeline_chart`."""
        return plots.timeline_chart(self._ds, also=also, reference=reference)

    def envelope(
        self, *, definition: str = "imc22", reference: str | None = None
    ) -> alt.LayerChart:
        """Performance Envelope of every flow; see `qbkit.plots.envelope_chart`."""
        from qbkit.metrics.flows.lookup import flow_labels

        run: RunAccessor = self._ds.qb
        labels = flow_labels(self._ds)
        envelopes = {name: run.envelope(i, definition=definition) for i, name in enumerate(labels)}
        return plots.envelope_chart(envelopes, reference=reference)

    def linked(
        self, *, definition: str = "imc22", reference: str | None = None
    ) -> alt.HConcatChart:
        """Timeline and envelope, linked by a brush; see `qbkit.plots.linked_chart`."""
        return plots.linked_chart(self._ds, definition=definition, reference=reference)

    def distribution(self, quantity: str = "queue_delay_ms") -> alt.LayerChart:
        """Cumulative distribution of a quantity; see `qbkit.plots.distribution_chart`."""
        return plots.distribution_chart(self._ds, quantity)

    def frames(self) -> alt.VConcatChart:
        """Latency of each frame, and freezes; see `qbkit.plots.frames_chart`."""
        return plots.frames_chart(self._ds)

    def cwnd(self, *, reference: str | None = None) -> alt.VConcatChart:
        """Congestion window of every flow; see `qbkit.plots.cwnd_chart`."""
        return plots.cwnd_chart(self._connections(), reference=reference)

    def bytes_acked(self, *, reference: str | None = None) -> alt.VConcatChart:
        """Bytes ACKed of every flow; see `qbkit.plots.bytes_acked_chart`."""
        return plots.bytes_acked_chart(self._connections(), reference=reference)

    def bandwidth(self, *, reference: str | None = None) -> alt.VConcatChart:
        """Bandwidth estimate and pacing rate of every flow; see `qbkit.plots.bandwidth_chart`."""
        return plots.bandwidth_chart(self._connections(), reference=reference)

    def loss(self, *, reference: str | None = None) -> alt.VConcatChart:
        """Losses and recovery of every flow; see `qbkit.plots.loss_chart`."""
        return plots.loss_chart(self._connections(), reference=reference)

    def root_cause(self, *, reference: str | None = None) -> alt.VConcatChart:
        """The previous four charts, linked by one brush; see `qbkit.plots.root_cause_chart`."""
        return plots.root_cause_chart(self._connections(), reference=reference)

    def _connections(self) -> dict[str, xr.Dataset]:
        """The events of each flow by its label."""
        from qbkit.metrics.flows.lookup import flow_labels

        run: RunAccessor = self._ds.qb
        return {label: run.events(i) for i, label in enumerate(flow_labels(self._ds))}


class RunAccessor:
    """``ds.qb``: summary, envelope, events and charts of a run dataset, or of some of its flows."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._of = ds

    @cached_property
    def _ds(self) -> xr.Dataset:
        """The run, of the flows that were chosen from it."""
        from qbkit.chosen_flows import chosen_flows

        return chosen_flows(self._of)

    def summary(self) -> pd.DataFrame:
        """One row per flow; see `qbkit.metrics.summary`."""
        return metrics.summary(self._ds)

    def packet_balance(self) -> pd.DataFrame:
        """Packets in, out and lost per flow and bottleneck; see `qbkit.metrics.packet_balance`."""
        return metrics.packet_balance(self._ds)

    def packets(
        self, around_s: float, *, flow: str | int | None = None, count: int = 50
    ) -> pd.DataFrame:
        """The ``count`` packets nearest to a time, with their header fields, dissected by scapy.

        ``flow`` is the label or index of the only flow to show. The run must have been made with
        ``keep="pcap"``. See `qbkit.traces.packets_around` for the columns and errors.
        """
        from qbkit.metrics.flows.lookup import flow_index

        only = (
            None if flow is None else int(self._of["flow"].values.flat[flow_index(self._ds, flow)])
        )
        return traces.packets_around(self._of, self.kept_folder, around_s, flow=only, count=count)

    def replay(self, around_s: float) -> Replay:
        """A second of the run, packet by packet; it is run again for that: see `qbkit.replay`."""
        from qbkit.studies.replay import replay

        return replay(self._of, around_s)

    def replay_on_click(self, chart: alt.TopLevelMixin | None = None) -> ReplayOnClick:
        """A chart of the run whose points show, when clicked, that second packet by packet.

        ``chart`` is one with a time for each point: `RunPlots.timeline`, `RunPlots.envelope`, or by
        default `RunPlots.linked`. It needs a kernel, as in JupyterLab.
        """
        from qbkit.studies.replay_on_click import ReplayOnClick

        return ReplayOnClick(self._of, self.plot.linked() if chart is None else chart)

    def envelope(self, flow: str | int = 0, *, definition: str = "imc22") -> Envelope:
        """Performance Envelope of a flow (label or index); see `qbkit.metrics.envelope`."""
        return metrics.envelope(self._ds, flow, definition=definition)

    def events(self, flow: str | int = 0) -> xr.Dataset:
        """Packets, losses, windows and states of a flow over time; see `qbkit.flow_events`."""
        return traces.flow_events(self._ds, flow)

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that was run; None for imported captures."""
        from qbkit.traces.run.attributes import run_experiment

        return run_experiment(self._ds)

    @property
    def warnings(self) -> list[str]:
        """Sentences about what limits the trust in this run."""
        from qbkit.traces.run.attributes import run_warnings

        return run_warnings(self._ds)

    @property
    def kept_folder(self) -> Path:
        """Folder with the captures and logs of a stored run that ``keep`` asked for."""
        from qbkit.errors import StoreError
        from qbkit.execution.runner import kept_folder

        if "source" not in self._ds.encoding:
            raise StoreError("the run is not stored in a file; store it with qb.save_run")
        return kept_folder(Path(self._ds.encoding["source"]))

    @property
    def plot(self) -> RunPlots:
        """Charts of the run."""
        return RunPlots(self._ds)

    def __repr__(self) -> str:
        from qbkit.metrics.flows.lookup import flow_labels
        from qbkit.plots.drawing.html import run_sentence

        flows = ", ".join(flow_labels(self._ds))
        return f"<run of {flows}: {run_sentence(self._ds)}>"

    def _repr_html_(self) -> str:
        from qbkit.plots.drawing.html import run_html

        return run_html(self._ds)


def _run(experiment: Experiment, **how: Any) -> xr.Dataset:
    from qbkit.execution.runner import run

    return run(experiment, **how)


def _experiment_html(experiment: Experiment) -> str:
    from qbkit.plots.drawing.html import experiment_html

    return experiment_html(experiment)


def register() -> None:
    """Register the accessor ``qb`` with xarray, now or when xarray is imported.

    Also set the functions of upper layers that experiments call (`qbkit.above`).
    """
    above.run, above.html = _run, _experiment_html
    if "xarray" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _BeforeXarray())


def _register() -> None:
    import xarray as xr

    xr.register_dataset_accessor("qb")(RunAccessor)
    spare_dask()


class _BeforeXarray(MetaPathFinder):
    """Finds xarray by way of the other finders, and registers the accessor once it is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Spec of xarray with a loader that registers the accessor; None for any other module."""
        if name != "xarray":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader, self)
        return spec


class _Registering(Loader):
    """Wraps xarray's loader, and registers the accessor after it has run."""

    def __init__(self, loader: Loader, finder: _BeforeXarray) -> None:
        self._loader, self._finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Module created by the wrapped loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Restore xarray's loader, which reads package files, execute the module and register."""
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
            _register()
