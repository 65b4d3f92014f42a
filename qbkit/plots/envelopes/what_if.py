"""Two Performance Envelopes of one implementation, before and after a change (IMC'22, 6 and 7)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import altair as alt

from qbkit.metrics.envelopes.envelope import Envelope
from qbkit.metrics.verdicts.assessment import Assessment
from qbkit.plots.drawing.captions import assessment_sentences, heading
from qbkit.plots.drawing.charts import HConcatChart
from qbkit.plots.envelopes.envelope import envelope_layers

WIDTH, HEIGHT = 380, 300

Side = tuple[Mapping[str, Envelope], Assessment]


def what_if_chart(
    sides: Mapping[str, Side], *, reference: str, title: str = "What if"
) -> alt.HConcatChart:
    """One panel per name, on common axes: envelopes by label; the subtitle has the conformances.

    The ``reference`` is drawn in grey.
    """
    panels = [
        envelope_layers(envelopes, reference).properties(
            width=WIDTH, height=HEIGHT, title=alt.TitleParams(name, fontSize=12)
        )
        for name, (envelopes, _) in sides.items()
    ]
    found = {name: assessment for name, (_, assessment) in sides.items()}
    numbers = ", ".join(f"{a.conformance:.2f} {name}" for name, a in found.items())
    sentences = [f"Conformance to cite: {numbers}."]
    sentences += [f"{name}: {s}" for name, a in found.items() for s in assessment_sentences(a)]
    with warnings.catch_warnings():
        # Both panels share one legend and its selection on purpose.
        warnings.filterwarnings("ignore", message="Automatically deduplicated")
        chart = HConcatChart(hconcat=panels).resolve_scale(x="shared", y="shared")
    return chart.properties(**heading(title, sentences, len(panels) * (WIDTH + 60)))
