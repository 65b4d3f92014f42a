"""Figures, tables, comparisons and reports, as authors of papers ask for them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from PIL import Image
from synthetic import synthetic_run
from synthetic_cubes import pairs_cube
from test_docs import Page
from test_plots_browser import browser, opened
from test_plots_root_cause import events

import qbkit as qb
from qbkit import plots
from qbkit.cli import group
from qbkit.errors import MetricError, StoreError
from qbkit.plots.drawing.grey import SHAPES, units
from qbkit.plots.drawing.paper import MAX_POINTS, drawn_width_px, paper_spec

__all__ = ["browser"]  # a fixture, used by its name

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def study():
    return qb.load_study(DATA / "envelope")


def media_box(path: Path) -> list[float]:
    (box,) = re.findall(rb"/MediaBox ?\[([^\]]*)\]", path.read_bytes())
    return [float(number) for number in box.split()]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "points"), [("column", 241), ("text", 506)])
def test_a_figure_has_the_width_of_a_column_or_of_the_text(tmp_path, width, points):
    chart = plots.timeline_chart(synthetic_run(duration_s=12))
    box = media_box(plots.save_chart(chart, tmp_path / "figure.pdf", width=width))
    assert points - 3 <= box[2] <= points


def test_a_figure_needs_neither_colour_nor_title_nor_mouse(study):
    spec = paper_spec(study.plot.envelope().to_dict(), "column")
    assert "title" not in spec
    assert "subtitle" not in json.dumps(spec["layer"])
    assert "tooltip" not in json.dumps(spec["layer"])
    assert not [p for p in spec["params"] if "select" in p or "bind" in p]
    coded = [u["encoding"] for u in units(spec) if u["encoding"].get("color")]
    shapes = [e["shape"]["scale"]["range"] for e in coded if "shape" in e]
    assert shapes and all(each == list(SHAPES[:2]) for each in shapes)
    (dashes,) = [e["strokeDash"]["scale"]["range"] for e in coded if "strokeDash" in e]
    assert dashes[0] != dashes[1]
    assert legends(spec) == [{"fill", "stroke", "shape"}]
    fonts = [spec["config"]["axis"]["labelFontSize"], spec["config"]["legend"]["labelFontSize"]]
    assert min(fonts) >= 6  # points, the least that journals allow


def legends(spec) -> list[set[str]]:
    """What each legend of a chart shows, as Vega draws it."""
    import vl_convert

    def walk(view):
        yield from view.get("legends", [])
        for part in view.get("marks", []):
            yield from walk(part)

    channels = {"fill", "stroke", "shape", "strokeDash", "size"}
    return [channels & set(legend) for legend in walk(vl_convert.vegalite_to_vega(spec))]


LABELS = ["quic-go:cubic", "tcp:cubic #1", "tcp:cubic #2"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cwnd", "bandwidth", "bytes_acked", "root_cause"])
def test_each_line_over_time_has_markers_where_dashes_tell_kinds_apart(kind):
    flows = {label: events(rate=True, lost=(50,)) for label in LABELS}
    spec = paper_spec(getattr(plots, f"{kind}_chart")(flows).to_dict(), "column")
    lines = [u for u in units(spec) if u["mark"]["type"] == "line"]
    shaped = [u for u in units(spec) if u["encoding"].get("shape", {}).get("field") == "label"]
    for line in lines:
        assert line["encoding"].get("strokeDash", {}).get("field") in (None, "kind")
        (*_, last) = [u for u in shaped if u.get("data") == line.get("data")]
        assert last["encoding"]["shape"]["scale"] == {"domain": LABELS, "range": list(SHAPES[:3])}
    # One legend of the labels, with their shapes; another of the kinds of lines.
    named = [legend for legend in legends(spec) if "shape" in legend and "fill" in legend]
    assert named[0] == {"fill", "stroke", "shape"}
    assert len([legend for legend in named if legend == named[0]]) == 1


@pytest.mark.slow
def test_a_timeline_shows_its_dashes_in_the_legend():
    spec = paper_spec(synthetic_run(duration_s=12).qb.plot.timeline().to_dict(), "column")
    assert legends(spec) == [{"stroke", "strokeDash"}]
    linked = paper_spec(synthetic_run(duration_s=12).qb.plot.linked().to_dict(), "column")
    assert legends(linked) == [{"stroke", "strokeDash"}]


def test_points_are_thinned_and_hulls_are_not(study, tmp_path):
    chart = study.plot.envelope()
    whole, thin = chart.to_dict(), paper_spec(chart.to_dict(), "column")
    before = {name: len(text.splitlines()) for name, text in whole["datasets"].items()}
    after = {name: len(text.splitlines()) for name, text in thin["datasets"].items()}
    points = max(before, key=before.__getitem__)
    assert before[points] > 1000
    corners = {
        (row["queue_delay_ms"], row["throughput_mbps"])
        for text in thin["datasets"].values()
        for row in csv.DictReader(text.splitlines())
        if "corner" in row
    }
    drawn = [*csv.DictReader(thin["datasets"][points].splitlines())]
    assert corners <= {(row["queue_delay_ms"], row["throughput_mbps"]) for row in drawn}
    assert after[points] <= 2 * MAX_POINTS + 1 + len(corners)
    assert {n: c for n, c in before.items() if n != points} == {
        n: c for n, c in after.items() if n != points
    }
    size = plots.save_chart(chart, tmp_path / "a.pdf", width="column").stat().st_size
    assert size < 400_000  # 1.5 MB with all points


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linked", "timeline"])
def test_readouts_and_brushes_are_left_out(kind):
    spec = paper_spec(getattr(synthetic_run(duration_s=12).qb.plot, kind)().to_dict(), "text")
    assert "span" not in json.dumps({k: v for k, v in spec.items() if k != "datasets"})
    texts = [unit["encoding"] for unit in units(spec) if unit["mark"]["type"] == "text"]
    # The names of the levels (capacity, fair share, buffer) stay: they are no readouts.
    assert all(encoding["y"].get("field") == "level" for encoding in texts)
    assert drawn_width_px(spec) <= 506


@pytest.mark.slow
def test_a_chart_that_does_not_fit_says_so():
    cube = pairs_cube([f"stack-{i}:cubic" for i in range(40)])
    remedy = "width = 'column'; draw fewer, or give width = 'text' or no width"
    with pytest.raises(MetricError, match=f"too many columns for {remedy}"):
        paper_spec(plots.interaction_chart(cube).to_dict(), "column")
    with pytest.raises(MetricError, match="width = 'page': choose from column, text"):
        paper_spec(plots.timeline_chart(synthetic_run(duration_s=12)).to_dict(), "page")


def test_a_table_has_units_intervals_and_no_letter_that_latex_lacks(tmp_path):
    frame = pd.DataFrame(
        {
            "label": ["a_b & 50 %", "Δ"],
            "throughput_mbps": [9.876, float("nan")],
            "throughput_mbps_low": [9.0, float("nan")],
            "throughput_mbps_high": [10.5, float("nan")],
            "p_value": [0.00123, 1.0],
        }
    )
    text = qb.save_table(frame, tmp_path / "t.tex").read_text()
    assert "throughput (Mbit/s)" in text
    assert r"a\_b \& 50 \% & 9.88 & [9.00, 10.50] & 0.0012 \\" in text
    assert r"$\Delta$ & – &  & 1.00" in text
    assert r"\toprule" in text
    whole = pd.read_csv(qb.save_table(frame, tmp_path / "t.csv"))
    assert whole["throughput (Mbit/s)"][0] == 9.876
    with pytest.raises(StoreError, match=r"'t\.xls'; choose a name with \.csv, \.tex"):
        qb.save_table(frame, tmp_path / "t.xls")


def test_a_table_keeps_the_names_of_its_rows(tmp_path):
    def saved(frame):
        texts = [qb.save_table(frame, tmp_path / f"t.{end}").read_text() for end in ("csv", "tex")]
        return texts[0].splitlines(), texts[1].splitlines()[2:-2]

    frame = pd.DataFrame({"label": ["a", "b"], "rtt_ms": [10, 50], "share": [0.25, 0.75]})
    assert saved(frame.query("share > 0.5"))[0] == ["label,rtt (ms),share", "b,50,0.75"]
    text, latex = saved(frame.set_index("label")[["share"]])
    assert text == ["label,share", "a,0.25", "b,0.75"]
    assert latex[0] == r"label & share \\"
    assert (
        saved(frame.pivot(index="label", columns="rtt_ms"))[0][0] == 'label,"share, 10","share, 50"'
    )
    transposed = frame.set_index("label")[["share"]].rename_axis(None).T
    assert saved(transposed) == (
        [",a,b", "share,0.25,0.75"],
        [r" & a & b \\", r"\midrule", r"share & 0.25 & 0.75 \\"],
    )
    assert saved(frame.groupby(["label", "rtt_ms"]).size().to_frame("n"))[0][1] == "a,10,1"


@pytest.mark.parametrize(
    ("cell", "latex"),
    [
        (-0.0, "0.00"),
        (float("-inf"), r"$-$$\infty$"),
        (np.float32(0.125), "0.12"),
        ("≥ 0.5", r"$\ge$ 0.5"),
        (-1.45, "$-$1.45"),
        (-0.000012, r"$-$1.2$\times10^{-5}$"),
        ("[-13, +5]", "[$-$13, +5]"),
        ("-0.30 .. -0.10", "$-$0.30 .. $-$0.10"),
        ("quiche-0.7:cubic", "quiche-0.7:cubic"),
        ("google-quiche", "google-quiche"),
        ("2026-11-27", "2026-11-27"),
    ],
)
def test_latex_has_real_minus_signs(tmp_path, cell, latex):
    text = qb.save_table(pd.DataFrame({"x": [cell]}), tmp_path / "t.tex").read_text()
    assert f"\n{latex} \\\\\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "points"), [("column", 241), ("text", 506)])
def test_a_png_of_a_figure_is_sharp_in_print(tmp_path, width, points):
    chart = plots.timeline_chart(synthetic_run(duration_s=12))
    with Image.open(plots.save_chart(chart, tmp_path / "figure.png", width=width)) as picture:
        assert picture.info["dpi"] == pytest.approx((600, 600), abs=1)
        assert picture.width / 600 * 72 == pytest.approx(points, abs=3)


def invoke(*words: object) -> str:
    done = CliRunner().invoke(group, [str(word) for word in words], catch_exceptions=True)
    if done.exception and not isinstance(done.exception, SystemExit):
        return str(done.exception)
    return done.output


@pytest.mark.slow
def test_plot_draws_runs_studies_and_sweeps(tmp_path):
    run = DATA / "start" / "tcp-cubic-tcp-bbr.nc"
    wide = invoke("plot", run, "--width", "text", "--out", tmp_path / "a.pdf")
    assert media_box(Path(wide.strip()))[2] == pytest.approx(506, abs=3)
    cells = invoke("plot", DATA / "conformance" / "reno.yaml", "--out", tmp_path / "cells.csv")
    table = pd.read_csv(cells.strip())
    assert len(table) == 160  # twenty implementations in eight settings
    assert {"implementation", "rtt (ms)", "buffer (BDP)", "noise floor"} <= set(table)
    assert (table["conformance low"] <= table["conformance"]).all()
    narrow = invoke("plot", DATA / "conformance" / "reno.yaml", "--out", tmp_path / "cells.pdf")
    assert "for --width column; give --width text or --width screen" in narrow


def test_plot_says_what_there_is(tmp_path):
    out = ("--out", tmp_path / "a.pdf")
    assert "choose from timeline, envelope, linked" in invoke(
        "plot", DATA / "start" / "tcp-cubic-tcp-bbr.nc", "--kind", "pie", *out
    )
    assert "there are no results at nowhere; give a run" in invoke("plot", "nowhere", *out)
    assert "holds runs, not a study; name one of them: tcp-cubic-tcp-bbr.nc" in invoke(
        "plot", DATA / "start", *out
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_compare_names_what_differs(tmp_path):
    first, second = DATA / "cases" / "ack-10", DATA / "cases" / "ack-2"
    found = json.loads(invoke("compare", first, second, "--json"))
    assert found["made_differently"] == [
        {"field": "flows.0.options.ack_every_packets", str(first): "10", str(second): "2"}
    ]
    rows = {row["number"]: row for row in found["numbers"]}
    floors = rows["noise floor"]
    assert floors[str(first)] == floors[str(second)]
    assert rows["conformance"]["difference"] > 0.3
    run = DATA / "start" / "tcp-cubic-tcp-bbr.nc"
    assert "a run cannot be compared with a study" in invoke("compare", first, run)


def test_a_run_compared_with_itself_differs_in_nothing():
    run = synthetic_run(duration_s=12)
    found = qb.compare(run, run)
    assert found.made_differently().empty
    assert (found.frame()["difference"].dropna() == 0).all()


@pytest.mark.parametrize(
    ("ours", "theirs", "rows", "said"),
    [
        (("a:1", "b:1"), ("b:1", "a:1"), ["a:1", "b:1"], ""),
        (
            ("a:1", "b:1", "d:1"),
            ("a:1", "c:1", "b:1"),
            ["a:1", "flow 2", "flow 3"],
            "Flows of other labels are paired by their place: flow 2 is b:1 in A and c:1 in B; "
            "flow 3 is d:1 in A and b:1 in B.",
        ),
        (
            ("a:1", "b:1"),
            ("a:1",),
            ["a:1", "flow 2"],
            "A has 2 flows and B 1 flow, so not every flow has one beside it.",
        ),
        (("a:1",), ("b:1",), ["flow 1"], ""),
    ],
)
def test_a_comparison_names_the_flows_that_it_pairs(ours, theirs, rows, said):
    runs = [
        synthetic_run(flows=("tcp:cubic",) * len(labels)).assign_coords(label=("flow", [*labels]))
        for labels in (ours, theirs)
    ]
    found = qb.compare(*runs)
    frame = found.frame()
    assert list(dict.fromkeys(frame["of"])) == rows
    assert found.pairing == said
    assert said in found._repr_html_()
    if "flow 1" in rows:
        assert frame.query("number == 'label'")[["A", "B"]].values.tolist() == [["a:1", "b:1"]]
    if not said and len(ours) == 2:  # b:1 of both, though it is in another place
        one, other = (run.qb.summary().set_index("label").goodput_mbps["b:1"] for run in runs)
        (row,) = frame.query("of == 'b:1' and number == 'goodput_mbps'").to_dict("records")
        assert (row["A"], row["B"]) == (one, other)


def test_what_is_0_on_one_side_is_compared():
    quiet, busy = (synthetic_run(flows=("quic-go:cubic", "tcp:cubic")) for _ in range(2))
    busy = busy.assign(sample_spurious_losses=busy.sample_spurious_losses + 3)
    found = qb.compare(quiet, busy).frame().query("number == 'spurious_losses'")
    assert found[["A", "B", "difference"]].values.tolist() == [[0, 3, 3]]


def test_a_comparison_says_what_most_likely_sets_the_two_apart():
    ack_10, quiche = (qb.load_explanation(DATA / "cases" / n) for n in ("ack-10", "quiche-now"))
    first, second = qb.compare(ack_10, quiche).verdicts
    assert first.startswith("A: quinn's NewReno") and "an ACK for every 10 packets" in first
    assert second.startswith("B: quiche's CUBIC") and "known faults, " in second
    runs = [synthetic_run(flows=("tcp:cubic",), duration_s=12) for _ in range(2)]
    (line,) = qb.compare(*runs, names=("old", "new")).verdicts
    assert line == "What sets new apart from old, from a run of each: no parameter differs."
    assert qb.compare(synthetic_run(), synthetic_run()).verdicts == []


@pytest.mark.guest
def test_a_comparison_of_one_sender_with_itself_names_the_one_change():
    runs = [
        qb.Experiment(flows=[flow], duration_s=8).run()
        for flow in ("tcp:cubic", "tcp:cubic?receive_window_kb=60")
    ]
    (line,) = qb.compare(*runs, names=("usual", "held")).verdicts
    said = "its window stays at 40 packets though nothing is lost."
    assert line == f"What sets held apart from usual, from a run of each: {said}"


def test_summary_and_comparison_name_the_transport_and_its_version():
    """The version of a stack may be that of the crate on top of it."""
    of = {"quinn": "quinn-proto 0.11.19", "quinn@0.11.14": "quinn-proto 0.11.14"}
    runs = [synthetic_run(flows=(f"{stack}:cubic", "tcp:cubic")) for stack in of]
    assert "transport" not in qb.metrics.summary(runs[0])
    for run, (stack, text) in zip(runs, of.items(), strict=True):
        run.attrs["transport_versions"] = json.dumps({stack: text})
    assert qb.metrics.summary(runs[0]).transport.iloc[0] == "quinn-proto 0.11.19"
    found = qb.compare(*runs)
    (row,) = found.frame().query("number == 'transport' and of == 'flow 1'").to_dict("records")
    assert (row["A"], row["B"]) == tuple(of.values())
    fields = found.made_differently().set_index("field")
    assert fields.loc["transport of quinn"].tolist() == ["quinn-proto 0.11.19", "–"]


def test_a_report_says_once_why_charts_are_not_drawn(tmp_path):
    page = tmp_path / "r.html"
    qb.save_report(qb.load_run(DATA / "start" / "tcp-cubic-tcp-bbr.nc"), page)
    text = page.read_text()
    said = "<h2>Not drawn</h2><p>cwnd, bytes acked, bandwidth, loss: the run has no packets"
    assert said in text and text.count("the run has no packets") == 1
    qb.save_report(qb.load_study(DATA / "envelope"), page)
    assert "<code>qbkit conformance --explain</code> runs them" in page.read_text()


@pytest.mark.slow
@pytest.mark.browser
def test_a_report_is_one_page_that_draws_itself_offline(browser, tmp_path):
    path = Path(invoke("report", DATA / "cases" / "ack-10", "--out", tmp_path / "r.html").strip())
    text = path.read_text()
    for heading in ("Verdict", "Envelope", "Timeline", "Suspects", "Parameters", "Provenance"):
        assert f"<h2>{heading}</h2>" in text
    assert path.stat().st_size < 1_500_000
    assert not [link for link in Page(path).loads if not link.startswith("data:")]
    with opened(browser, path) as page:
        assert page.locator("canvas").count() == 2
