"""Charts in a real Chromium that may open nothing but the file: drawn, and alive."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from synthetic import synthetic_run

from qbkit import plots
from qbkit.plots.render import chart_fragment

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
DRAWN = "[...document.querySelectorAll('.qbkit-chart')].every(e => e.vegaView)"
LIT = """() => {
    // Operating points are the items of the only mark with a tooltip over 'kept'.
    const found = [];
    const walk = (item) => {
        const point = item.datum && 'kept' in item.datum && item.tooltip;
        if (point && item.opacity > 0.1) found.push(item.datum.time_s);
        (item.items || []).forEach(walk);
    };
    walk(document.querySelector('.qbkit-chart').vegaView.scenegraph().root);
    return found;
}"""

ORIGIN = "document.querySelector('.qbkit-chart').vegaView.origin()"
SPAN = "document.querySelector('.qbkit-chart').vegaView.signal('span')"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here; apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        yield chromium
        chromium.close()


@contextmanager
def opened(browser, path) -> Iterator:
    """A page of the file that may load nothing else and complain of nothing."""
    page = browser.new_page(viewport={"width": 1250, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("dialog", lambda d: (complaints.append("dialog " + d.message), d.dismiss()))

    def only_the_file(route):
        if route.request.url == path.as_uri():
            route.continue_()
        else:
            complaints.append(route.request.url)
            route.abort()

    page.route("**/*", only_the_file)
    page.goto(path.as_uri())
    page.wait_for_function(DRAWN)
    yield page
    assert complaints == []
    page.close()


def settled(page) -> None:
    """Wait until Vega has done what the last events asked for."""
    page.evaluate("document.querySelector('.qbkit-chart').vegaView.runAsync().then(() => null)")
    page.wait_for_timeout(100)


def drag(page, start_px: int, stop_px: int) -> None:
    """Drag over the first panel, in pixels from about its left edge."""
    box = page.locator("canvas").bounding_box()
    origin = page.evaluate(ORIGIN)
    y = box["y"] + origin[1] + 20
    page.mouse.move(box["x"] + origin[0] + start_px, y)
    page.mouse.down()
    page.mouse.move(box["x"] + origin[0] + (start_px + stop_px) / 2, y, steps=4)
    page.mouse.move(box["x"] + origin[0] + stop_px, y, steps=4)
    page.mouse.up()
    settled(page)


def test_a_brushed_span_lights_its_operating_points(browser, tmp_path):
    ds = synthetic_run(duration_s=20)
    path = plots.save_chart(plots.linked_chart(ds), tmp_path / "linked.html")
    with opened(browser, path) as page:
        everything = page.evaluate(LIT)
        drag(page, 220, 330)
        brushed = page.evaluate(SPAN)
        assert brushed["time_s"][1] - brushed["time_s"][0] == pytest.approx(
            20 * 110 / 440, rel=0.05
        )
        inside = [t for t in everything if brushed["time_s"][0] <= t <= brushed["time_s"][1]]
        assert page.evaluate(LIT) == inside
        assert 0 < len(inside) < len(everything)
        page.mouse.dblclick(*middle_of_first_panel(page))
        settled(page)
        assert len(page.evaluate(LIT)) == len(everything)


def middle_of_first_panel(page) -> tuple[float, float]:
    box = page.locator("canvas").bounding_box()
    origin = page.evaluate(ORIGIN)
    return box["x"] + origin[0] + 220, box["y"] + origin[1] + 20


def test_a_trial_is_chosen_from_the_list(browser, tmp_path):
    runs = [synthetic_run(seed=s, duration_s=12) for s in (1, 2)]
    path = plots.save_chart(plots.linked_chart({"quic-go:cubic": runs}), tmp_path / "trials.html")
    with opened(browser, path) as page:
        both = len(page.evaluate(LIT))
        page.select_option("select", "seed 2")
        settled(page)
        assert 0 < len(page.evaluate(LIT)) < both


def test_hostile_labels_stay_text_and_two_charts_share_a_page(browser, tmp_path):
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    ds = synthetic_run(duration_s=12)
    ds = ds.assign_coords(label=("flow", [hostile, "tcp:cubic"]))
    charts = [plots.linked_chart(ds), plots.timeline_chart(ds)]
    path = tmp_path / "two.html"
    # A page with an AMD loader, as notebooks had, must not catch the bundle.
    loader = "<script>window.define = () => { throw Error('caught'); }; define.amd = {};</script>"
    path.write_text(
        "<!DOCTYPE html><meta charset=utf-8>"
        + loader
        + "".join(chart_fragment(c.to_dict()) for c in charts)
    )
    with opened(browser, path) as page:
        assert page.locator("canvas").count() == 2
        assert page.locator("img").count() == 0
        assert page.evaluate("typeof window.vegaEmbed") == "undefined"
        drawn = page.evaluate(
            """() => [...document.querySelectorAll('canvas')].map(c => {
            const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let inked = 0;
            for (let i = 0; i < p.length; i += 4) if (p[i] < 200) inked += 1;
            return inked; })"""
        )
        assert all(inked > 2000 for inked in drawn)
