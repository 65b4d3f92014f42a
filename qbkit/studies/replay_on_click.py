"""A chart of a run in a notebook: a click on a point replays its time below the chart."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import xarray as xr

from qbkit import extras
from qbkit.errors import QbkitError
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
    field.value = Number(time).toFixed(3);
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
    """A chart of a run, a field for a time, and the replay of that time below them."""

    def __init__(self, run: xr.Dataset, chart: alt.TopLevelMixin) -> None:
        self._run, self._chart = run, chart
        self._widget: Any = None

    def replayed(self, text: str) -> str:
        """HTML of the replay of a time in seconds, or of the reason why there is none."""
        try:
            around_s = float(text)
        except ValueError:
            return f"<p>{escape(text)} is no time; give seconds, as in 12.3.</p>"
        try:
            return replay(self._run, around_s)._repr_html_()
        except QbkitError as error:
            return f"<p>{escape(str(error))}</p>"

    @property
    def widget(self) -> Any:
        """The chart, the field and the replay as one widget."""
        if self._widget is None:
            self._widget = self._build()
        return self._widget

    def _build(self) -> Any:
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
        script = ON_CLICK.replace("@FIELD@", own)
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
