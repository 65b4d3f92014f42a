"""The explorer: the nearest published cell, and a live run of the exact setting."""

from __future__ import annotations

import dataclasses
import threading
from html import escape
from pathlib import Path

import pytest
from synthetic import synthetic_run

import qbkit as qb
from qbkit.errors import MetricError, SpecError
from qbkit.metrics.verdicts.permutation import enough_trials
from qbkit.studies.explorer import Setting, loss_sentences, nearest

DATA = Path(__file__).parents[1] / "data" / "conformance"


@pytest.fixture(scope="module")
def cubes():
    return [qb.load_sweep(DATA / f"{name}.yaml") for name in ("cubic", "reno")]


@pytest.mark.slow
def test_the_nearest_published_cell_has_the_numbers_of_the_map(cubes):
    exact = nearest(cubes, Setting("quinn:cubic", 20, 50, 3))
    assert exact.sentence == (
        "Published results of quinn:cubic, 20 Mbit/s, 50 ms, 3 BDP, against tcp:cubic."
    )
    place = {"flows.0": "quinn:cubic", "bottleneck.rtt_ms": 50, "bottleneck.buffer_bdp": 3}
    known = qb.metrics.conformance_map(cubes[0], "tcp:cubic").sel(place)
    assert float(exact.cell.conformance) == float(known.conformance)
    # By the logarithm, 20 ms is nearer to 10 than to 50, and 2 BDP nearer to 3 than to 1.
    near = nearest(cubes, Setting("quic-go:reno", 100, 20, 2))
    assert near.sentence == (
        "Nearest published results: quic-go:reno, 20 Mbit/s, 10 ms, 3 BDP, against tcp:reno."
    )
    assert "does not settle: -" in nearest(cubes, Setting("quinn:cubic", 20, 50, 5)).html()
    assert "does not settle" not in nearest(cubes, Setting("quinn:cubic", 20, 10, 5)).html()
    with pytest.raises(MetricError, match="no published results of mine:cubic"):
        nearest(cubes, Setting("mine:cubic"))


@pytest.mark.slow
def test_without_an_engine_the_explorer_says_so_and_still_answers(cubes):
    explorer = qb.explore(cubes, live=False)
    assert explorer.live(Setting("tcp:cubic")) == "<p>No live run: live runs are off.</p>"
    bundle = explorer._repr_mimebundle_()
    explorer.wait()
    assert "Published results of quic-go:cubic" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


@pytest.mark.slow
def test_another_stack_keeps_the_controller_if_it_has_it(cubes):
    explorer = qb.explore(cubes, live=False)
    controls, shown, _ = explorer.widget.children
    stack, controller, *_ = controls.children
    stack.value = "quinn"
    explorer.wait()
    assert controller.value == "cubic"
    assert "Published results of quinn:cubic" in shown.outputs[0]["data"]["text/html"]
    stack.value = "neqo"
    controller.value = "newreno"
    assert "Published results of neqo:newreno" in shown.outputs[0]["data"]["text/html"]


@pytest.mark.slow
def test_the_last_of_two_choices_at_once_is_answered_last(cubes, monkeypatch):
    explorer = qb.explore(cubes, live=False)
    controls, shown, _ = explorer.widget.children
    _, controller, rate, *_ = controls.children
    published, first_begins, second_ends = explorer.published, threading.Event(), threading.Event()

    def slow(setting: Setting) -> str:
        if setting.rate_mbps == 20:
            first_begins.set()
            second_ends.wait(timeout=1)
        return published(setting)

    monkeypatch.setattr(explorer, "published", slow)
    # JupyterLab handles each control in a thread of its own.
    first = threading.Thread(target=lambda: setattr(controller, "value", "reno"))
    first.start()
    first_begins.wait()
    rate.value = 50.0
    second_ends.set()
    first.join()
    assert "Nearest published results: quic-go:reno" in shown.outputs[0]["data"]["text/html"]


@pytest.mark.guest
def test_a_live_run_is_of_the_exact_setting(cubes):
    explorer = qb.explore(cubes, duration_s=2)
    setting = Setting("tcp:cubic", rate_mbps=5, rtt_ms=20, buffer_bdp=1)
    flows = explorer.experiment(setting).flows
    assert [flow.name for flow in flows] == ["tcp:cubic", "tcp:cubic"]
    html = explorer.live(setting)
    assert "5 Mbit/s, 20 ms RTT" in html
    assert "qbkit-chart" in html


def test_the_verdict_is_that_of_the_cells_trials(cubes):
    found = nearest(cubes, Setting("quinn:cubic", 20, 50, 3))
    mbps = float(found.cell.mean_throughput_difference_mbps)
    seen = f"it takes {abs(mbps):.1f} Mbit/s {'more' if mbps > 0 else 'less'}"
    assert found.html().startswith(f"<p><b>{escape(found.verdict)}</b></p>")

    def of(trials: int, p_value: float) -> str:
        cell = found.cell.assign(trials=trials, reference_trials=trials, p_value=p_value)
        return dataclasses.replace(found, cell=cell).verdict

    enough = enough_trials(0.05)
    few = f"Undecided: {enough - 1} seeds cannot decide, {enough} can; {seen} in these."
    assert of(enough - 1, 0.1) == few
    assert of(5, 0.01) == f"quinn:cubic differs from tcp:cubic: {seen}."
    none = f"No difference between quinn:cubic and tcp:cubic is detected; {seen}."
    assert of(5, 0.2) == none
    assert found.verdict == of(5, float(found.cell.p_value))


def test_much_loss_is_explained():
    assert loss_sentences(synthetic_run(duration_s=3)) == []
    ds = synthetic_run(duration_s=3, shares=(2.4, 0.1))
    row = ds.qb.summary().iloc[0]
    assert row.loss_percent > 50
    (sentence,) = (s for s in loss_sentences(ds) if s.startswith("quic-go:cubic"))
    assert sentence.startswith(
        f"quic-go:cubic loses {row.loss_percent:.0f} % of its packets: it sends about "
    )
    sent_mbps = float(sentence.partition("about ")[2].split()[0])
    assert sent_mbps == pytest.approx(24, rel=0.1)


def test_without_anything_to_choose_the_explorer_says_what_it_needs():
    with pytest.raises(SpecError, match="nothing to choose from: give the cubes of sweeps"):
        qb.explore([], live=False)
