"""``ds.qb``: what can be asked of a run, beside the data.

It is there as soon as qbkit and xarray are both imported, in either order. qbkit does not import
xarray for that: it takes half a second, and much of the command line does without.

Each method is also a plain function: `qbkit.metrics.summary`, `qbkit.metrics.envelope`,
`qbkit.metrics.packet_balance`, `qbkit.plots.timeline_chart`, `qbkit.plots.envelope_chart`,
`qbkit.plots.linked`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import xarray as xr

    from qbkit.metrics import Envelope
    from qbkit.spec import Experiment

# Metrics and charts are imported when they are asked for: they cost more than all the rest.


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
        from qbkit.metrics.flows import flow_labels
        from qbkit.plots.envelope import envelope_chart

        labels = flow_labels(self._ds)
        return envelope_chart(
            {name: self._ds.qb.envelope(i, definition) for i, name in enumerate(labels)}
        )

    def linked(self, definition: str = "imc22") -> alt.HConcatChart:
        """Timeline and envelope, linked by a brush; see `qbkit.plots.linked`."""
        from qbkit.plots.linked import linked

        return linked(self._ds, definition=definition)


class RunAccessor:
    """``ds.qb``: summary, envelope and charts of a run dataset."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def summary(self) -> pd.DataFrame:
        """One row per flow; see `qbkit.metrics.summary`."""
        from qbkit.metrics import summary

        return summary(self._ds)

    def packet_balance(self) -> pd.DataFrame:
        """Packets in, out and lost per flow and bottleneck; see `qbkit.metrics.packet_balance`."""
        from qbkit.metrics import packet_balance

        return packet_balance(self._ds)

    def envelope(self, flow: str | int = 0, definition: str = "imc22") -> Envelope:
        """Performance Envelope of a flow (label or index); see `qbkit.metrics.envelope`."""
        from qbkit.metrics import envelope

        return envelope(self._ds, definition, flow=flow)

    @property
    def experiment(self) -> Experiment | None:
        """The experiment the run was made of; None for imported captures."""
        from qbkit.traces.run.attributes import run_experiment

        return run_experiment(self._ds)

    @property
    def warnings(self) -> list[str]:
        """What to know before trusting the run, in sentences."""
        from qbkit.traces.run.attributes import run_warnings

        return run_warnings(self._ds)

    @property
    def plot(self) -> RunPlots:
        """Charts of the run."""
        return RunPlots(self._ds)

    def __repr__(self) -> str:
        from qbkit.metrics.flows import flow_labels
        from qbkit.plots.html import run_sentence

        flows = ", ".join(flow_labels(self._ds))
        return f"<run of {flows}: {run_sentence(self._ds)}>"

    def _repr_html_(self) -> str:
        from qbkit.plots.html import run_html

        return run_html(self._ds)


def register() -> None:
    """Make ``qb`` an accessor of xarray's datasets: now, or when xarray is imported."""
    if "xarray" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _BeforeXarray())


def _register() -> None:
    import xarray as xr

    xr.register_dataset_accessor("qb")(RunAccessor)


class _BeforeXarray(MetaPathFinder):
    """Finds xarray as the other finders do, to be told when it has been imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of xarray alone."""
        if name != "xarray":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader, self)
        return spec


class _Registering(Loader):
    """Another loader, and after it the registration."""

    def __init__(self, loader: Loader, finder: _BeforeXarray) -> None:
        self._loader, self._finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other does it."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the other does it; xarray then has its own loader again, for what asks for files."""
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
            _register()
