"""A chart of runs in a notebook: a click on a point replays its time below the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import xarray as xr

from qbkit import extras
from qbkit.errors import MetricError, QbkitError
from qbkit.plots.drawing.render import chart_fragment, show_html
from qbkit.studies.replay import replay

if TYPE_CHECKING:
    import altair as alt

FIELD = "qbkit-replay-at-"
"""First part of the class of the field, which is its own in each widget."""
ON_CLICK = """
<script type="text/javascript">
(() => {
  const place = document.currentScript.parentElement.querySelector(".qbkit-chart");
  let [view, from] = [null, null];
  const clicked = (event, item) => {
    const datum = (item && item.datum) || {};
    const time = datum.time_s ?? (datum.datum || {}).time_s;
    const moved = from && Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY);
    const field = document.querySelector(".@FIELD@ input");
    if (time === undefined || moved > 4 || !field) return;
    const { label, trial } = datum;
    const which = @SEVERAL@ && label ? [label, trial] : [];
    field.value = [Number(time).toFixed(3), ...which].join(", ");
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  // A chart that was drawn anew, as for another theme, has another view.
  place.addEventListener("pointerdown", (event) => {
    from = event;
    if (place.vegaView === view) return;
    view = place.vegaView;
    view.addEventListener("click", clicked);
  }, true);
})();
</script>
"""
"""Writes the time of the point that is clicked, not dragged, into the field."""


class ReplayOnClick:
    """A chart of runs, a field for a time, and the replay of that time below them."""

    def __init__(
        self, runs: xr.Dataset | Mapping[str, Sequence[xr.Dataset]], chart: alt.TopLevelMixin
    ) -> None:
        self._runs, self._chart = runs, chart

    def replayed(self, text: str) -> str:
        """HTML of the replay of a time in seconds, or of the reason why there is none.

        With several runs, the label and the trial follow the time: ``12.3, tcp:cubic, 2``.
        """
        time, *which = (word.strip() for word in text.split(",", 2))
        try:
            around_s = float(time)
        except ValueError:
            return f"<p>{escape(repr(time))} is no time; give seconds, as in 12.3.</p>"
        try:
            return replay(self._run(*which), around_s)._repr_html_()
        except QbkitError as error:
            return f"<p>{escape(str(error))}</p>"

    def _run(self, label: str = "", trial: str = "") -> xr.Dataset:
        """The run of a label and a trial, which charts call by its number or its seed."""
        if isinstance(self._runs, xr.Dataset):
            return self._runs
        for i, run in enumerate(self._runs.get(label, ())):
            if trial in (str(i + 1), f"seed {run.attrs['seed']}"):
                return run
        known = "; ".join(f"{name}, {len(runs)}" for name, runs in self._runs.items())
        raise MetricError(f"give a time, a label and a trial, or click on a point: up to {known}")

    @cached_property
    def widget(self) -> Any:
        """The chart, the field and the replay as one widget."""
        extras.require("ipywidgets", to="show controls")
        import ipywidgets as w

        field = w.Text(
            description="Replay at (s)",
            placeholder="click on a point",
            continuous_update=False,
            style={"description_width": "initial"},
        )
        own = f"{FIELD}{uuid4().hex}"
        field.add_class(own)
        chart, answer = w.Output(), w.Output()
        several = "false" if isinstance(self._runs, xr.Dataset) else "true"
        script = ON_CLICK.replace("@FIELD@", own).replace("@SEVERAL@", several)
        show_html(chart, chart_fragment(self._chart.to_dict()) + script)

        def show(change: Any) -> None:
            show_html(answer, "<p>Running it again …</p>")
            show_html(answer, self.replayed(change.new))

        field.observe(show, "value")
        return w.VBox([chart, field, answer])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The widget, and for pages without a kernel the chart."""
        bundle = dict(self.widget._repr_mimebundle_())
        return {**bundle, "text/html": chart_fragment(self._chart.to_dict())}
