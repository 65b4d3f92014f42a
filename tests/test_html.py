import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from chart_words import said
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run

import qbkit as qb
from qbkit import progress
from qbkit.errors import SpecError
from qbkit.plots import experiment_html, run_html
from qbkit.plots.drawing.topology_svg import sparkline_svg, topology_svg
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.studies.conformance import Study, load_study
from qbkit.studies.explain import load_explanation
from qbkit.studies.what_if import WhatIf
from qbkit.traces.run.attributes import run_warnings

ENVELOPE = Path(__file__).parents[1] / "data/envelope"
CASE = Path(__file__).parents[1] / "data/cases/bbr-120-explained"
HOSTILE = "</td><script>alert('x')</script><img src=x onerror=\"alert(1)\">"
VOID = {"meta", "img", "br", "path", "rect", "circle"}
OURS = {"style", "div", "h4", "p", "table", "thead", "tbody", "tr", "th", "td", "span", "ul", "li"}
OURS |= {
    "b",
    "strong",
    "details",
    "summary",
    "br",
    "svg",
    "title",
    "g",
    "rect",
    "circle",
    "text",
    "path",
}


class Seen(HTMLParser):
    """Elements, their attributes' names, and visible text; complains of crossed elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.text += data + "\n"

    @property
    def sentences(self) -> str:
        """The text without the breaks that elements within a sentence make."""
        return self.text.replace("\n", "")


def harmless(html: str) -> Seen:
    seen = Seen(html)
    assert set(seen.names) <= OURS
    assert not any(name.startswith("on") for name in seen.attributes)
    return seen


def experiment(**more) -> Experiment:
    return Experiment(
        bottleneck=Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=2, qdisc="fq_codel"),
        flows=(Flow("quic-go", "cubic", label=HOSTILE), Flow("tcp", "bbr", extra_rtt_ms=10)),
        duration_s=30,
        **more,
    )


def test_an_experiment_shows_what_it_is_made_of():
    text = harmless(experiment_html(experiment(seed=7))).text
    assert HOSTILE in text
    for words in (
        "fq_codel · 20 Mbit/s · 50 ms RTT",
        "buffer 2 BDP (250 kB)",  # 2 · 20e6 / 8 · 0.05 B
        "seed 7",
        "30 s",
        "60 ms",  # The second flow's 50 + 10.
    ):
        assert words in text


def test_an_experiment_shows_itself_in_notebooks():
    assert experiment()._repr_html_() == experiment_html(experiment())


@pytest.mark.parametrize(("flows", "drawn"), [(1, 1), (2, 2), (6, 6), (9, 6)])
def test_the_topology_shows_each_flow_up_to_six(flows, drawn):
    seen = harmless(topology_svg(Experiment(flows=("tcp:cubic",) * flows)))
    assert seen.text.count("receiver") == drawn
    assert (f"and {flows - drawn} more flows" in seen.text) == (flows > drawn)
    assert seen.names.count("path") == 2 * drawn + 1  # In and out, and one queue.


def test_a_parking_lot_has_two_queues_and_the_first_flow_crosses_both():
    svg = topology_svg(Experiment(flows=("tcp:cubic",) * 3, topology="parking_lot"))
    assert svg.count('class="queue"') == 2
    assert harmless(svg).names.count("path") == 2 * 3 + 2 + 1


def test_reverse_traffic_has_queues_of_its_own_and_senders_on_the_right():
    back = Flow("tcp", "bbr", direction="reverse")
    svg = topology_svg(Experiment(flows=("tcp:cubic", back)))
    seen = harmless(svg)
    assert svg.count('class="queue"') == 2
    assert seen.names.count("path") == 2 * 2 + 2
    # Titles and texts of the boxes: left and right of each flow.
    boxes = re.findall(r'<text x="(\d+)" y="[\d.]+">([^<]*)</text>', svg)
    (sender_x, sender), (receiver_x, receiver), *reverse = boxes
    assert (sender, receiver) == ("tcp:cubic", "receiver")
    assert reverse == [(sender_x, "receiver"), (receiver_x, "tcp:bbr (reverse)")]
    assert "reverse" in experiment_html(Experiment(flows=("tcp:cubic", back)))


def test_a_run_shows_its_numbers_and_warnings():
    ds = synthetic_run()
    ds = ds.assign_coords(label=("flow", [HOSTILE, "tcp:cubic"]))
    ds.attrs["warnings"] = json.dumps([HOSTILE + "!"])
    seen = harmless(ds.qb._repr_html_())
    assert HOSTILE in seen.text and HOSTILE + "!" in seen.text
    assert seen.names.count("svg") == 2
    assert f"{ds.qb.summary()['goodput_mbps'][0]:.2f}" in seen.text
    for words in ("Mbit/s", "ms", "%", "20 s", "10 Mbit/s, 20 ms RTT", "seed 1"):
        assert words in seen.text


def test_a_study_and_its_assessment_show_their_numbers():
    study = load_study(ENVELOPE)
    assessment = study.assess()
    assert repr(study) == "<Study of quic-go:cubic against tcp:cubic: 5 and 5 runs>"
    assert repr(assessment) == (
        "<Assessment: no difference detected, conformance 0.74, noise floor 0.74, 5 and 5 trials>"
    )
    shown = harmless(assessment._repr_html_())
    text = shown.text
    lines = [*assessment.verdict.lines, assessment.reasons[1:]]
    assert all(line in shown.sentences for line in lines)
    low, high = assessment.mean_throughput_difference_ci
    numbers = [f"{assessment.mean_throughput_difference_mbps:.3f}", f"{low:.2f} .. {high:.2f}"]
    assert all(number in text for number in [*numbers, "95 % interval", "Mbit/s"])
    seen = harmless(dataclasses.replace(study, test=HOSTILE)._repr_html_()).text
    assert HOSTILE + " against tcp:cubic: 5 and 5 runs, 120 s" in seen
    assert assessment.reasons[1:] in seen
    assert f"{HOSTILE} and the kernel's CUBIC: " in seen
    assert "seed" not in seen.split("no difference detected")[0]


def test_a_study_of_short_runs_says_why_it_has_no_numbers():
    run = synthetic_run(duration_s=2)
    seen = harmless(Study("a:b", "c:d", [run], [run])._repr_html_()).text
    assert "a:b against c:d: 1 and 1 runs" in seen
    assert "points" in seen


@pytest.mark.slow
def test_a_study_draws_itself():
    study = load_study(ENVELOPE)
    chart = study.plot.envelope().to_dict()
    assert chart["title"]["text"] == "quic-go:cubic"
    verdict = "quic-go's CUBIC and the kernel's: no difference detected."
    assert chart["title"]["subtitle"].startswith(verdict)
    assert "Conformance 0.74: cite this number" in said(study.plot.envelope())
    assert study.plot.linked(definition="refined").to_dict()["hconcat"]


def test_explanations_and_what_ifs_are_escaped():
    explanation = load_explanation(CASE)
    study = dataclasses.replace(explanation.study, test=HOSTILE)
    explained = dataclasses.replace(explanation, study=study)
    changed = WhatIf(study, study, {"option": HOSTILE})
    for shown in (explained, changed):
        seen = harmless(shown._repr_html_())
        assert HOSTILE in str(shown)
        assert str(shown).splitlines()[0] in seen.sentences
    assert f"{study.assess().conformance:.3f}" in seen.text  # of the what-if: before and after
    assert seen.text.count("<script>") >= 2


def test_an_explanation_without_differences_shows_itself():
    explained = dataclasses.replace(load_explanation(CASE), differences=[])
    assert explained.frame().empty
    assert "parameter" in explained.frame()
    assert "no cause that differs" in harmless(explained._repr_html_()).text


def test_an_imported_run_has_no_experiment():
    ds = synthetic_run()
    spec = ds.qb.experiment
    assert spec == Experiment.from_json(ds.attrs["spec"])
    ds.attrs["spec"] = ""
    assert ds.qb.experiment is None
    assert "20 s" in harmless(run_html(ds)).text
    assert repr(ds.qb).startswith("<run of quic-go:cubic, tcp:cubic: 20 s")


def test_warnings_are_sentences_or_a_clear_error():
    ds = synthetic_run()
    assert run_warnings(ds) == ds.qb.warnings == []
    ds.attrs["warnings"] = "[oops"
    with pytest.raises(SpecError, match="not valid JSON"):
        run_warnings(ds)


@pytest.mark.parametrize("spec", ["{oops", "[1]", 5])
def test_a_damaged_experiment_is_one_sentence(spec):
    ds = synthetic_run(flows=["tcp:cubic"], duration_s=2)
    ds.attrs["spec"] = spec
    for read in (qb.metrics.infer, qb.flow_events, qb.metrics.summary):
        with pytest.raises(SpecError, match="the run's experiment is damaged"):
            read(ds)


def test_many_flows_are_cut_and_counted():
    ds = synthetic_run(flows=["tcp:cubic"] * 33, duration_s=1)
    seen = harmless(run_html(ds))
    assert seen.names.count("svg") == 30
    assert "and 3 more flows" in seen.text


def test_the_accessor_is_cheap_and_survives_any_dataset():
    assert synthetic_run().drop_vars("label").qb is not None


@settings(max_examples=50)
@given(st.text(max_size=60))
def test_no_label_escapes(label):
    try:
        flow = Flow("tcp", "cubic", label=label or None)
    except SpecError:  # refused, as it cannot be shown
        return
    e = Experiment(flows=(flow,))
    harmless(experiment_html(e))


def test_a_sparkline_leaves_gaps():
    svg = sparkline_svg([0.0, 5.0, float("nan"), 10.0], "#000000", 10.0)
    # 26 pixels high with one of margin: 0 lies at 25, the half at 13, the top at 1.
    assert 'd="M0.0 25.0 L53.3 13.0 M160.0 1.0"' in svg
    assert "M0.0 25.0" in sparkline_svg([0.0], "#000000", 0.0)
    assert np.isfinite(len(svg))


def test_a_bar_of_a_notebook_sets_its_words_apart_from_its_count(monkeypatch):
    shown = SimpleNamespace(update=lambda _: None)
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: shown)
    bar = progress.NotebookBar(desc="the others take 1 min", total=10, unit="run")
    assert bar._words().startswith("the others take 1 min: 0/10 run")
    bar.set_description("again")
    assert bar._words().startswith("again: 0/10 run")
    bar.close()


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("start/one-second.nc", "the table of packets is cut to 1719"),
        ("web_pages/runs/medium-none-15ms-h3.nc", "h3 envoy:cubic 6.49 – – –"),
    ],
)
def test_a_part_of_a_run_or_of_its_series_shows_what_it_has(file, words):
    run = qb.load_run(ENVELOPE.parent / file)
    assert words in " ".join(Seen(run_html(run)).text.split())
