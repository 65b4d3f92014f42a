"""What a timeline is read against, further series, distributions, and headings of one line."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from chart_words import tables_of
from synthetic import synthetic_run

import qbkit as qb
from qbkit import plots
from qbkit.errors import MetricError
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import PIXELS_PER_LETTER, heading
from qbkit.plots.flows.levels import (
    Level,
    capacity_layers,
    common_delays,
    common_levels,
    delay_layers,
    level_layers,
    levels,
)


def test_levels_are_those_of_the_link():
    ds = synthetic_run(rate_mbps=10, rtt_ms=20, buffer_bdp=2)
    ds["start_s"].values[1] = 5.0
    assert levels(ds) == {
        Level("throughput_mbps", "capacity", 10.0, 0.0, 20.0),
        # 2 BDP of 25 kB at 10 Mbit/s.
        Level("queue_delay_ms", "full buffer", 40.0, 0.0, 20.0),
        # Two flows from the start of the second on.
        Level("throughput_mbps", "fair share", 5.0, 5.0, 20.0),
    }
    assert levels(ds.assign_attrs(spec="")) == frozenset()
    other = synthetic_run(rate_mbps=5)
    assert common_levels([ds, ds]) == levels(ds)
    assert common_levels([ds, other]) == frozenset()
    alone = synthetic_run(flows=["tcp:cubic"])
    assert {level.name for level in levels(alone)} == {"capacity", "full buffer"}


def test_flows_share_what_a_policer_lets_pass():
    ds = synthetic_run(rate_mbps=10, rtt_ms=20, buffer_bdp=2)
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=20, buffer_bdp=2, policer_mbps=4)
    policed = ds.qb.experiment.model_copy(update={"bottleneck": link})
    found = levels(ds.assign_attrs(spec=policed.to_json()))
    assert {(level.name, level.value) for level in found} == {
        ("policer", 4.0),
        ("fair share", 2.0),
        ("full buffer", 40.0),
    }


def test_levels_far_above_the_data_are_left_out():
    found = [Level("queue_delay_ms", "full buffer", 40.0, 0.0, 20.0)]
    assert level_layers(found, "queue_delay_ms", most=10.0) == ([], [])
    (rule,), (rim, name) = level_layers(found, "queue_delay_ms", most=20.0)
    assert (rule.mark.type, name.mark.type) == ("rule", "text")
    assert rim.mark.stroke == theme.GROUND  # legible where data run along the limit
    assert level_layers(found, "throughput_mbps", most=20.0) == ([], [])


@pytest.mark.parametrize(("last_mbps", "is_inside"), [(20 - 4e-13, True), (19, True), (10, False)])
def test_the_name_of_a_capacity_is_within_the_panel(last_mbps, is_inside):
    """Means of bins are rounded: at the end of an outage the name was above the panel, and cut."""
    mbps = xr.DataArray([20.0, 0.0, last_mbps], dims="time", coords={"time": [0.0, 0.1, 0.2]})
    _, name = capacity_layers(mbps, 0.1)
    assert (name.mark.baseline == "top") is is_inside


def test_what_changes_on_the_path_is_named(tmp_path: Path):
    ds = synthetic_run()
    link = {"rate_mbps": 10, "capacity": "0:10 8:4", "delay": "0:20 7:90 9:90 12:30"}
    experiment = qb.Experiment(bottleneck=qb.Bottleneck(**link), flows=["tcp:cubic"], duration_s=20)
    mbps = np.where(ds.time < 8, 10.0, 4.0)
    ds = ds.assign(capacity_mbps=("time", mbps)).assign_attrs(spec=experiment.to_json())
    for chart in (ds.qb.plot.timeline(), plots.side_by_side_chart({"a": ds})):
        shown = plots.save_chart(chart, tmp_path / "c.svg").read_text()
        for words in (">capacity<", ">RTT 90 ms<", ">RTT 30 ms<"):
            assert shown.count(words) == 1, words
    other = experiment.model_copy(update={"bottleneck": qb.Bottleneck(rate_mbps=10)})
    assert common_delays([ds]) == ((7.0, 90.0), (12.0, 30.0))
    assert common_delays([ds, ds.assign_attrs(spec=other.to_json())]) == ()
    assert delay_layers([(1.0 * i, 20.0 + i) for i in range(100)]) == []


@pytest.mark.slow
def test_the_timeline_draws_what_a_controller_logs_and_what_is_asked_for():
    ds = synthetic_run(duration_s=12)
    assert len(plots.timeline_chart(ds).to_dict()["vconcat"]) == 3
    values = np.arange(ds.throughput_mbps.size, dtype=float).reshape(ds.throughput_mbps.shape)
    about = {"units": "Mbit/s", "long_name": "bw_mbps, logged by the controller"}
    logged = ds.assign(bw_mbps=(("flow", "time"), values, about))
    spec = logged.qb.plot.timeline().to_dict()
    assert len(spec["vconcat"]) == 4
    rows = next(t for t in tables_of(logged.qb.plot.timeline()) if "bw_mbps" in t[0])
    first = [float(r["bw_mbps"]) for r in rows if r["label"] == "quic-go:cubic"]
    assert first == values[0].tolist()
    assert '"title": "bw_mbps (Mbit/s)"' in str(spec).replace("'", '"')
    assert len(ds.qb.plot.timeline(also=["srtt_ms", "goodput_mbps"]).to_dict()["vconcat"]) == 5
    with pytest.raises(MetricError, match=r"the run has no series 'speed'; choose from .*srtt_ms"):
        ds.qb.plot.timeline(also=["speed"])


@pytest.mark.parametrize("bins", [200, 1500])
def test_the_mean_beside_a_panel_is_that_of_the_flows_own_time(bins: int, tmp_path: Path):
    """As long as a row of the chart is one bin, and where it is several."""
    late_s = bins / 10 * 0.7731
    ds = synthetic_run(duration_s=bins / 10, rate_mbps=1).drop_dims(["packet", "ack", "sample"])
    ds["throughput_mbps"].values[1, : int(late_s * 10)] = 0
    ds["start_s"].values[1] = late_s
    ds["cwnd_bytes"].values[1] = np.where(ds.time < late_s, 7e3, 9e3)  # known before, too
    path = tmp_path / "timeline.svg"
    ds.qb.plot.timeline().save(path)
    means = [
        float(word) for word in re.findall('font-weight="600"[^>]*>([\\d.]+)<', path.read_text())
    ]
    found = ds.qb.summary()["throughput_mbps"].tolist()
    assert means[:2] == pytest.approx(found, abs=0.006)  # it shows two decimals
    assert means[5] == pytest.approx(9.0, abs=0.05)


def test_a_reference_that_is_not_drawn_is_refused():
    ds = synthetic_run(duration_s=12)
    for draw in (ds.qb.plot.timeline, ds.qb.plot.linked, partial(plots.run_html, ds)):
        with pytest.raises(
            MetricError, match=r"the reference 'foo' is not among .*: quic-go:cubic"
        ):
            draw(reference="foo")
        draw(reference="tcp:cubic")


@pytest.mark.parametrize(
    ("sentences", "line", "more"),
    [
        (["One.", "Two."], "One. Two.", ""),
        (["Its definition", "5 trials"], "Its definition. 5 trials", ""),
        (["One.", "x" * 40, "Three."], "One.", "x" * 40 + "\nThree."),
        (["word " * 12], "word word word word word word …", "word " * 12),
        (["x" * 26 + " 10 %.", "Two."], "x" * 26 + " 10 %.", "Two."),  # not without its number
    ],
)
def test_headings_are_one_line_and_lose_nothing(sentences, line, more):
    found = heading("T", sentences, round(30 * PIXELS_PER_LETTER))
    assert found["title"].subtitle == line
    assert found.get("description", "") == more
    wide = heading("T", ["x" * 100 + ".", "x" * 50 + "."], 2000)  # a page has one line of so many
    assert wide["title"].subtitle == "x" * 100 + "."


def test_runs_side_by_side_have_one_legend_of_all_their_flows():
    runs = {"two": synthetic_run(), "one": synthetic_run(flows=("tcp:reno",))}
    rows = plots.side_by_side_chart(runs).to_dict()["vconcat"]
    lines = [panel["layer"][-1]["encoding"] for row in rows for panel in row["hconcat"]]
    assert len(lines) == 4
    for line in lines:  # one scale in all panels, so that their legends are one
        assert line["color"]["scale"]["domain"] == ["quic-go:cubic", "tcp:cubic", "tcp:reno"]
        assert "legend" not in line["color"]
