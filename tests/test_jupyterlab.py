"""The notebooks in a real JupyterLab: nothing cut off, dark theme; explorer and replay alive."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from test_plots_browser import WIDTHS, browser

from qbkit.execution import notebooks

__all__ = ["browser"]  # a fixture, used by its name

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).parents[1]
THEMES = "@jupyterlab/apputils-extension:themes"
HERE = """\
import os
del os.environ["QBKIT_CACHE"]  # here, an engine runs
import qbkit as qb
"""
REPLAY = f"""{HERE}
run = qb.Experiment(flows=["tcp:cubic"], duration_s=3).run()
run.qb.replay_on_click(run.qb.plot.timeline())"""
STUDY = f"""{HERE}
study = qb.conformance_study("tcp:reno", "tcp:cubic", seeds=2, duration_s=20)
study.replay_on_click()"""
POINTS = """() => {
    // The operating points of the envelope: where each is on the page, and what it is of.
    const chart = document.querySelector(".qbkit-chart"), view = chart.vegaView;
    const {left, top} = chart.querySelector("canvas").getBoundingClientRect();
    const found = [];
    const walk = (item, x, y) => {
        const datum = item.datum || {};
        const isPoint = datum.queue_delay_ms !== undefined && datum.time_s !== undefined;
        if (isPoint && item.mark.marktype === "symbol") {
            const what = `${datum.time_s.toFixed(3)}, ${datum.label}, ${datum.trial}`;
            found.push([what, x + item.x, y + item.y]);
        }
        const at = item.marktype ? [x, y] : [x + (item.x || 0), y + (item.y || 0)];
        for (const inner of item.items || []) walk(inner, ...at);
    };
    const [x, y] = view.origin(), padding = view.padding();
    walk(view.scenegraph().root, left + x + padding.left, top + y + padding.top);
    return found;
}"""
MIDDLE = """() => {
    // The middle of the first panel, on the page.
    const chart = document.querySelector(".qbkit-chart"), box = chart.querySelector("canvas");
    const {left, top} = box.getBoundingClientRect(), [x, y] = chart.vegaView.origin();
    const widths = chart.vegaView.getState({signals: (name) => /width$/i.test(name)}).signals;
    return [left + x + Math.max(...Object.values(widths)) / 2, top + y + 60];
}"""
WIDE_TABLES = """[...document.querySelectorAll('.jp-OutputArea-output table')].filter(t =>
    t.getBoundingClientRect().width > t.closest('.jp-OutputArea-output').clientWidth + 1).length"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Address of a JupyterLab on executed notebooks; its settings are its own."""
    root = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "data" / "conformance", root / "data" / "conformance")
    (root / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "13_parameter_explorer.ipynb", root / "notebooks")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    for name, code in {"replay": REPLAY, "study": STUDY}.items():
        cells = [nbformat.v4.new_code_cell(code)]
        written = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
        nbformat.write(written, root / f"notebooks/{name}.ipynb")
    own = {
        "JUPYTERLAB_SETTINGS_DIR": root / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": root / "workspaces",
        "QBKIT_CACHE": root / "neither-kernel-nor-drivers",
        "QBKIT_RUNS": root / "runs",
        "PYTHONPATH": ROOT,
    }
    before = dict(os.environ)
    os.environ.update({name: str(value) for name, value in own.items()})
    try:
        one_map = {"sweeps": str(root / "data" / "conformance"), "longer": [], "faster": {}}
        notebooks.execute("03", root / "notebooks", one_map)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [f"--port={port}", "--no-browser", "--allow-root", f"--ServerApp.root_dir={root}"]
        words += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *words], stderr=subprocess.DEVNULL
        )
    finally:
        os.environ.clear()
        os.environ.update(before)
    address = f"http://127.0.0.1:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).read()
            break
        except OSError:
            time.sleep(0.5)
    yield address
    server.terminate()
    server.wait()


def choose_theme(lab: str, name: str) -> None:
    body = json.dumps({"raw": json.dumps({"theme": f"JupyterLab {name}"})}).encode()
    request = urllib.request.Request(f"{lab}/lab/api/settings/{THEMES}", body, method="PUT")
    urllib.request.urlopen(request, timeout=30).read()


def opened(browser, lab: str, notebook: str, width_px: int):
    page = browser.new_page(viewport={"width": width_px, "height": 1000})
    page.goto(f"{lab}/lab/tree/notebooks/{notebook}?reset")
    page.wait_for_selector(".jp-Notebook", timeout=120_000)
    return page


def with_chart(browser, lab: str, notebook: str):
    """The page of a notebook whose cells were run, scrolled to its first chart."""
    page = opened(browser, lab, notebook, 1440)
    page.wait_for_selector("text=| Idle", timeout=120_000)
    page.click("text=Run >> nth=0")
    page.click("text=Run All Cells >> nth=0")
    page.wait_for_function("document.querySelector('.qbkit-chart')?.vegaView", timeout=240_000)
    page.locator(".qbkit-chart").first.scroll_into_view_if_needed()
    return page


@pytest.mark.parametrize(("width_px", "name"), [(1280, "Light"), (1440, "Dark")])
def test_the_map_fits_the_cell_and_follows_the_theme(browser, lab, width_px, name):
    choose_theme(lab, name)
    page = opened(browser, lab, "03_conformance_map.ipynb", width_px)
    chart = page.locator(".qbkit-chart").first
    chart.scroll_into_view_if_needed(timeout=60_000)
    page.wait_for_function("document.querySelector('.qbkit-chart')?.vegaView", timeout=60_000)
    widths_px = page.evaluate(WIDTHS)
    assert widths_px
    for canvas_px, view_px in widths_px:
        assert 0.8 * view_px < canvas_px <= view_px
    assert page.evaluate(WIDE_TABLES) == 0
    assert page.locator("text=Error displaying widget").count() == 0
    ink = page.evaluate("getComputedStyle(document.querySelector('.qbkit-title')).color")
    lightness = sum(int(part) for part in ink[4:-1].split(",")) / 3
    assert (lightness > 128) == (name == "Dark")
    page.close()


def test_the_explorer_answers_a_choice_from_the_published_sweeps(browser, lab):
    choose_theme(lab, "Light")
    page = opened(browser, lab, "13_parameter_explorer.ipynb", 1280)
    page.wait_for_selector("text=| Idle", timeout=120_000)
    page.click("text=Run >> nth=0")
    page.click("text=Run All Cells >> nth=0")
    page.wait_for_selector("text=Published results of quic-go:cubic, 20 Mbit/s", timeout=120_000)
    page.wait_for_selector("text=No live run: ", timeout=60_000)
    stack, controller, rate, *_ = page.query_selector_all(".widget-dropdown select")
    stack.select_option("quinn")
    page.wait_for_selector("text=Published results of quinn:cubic, 20 Mbit/s", timeout=60_000)
    controller.select_option("bbr")
    rate.select_option("50")
    page.wait_for_selector(
        "text=Nearest published results: quinn:bbr, 20 Mbit/s, 50 ms, 1 BDP, against tcp:bbr",
        timeout=60_000,
    )
    page.wait_for_function("document.querySelector('.qbkit-chart')?.vegaView", timeout=60_000)
    widths_px = page.evaluate(WIDTHS)
    assert widths_px
    for canvas_px, view_px in widths_px:
        assert canvas_px <= view_px
    page.close()


@pytest.mark.guest
def test_a_click_on_the_timeline_replays_that_time(browser, lab):
    page = with_chart(browser, lab, "replay.ipynb")
    page.mouse.click(*page.evaluate(MIDDLE))
    page.wait_for_selector("text=The same bytes as the stored run.", timeout=240_000)
    around_s = float(page.locator(".widget-text input").input_value())
    assert around_s == pytest.approx(1.5, abs=0.1)
    assert page.locator(f"text=tcp:cubic around {around_s:g} s").count() == 1
    page.close()


@pytest.mark.guest
def test_a_click_on_an_envelope_replays_the_trial_of_its_point(browser, lab):
    page = with_chart(browser, lab, "study.ipynb")
    points = page.evaluate(POINTS)
    what, x, y = max(points, key=lambda point: point[1])  # the envelope is right of the timeline
    page.mouse.click(x, y)
    page.wait_for_selector("text=The same bytes as the stored run.", timeout=240_000)
    assert page.locator(".widget-text input").input_value() == what
    page.close()
