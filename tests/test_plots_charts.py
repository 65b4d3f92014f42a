import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from chart_words import said
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run

from qbkit import plots
from qbkit.errors import MetricError
from qbkit.metrics import OperatingPoints, assess, envelope
from qbkit.plots.drawing.charts import HConcatChart, LayerChart, VConcatChart
from qbkit.plots.drawing.data import inline
from qbkit.plots.drawing.pointer import legend_choice, one_brush
from qbkit.plots.drawing.theme import FONT, REFERENCE_COLOUR, colours
from qbkit.plots.flows.series import Series, bins_per_row, rows_of

TEXTS = ("label", "trial", "hull", "controller")
SQUARE = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 4.0], [0.0, 4.0], [5.0, 2.0]])


@pytest.fixture(scope="module")
def ds():
    return synthetic_run()


def rows(spec: dict[str, Any], *columns: str) -> list[dict[str, Any]]:
    """Rows of the first dataset that has all these columns, read as Vega reads them."""
    for text in spec["datasets"].values():
        if not isinstance(text, str):
            continue  # the one row of a mark without data
        table = list(csv.DictReader(io.StringIO(text)))
        if table and set(columns) <= set(table[0]):
            return [
                {k: v if k in TEXTS else json.loads(v or "null") for k, v in row.items()}
                for row in table
            ]
    raise AssertionError(f"no dataset with {columns}")


def axis_titles(node: Any) -> Iterator[str]:
    """All titles of x and y axes in a specification."""
    if isinstance(node, dict):
        for channel in ("x", "y"):
            title = node.get(channel, {}).get("title") if "mark" not in node else None
            if isinstance(title, str):
                yield title
        for child in node.values():
            yield from axis_titles(child)
    elif isinstance(node, list):
        for child in node:
            yield from axis_titles(child)


def test_colours_never_collide_and_the_reference_is_grey():
    labels = [f"flow {i}" for i in range(200)]
    found = colours(labels, reference="flow 7")
    assert len(set(found)) == 200
    assert found[7] == REFERENCE_COLOUR
    assert REFERENCE_COLOUR not in colours(labels)


# Arrays of texts (numpy) drop NUL at their end.
TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))


@settings(max_examples=30)
@given(st.lists(st.text(max_size=5), unique=True, max_size=40))
def test_colours_are_six_digits_and_stable(labels):
    found = colours(labels)
    assert found == colours(labels)
    assert all(len(c) == 7 and int(c[1:], 16) >= 0 for c in found)


def test_the_hull_of_a_square_is_closed_by_its_first_corner():
    # All five points are kept: ceil(0.95 * 5) = 5; the middle one is no vertex.
    chart = plots.envelope_chart({"a": envelope(SQUARE)})
    spec = chart.to_dict()
    corners = rows(spec, "corner")
    assert len(corners) == 4 + 1
    assert [c["corner"] for c in corners] == list(range(5))
    first, last = corners[0], corners[-1]
    assert (first["queue_delay_ms"], first["throughput_mbps"]) == (
        last["queue_delay_ms"],
        last["throughput_mbps"],
    )
    assert {(c["queue_delay_ms"], c["throughput_mbps"]) for c in corners} == {
        (0.0, 0.0),
        (10.0, 0.0),
        (10.0, 4.0),
        (0.0, 4.0),
    }
    points = rows(spec, "kept")
    assert len(points) == 5
    assert points[0]["time_s"] is None  # Unknown for plain points; JSON has no NaN.


def test_envelope_names_its_definition_parameters_and_assessment(ds):
    tests = [synthetic_run(seed=s) for s in (1, 2)]
    references = [synthetic_run(flows=("tcp:cubic", "tcp:reno"), seed=s) for s in (3, 4)]
    found = assess(tests, references, bootstrap=5)
    chart = plots.envelope_chart(
        {"test": envelope(tests), "reference": envelope(references)},
        reference="reference",
        assessment=found,
    )
    verdict = found.verdict.lines[0]
    assert verdict == "2 seeds cannot decide; 5 can."
    assert chart.to_dict()["title"]["subtitle"].startswith(verdict)
    subtitle = said(chart)
    assert f"Conformance {found.conformance:.2f}: cite this number" in subtitle
    assert "IMC'22: hull of the 95 % of points nearest the centroid" in subtitle
    # 20 ms times 10 RTTs; cuts by the rule of operating_points for 20 s.
    assert "2 trials, a point every 0.2 s, first 5 s cut, last 0.2 s cut" in subtitle
    assert "pools them (2 and 2 seeds)" in subtitle
    assert f"pooled conformance {found.conformance_pooled:.2f}" in subtitle
    assert found.reasons[1:] in subtitle


def test_outliers_and_trials_are_told_apart():
    spread = np.random.default_rng(1).normal([20, 5], [3, 0.5], (40, 2))
    trial = OperatingPoints(spread[:, 0], spread[:, 1], np.arange(40.0))
    e = envelope([trial, trial])
    points = rows(plots.envelope_chart({"a": e}).to_dict(), "kept")
    assert sum(not p["kept"] for p in points) == int((~e.kept).sum()) == 4
    assert {p["trial"] for p in points} == {"1", "2"}


def test_envelope_refuses_nothing_and_an_unknown_reference():
    with pytest.raises(MetricError, match="no envelope to draw"):
        plots.envelope_chart({})
    with pytest.raises(MetricError, match="is not among what is drawn: a"):
        plots.envelope_chart({"a": envelope(SQUARE)}, reference="b")


@pytest.mark.slow
def test_every_axis_has_a_title_with_its_unit(ds):
    titles = set(axis_titles(plots.linked_chart(ds).to_dict()))
    assert {
        "Throughput (Mbit/s)",
        "Queueing delay (ms)",
        "Cong. window (kB)",
        "Time (s)",
    } >= titles - {""}
    assert {"Throughput (Mbit/s)", "Queueing delay (ms)"} <= titles


def test_averages_of_merged_bins(ds):
    ds = ds.isel(time=slice(0, 8), flow=slice(0, 1)).copy(deep=True)
    ds["throughput_mbps"].values[0] = [1, 3, 0, 4, 5, 5, 0, 0]
    ds["queue_delay_ms"].values[0] = [10, 20, np.nan, 8, 1, 3, np.nan, np.nan]
    long = ds.isel(time=np.tile(np.arange(8), 150)).assign_coords(time=np.arange(1200) * 0.1)
    series = [Series("a", long, 0, "1")]
    assert bins_per_row(series) == 2  # 600 rows a flow at most.
    columns = rows_of(series)
    assert len(columns["time_s"]) == 600
    assert columns["throughput_mbps"][:4] == [2, 2, 5, 0]
    # Weighted by what was sent: (1·10 + 3·20) / 4, and 8 alone; nothing left in the last.
    assert columns["queue_delay_ms"][:3] == [17.5, 8, 2]
    assert math.isnan(columns["queue_delay_ms"][3])
    assert columns["time_s"][:2] == pytest.approx([0.1, 0.3])


@pytest.mark.slow
def test_timeline_says_how_it_averaged(ds):
    assert "Series in bins of 0.1 s." in said(plots.timeline_chart(ds))
    long = synthetic_run(duration_s=120, rate_mbps=1)
    assert "averaged over 0.2 s (2 bins of the run each)." in said(plots.timeline_chart(long))


@pytest.mark.slow
def test_cwnd_is_drawn_only_where_it_is_reported(ds):
    def panels(run):
        return len(plots.timeline_chart(run).to_dict()["vconcat"])

    assert panels(ds) == 3
    assert panels(ds.drop_vars("cwnd_bytes")) == 2
    untold = ds.copy(deep=True)
    untold["cwnd_bytes"][:] = np.nan
    assert panels(untold) == 2


@pytest.mark.slow
def test_linked_trials_are_chosen_by_seed(ds):
    runs = [synthetic_run(seed=s) for s in (1, 2, 3)]
    spec = plots.linked_chart({"quic-go:cubic": runs, "tcp:cubic": runs[:2]}).to_dict()
    choice = next(p for p in spec["params"] if p["name"] == "trial")
    assert choice["bind"]["options"] == ["all", "seed 1", "seed 2", "seed 3"]
    lines = rows(spec, "cwnd_kb")
    assert {(r["label"], r["trial"]) for r in lines} == {
        *(("quic-go:cubic", f"seed {s}") for s in (1, 2, 3)),
        *(("tcp:cubic", f"seed {s}") for s in (1, 2)),
    }
    # Each label draws its own flow of the run: the second flow is tcp:cubic.
    tcp = [
        r["throughput_mbps"] for r in lines if (r["label"], r["trial"]) == ("tcp:cubic", "seed 1")
    ]
    assert tcp == pytest.approx(np.round(runs[0]["throughput_mbps"].values[1], 3))


@pytest.mark.slow
def test_linked_names_flows_without_an_envelope():
    run = synthetic_run()
    run["stop_s"].values[1] = 3.0  # Shorter than what is cut at the start.
    assert "No envelope of tcp:cubic" in said(plots.linked_chart(run))
    run["stop_s"].values[0] = 3.0
    with pytest.raises(MetricError, match="operating points"):
        plots.linked_chart(run)


@pytest.mark.slow
def test_ten_trials_of_two_minutes_stay_small():
    run = synthetic_run(duration_s=120, rate_mbps=1, rtt_ms=50)
    trials = [run.assign_attrs(seed=s) for s in range(10)]
    spec = plots.linked_chart({"quic-go:cubic": trials, "tcp:cubic": trials}).to_dict()
    assert len(rows(spec, "cwnd_kb")) > 5000  # More than Altair's limit, and no error.
    assert len(json.dumps(spec)) <= 2_000_000


# Arrays of texts (numpy) drop NUL at their end.
TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))


@settings(max_examples=30)
@given(st.lists(st.tuples(TEXT, st.floats(), st.booleans()), min_size=1))
def test_tables_survive_any_text_and_number(table):
    names, numbers, flags = (list(column) for column in zip(*table, strict=True))
    data = inline({"name": names, "number": numbers, "flag": flags})
    assert data.format.to_dict()["parse"] == {"number": "number", "flag": "boolean"}
    read = list(csv.DictReader(io.StringIO(data.values, newline="")))
    assert [r["name"] for r in read] == names
    assert [r["flag"] == "true" for r in read] == flags
    for row, number in zip(read, numbers, strict=True):
        if math.isfinite(number):
            assert float(row["number"]) == pytest.approx(number, abs=5.1e-4)
        else:
            assert row["number"] == ""


def test_noise_floor_draws_one_line_a_controller():
    frame = pd.DataFrame(
        {
            "controller": ["tcp:cubic", "tcp:cubic", "tcp:bbr"],
            "seeds": [1, 2, 2],
            "conformance": [0.3, 0.6, np.nan],
            "low": [0.1, 0.5, np.nan],
            "high": [0.5, 0.7, np.nan],
        }
    )
    spec = plots.noise_floor_chart(frame, definition="imc22").to_dict()
    assert "imc22" in said(spec)
    table = rows(spec, "seeds")
    assert table[1] == {
        "controller": "tcp:cubic",
        "seeds": 2,
        "conformance": 0.6,
        "low": 0.5,
        "high": 0.7,
    }
    assert table[2]["conformance"] is None
    with pytest.raises(MetricError, match="no column low, high"):
        plots.noise_floor_chart(frame.drop(columns=["low", "high"]))
    with pytest.raises(MetricError, match="no rows"):
        plots.noise_floor_chart(frame[:0])


@pytest.mark.slow
def test_charts_leave_the_settings_of_altair_alone(ds):
    before = alt.renderers.active, alt.theme.active
    assert before == ("default", "default")
    charts = [ds.qb.plot.timeline(), ds.qb.plot.envelope(), ds.qb.plot.linked()]
    for chart in charts:
        spec = chart.to_dict()
        assert spec["config"]["font"] == FONT
        assert set(chart._repr_mimebundle_()) == {"text/html", "text/plain"}
        assert (alt.renderers.active, alt.theme.active) == before
    users = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    assert "font" not in users.to_dict()["config"]
    joined = (charts[1] | users).to_dict()
    assert len(joined["hconcat"]) == 2  # none has a configuration of its own in the way
    assert "font" not in joined["config"]


def test_a_theme_or_renderer_of_the_user_wins(ds):
    chart = ds.qb.plot.envelope()
    with alt.renderers.enable("json"), alt.theme.enable("dark"):
        spec = chart.to_dict()
        assert spec["usermeta"]["embedOptions"]["theme"] == "dark"
        assert "font" not in spec.get("config", {})
        bundle, _ = chart._repr_mimebundle_()
        assert "text/html" not in bundle


def test_enable_is_for_the_charts_of_the_user():
    users = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    with alt.renderers.enable("default"), alt.theme.enable("default"):
        plots.enable()
        assert users.to_dict()["config"]["font"] == FONT
        assert "cdn" not in users._repr_mimebundle_()["text/html"][:5000]
    assert (alt.renderers.active, alt.theme.active) == ("default", "default")


@pytest.mark.slow
def test_accessor_charts_equal_the_plain_functions(ds):

    assert ds.qb.plot.timeline().to_dict() == plots.timeline_chart(ds).to_dict()
    assert ds.qb.plot.linked().to_dict() == plots.linked_chart(ds).to_dict()
    labels = [str(v) for v in ds["label"].values]
    both = {label: envelope(ds, flow=label) for label in labels}
    assert ds.qb.plot.envelope().to_dict() == plots.envelope_chart(both).to_dict()
    assert ds.qb.envelope(flow="tcp:cubic").centroid == pytest.approx(both["tcp:cubic"].centroid)
    assert list(ds.qb.summary()["label"]) == labels


def test_charts_join_as_altairs_do_and_none_of_them_changes():
    line = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_line().encode(x="x:Q")
    layers = [line.add_params(legend_choice()), line.mark_point()]
    ours, plain = LayerChart(layer=layers), alt.layer(*layers)
    before = ours.to_dict()
    with one_brush():
        joined = VConcatChart(vconcat=[HConcatChart(hconcat=[ours, ours]), ours]).to_dict()
        altairs = alt.vconcat(alt.hconcat(plain, plain), plain).to_dict()
    assert {**joined, "config": None} == {**altairs, "config": None}
    assert ours.to_dict() == before
