"""Charts of measurements beside a paper's: what is drawn, and what bad input gets."""

from __future__ import annotations

import pandas as pd
import pytest

from qbkit import plots
from qbkit.errors import MetricError

CELLS = pd.DataFrame(
    {
        "group": ["I", "I", "II"],
        "label": ["Cubic", "New Reno", "Cubic"],
        "rtt_mean_ms_paper": [190.0, 160.0, 105.0],
        "rtt_mean_ms_measured": [215.0, 191.0, 128.0],
    }
)


def test_a_panel_per_table_and_one_scale() -> None:
    chart = plots.beside_paper_chart(CELLS, metric="rtt_mean_ms", title="RTT", unit="RTT (ms)")
    panels = chart.to_dict()["hconcat"]
    assert [panel["title"] for panel in panels] == ["I", "II"]
    domains = [layer["encoding"]["x"]["scale"]["domain"] for p in panels for layer in p["layer"]]
    assert domains[0] == pytest.approx([98.4, 221.6])  # 6 % of 110 ms beyond either end
    assert all(domain == domains[0] for domain in domains)


def test_a_distribution_per_label() -> None:
    frame = pd.DataFrame({"label": ["a", "a", "b"], "percent": [0, 100, 50], "value": [1, 2, 3]})
    chart = plots.cumulative_chart(frame, title="RTT").to_dict()
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["a", "b"]


def test_tables_without_columns_or_rows_get_one_sentence() -> None:
    with pytest.raises(MetricError, match="no column group, rtt_mean_ms_paper"):
        plots.beside_paper_chart(
            CELLS[["label", "rtt_mean_ms_measured"]], metric="rtt_mean_ms", title="", unit=""
        )
    with pytest.raises(MetricError, match="the table has no rows; give label, percent, value"):
        plots.cumulative_chart(pd.DataFrame({"label": [], "percent": [], "value": []}), title="RTT")
