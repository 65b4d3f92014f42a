"""The explorer: the nearest published cell, and a live run of the exact setting."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import qbkit as qb
from qbkit.errors import MetricError
from qbkit.studies.explorer import Setting, nearest

DATA = Path(__file__).parents[1] / "data" / "conformance"


@pytest.fixture(scope="module")
def cubes():
    return [qb.load_sweep(DATA / f"{name}.yaml") for name in ("cubic", "reno")]


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


def test_without_an_engine_the_explorer_says_so_and_still_answers(cubes):
    explorer = qb.explore(cubes, live=False)
    assert explorer.live(Setting("tcp:cubic")) == "<p>No live run: live runs are off.</p>"
    bundle = explorer._repr_mimebundle_()
    explorer.wait()
    assert "Published results of quic-go:cubic" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


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
