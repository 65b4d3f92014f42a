"""Charts and HTML: pure functions from datasets and metrics to Altair charts."""

from qbkit.plots.conformance_map import conformance_map_chart
from qbkit.plots.envelope import envelope_chart
from qbkit.plots.export import save
from qbkit.plots.gallery import gallery
from qbkit.plots.html import experiment_html, run_html
from qbkit.plots.interactions import expectation_chart, interaction_chart
from qbkit.plots.linked import linked
from qbkit.plots.noise import noise_floor_chart
from qbkit.plots.render import enable
from qbkit.plots.timeline import timeline_chart

__all__ = [
    "conformance_map_chart",
    "enable",
    "envelope_chart",
    "expectation_chart",
    "experiment_html",
    "gallery",
    "interaction_chart",
    "linked",
    "noise_floor_chart",
    "run_html",
    "save",
    "timeline_chart",
]
