"""Charts in a real Chromium that may open nothing but the file: drawn, and alive."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from synthetic import synthetic_run

import qbkit as qb
from qbkit import plots
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.render import chart_fragment, without_bundle

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data"
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

HIDES_AT_FIRST_CANVAS = """new MutationObserver((_, watch) => {
    // As a tab of JupyterLab that the user leaves.
    if (!document.querySelector(".qbkit-chart canvas")) return;
    watch.disconnect();
    document.body.style.display = "none";
}).observe(document, { childList: true, subtree: true })"""
ORIGIN = "document.querySelector('.qbkit-chart').vegaView.origin()"
PANEL_WIDTH = """Math.max(...Object.values(document.querySelector('.qbkit-chart').vegaView.getState(
    {signals: (name) => /width$/i.test(name), data: () => false}).signals))"""
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
        width = page.evaluate(PANEL_WIDTH)
        assert brushed["time_s"][1] - brushed["time_s"][0] == pytest.approx(
            20 * 110 / width, rel=0.05
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


WIDTHS = """[...document.querySelectorAll('.qbkit-view')].filter(
    (view) => view.querySelector('canvas')).map(
    (view) => [view.querySelector('canvas').clientWidth, view.clientWidth])"""
"""Of the charts that are drawn: one that JupyterLab keeps out of sight has no canvas yet."""
INK = """() => {
    const found = new Set();
    const walk = (item) => {
        if (item.role === 'axis-title' || item.mark?.role === 'axis-title') found.add(item.fill);
        (item.items || []).forEach(walk);
    };
    walk(document.querySelector('.qbkit-chart').vegaView.scenegraph().root);
    return [...found].filter(Boolean);
}"""


def gallery():
    runs = [synthetic_run(seed=s, duration_s=12) for s in range(1, 7)]
    return plots.gallery_chart({f"s{i}:cubic": run for i, run in enumerate(runs)})


@pytest.mark.parametrize("width_px", [1280, 1440])
def test_charts_fill_the_cell_and_nothing_is_cut_off(browser, tmp_path, width_px):
    ds = synthetic_run(duration_s=12)
    charts = [plots.linked_chart(ds), plots.timeline_chart(ds), gallery()]
    path = tmp_path / "all.html"
    # JupyterLab's file list and prompts take 432 pixels of the window.
    path.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><div id=cell style='width:{width_px - 432}px'>"
        + "".join(chart_fragment(c.to_dict()) for c in charts)
    )
    with opened(browser, path) as page:
        for room_px in (width_px - 432, 700):
            page.evaluate(f"document.querySelector('#cell').style.width = '{room_px}px'")
            page.wait_for_timeout(1000)
            for canvas_px, view_px in page.evaluate(WIDTHS):
                assert view_px == room_px
                assert 0.8 * room_px < canvas_px <= room_px


def test_a_chart_that_is_hidden_while_it_is_drawn_fits_once_it_is_seen(browser, tmp_path):
    path = plots.save_chart(plots.linked_chart(synthetic_run(duration_s=20)), tmp_path / "a.html")
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.add_init_script(HIDES_AT_FIRST_CANVAS)
    page.goto(path.as_uri())
    page.wait_for_function("document.body.style.display === 'none'")
    page.wait_for_timeout(1000)
    page.evaluate("document.body.style.display = ''")
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(500)
    assert page.locator("text=could not be drawn").count() == 0
    assert all(canvas_px <= view_px for canvas_px, view_px in page.evaluate(WIDTHS))
    page.close()


def test_charts_follow_a_dark_theme_at_once(browser, tmp_path):
    path = plots.save_chart(plots.timeline_chart(synthetic_run(duration_s=12)), tmp_path / "a.html")
    with opened(browser, path) as page:
        assert page.evaluate(INK) == [theme.INK]
        # What JupyterLab does when the user chooses its dark theme.
        page.evaluate(
            "document.body.style.background = '#111'; document.body.dataset.jpThemeLight = 'false'"
        )
        page.wait_for_timeout(1500)
        assert page.evaluate(INK) == [theme.INK_ON_DARK[theme.INK]]
        assert (
            page.evaluate(
                "document.querySelector('canvas').getContext('2d').getImageData(1, 1, 1, 1).data[3]"
            )
            == 0
        )  # the page's ground shows


def test_a_chart_without_vega_takes_that_of_another_wherever_it_is(browser, tmp_path):
    fragment = chart_fragment(plots.timeline_chart(synthetic_run(duration_s=12)).to_dict())
    light = without_bundle(fragment)
    assert len(light) < len(fragment) / 4
    path = tmp_path / "shared.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{light}{fragment}{light}")
    with opened(browser, path) as page:
        assert page.locator("canvas").count() == 3


def test_every_line_has_tooltips(browser, tmp_path):
    path = plots.save_chart(plots.timeline_chart(synthetic_run(duration_s=12)), tmp_path / "a.html")
    with opened(browser, path) as page:
        found = page.evaluate("""() => {
            const found = {};
            const walk = (item, x, y) => {
                for (const child of item.items || []) {
                    const [cx, cy] = [x + (child.x || 0), y + (child.y || 0)];
                    const point = child.tooltip && child.shape !== undefined;
                    if (point) found[Math.round(y)] ??= [cx, cy];
                    if (child.items) walk(child, cx, cy);
                }
            };
            const view = document.querySelector('.qbkit-chart').vegaView;
            const [[x0, y0], pad] = [view.origin(), view.padding()];
            walk(view.scenegraph().root, x0 + pad.left, y0 + pad.top);
            return Object.values(found);
        }""")
        assert len(found) == 3  # panels
        box = page.locator("canvas").bounding_box()
        for x, y in found:
            page.mouse.move(box["x"] + x, box["y"] + y)
            page.wait_for_selector("#vg-tooltip-element.visible")
            words = page.inner_text("#vg-tooltip-element")
            assert "Flow" in words
            assert "undefined" not in words
            page.mouse.move(2, 2)


DOMAINS = """['x', 'y'].map(
    (name) => document.querySelector('.qbkit-chart').vegaView.scale(name).domain())"""


def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl_only(browser, tmp_path):
    chart = synthetic_run(duration_s=20).qb.plot.envelope()
    path = tmp_path / "a.html"
    tall = "<div style='height:3000px'></div>"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{chart_fragment(chart.to_dict())}{tall}")
    with opened(browser, path) as page:
        whole = page.evaluate(DOMAINS)
        page.mouse.move(*middle_of_first_panel(page))
        page.mouse.wheel(0, 300)
        page.wait_for_function("window.scrollY > 0")
        settled(page)
        assert page.evaluate(DOMAINS) == whole
        page.evaluate("window.scrollTo(0, 0)")
        page.keyboard.down("Control")
        for _ in range(10):
            page.mouse.wheel(0, 300)
        page.keyboard.up("Control")
        settled(page)
        (left_ms, right_ms), (low_mbps, _) = page.evaluate(DOMAINS)
        assert right_ms > whole[0][1]  # zoomed out
        assert (left_ms, low_mbps) == (0, 0)  # and no further than to zero
        page.mouse.dblclick(*middle_of_first_panel(page))
        settled(page)
        assert page.evaluate(DOMAINS) == whole


TIME = "document.querySelector('.qbkit-chart').vegaView.signal('zoom_time_s')"
RULES = """() => {
    let found = 0;
    const walk = (item) => {
        const at = item.datum && item.datum.at_s;
        if (at !== undefined && item.mark.marktype === 'rule') found += 1;
        (item.items || []).forEach(walk);
    };
    walk(document.querySelector('.qbkit-chart').vegaView.scenegraph().root);
    return found;
}"""


def test_the_timeline_zooms_and_has_a_rule_under_the_pointer_in_each_panel(browser, tmp_path):
    path = plots.save_chart(plots.timeline_chart(synthetic_run(duration_s=20)), tmp_path / "a.html")
    with opened(browser, path) as page:
        zooms_and_has_rules(page, 3, 20)


def zooms_and_has_rules(page, panels: int, duration_s: float) -> None:
    """Move the pointer into the first panel and turn the wheel, alone and with Ctrl."""
    assert page.evaluate(RULES) == 0
    x, y = middle_of_first_panel(page)
    page.mouse.move(x, y)
    page.mouse.move(x + 5, y)
    settled(page)
    assert page.evaluate(RULES) == panels
    page.mouse.wheel(0, -300)
    settled(page)
    assert page.evaluate(TIME) is None
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    settled(page)
    start_s, end_s = page.evaluate(TIME)
    assert 0 < end_s - start_s < 0.75 * duration_s
    assert page.evaluate("scrollY") == 0
    page.mouse.move(1, 1)
    settled(page)
    assert page.evaluate(RULES) == 0


def test_a_report_is_legible_in_a_dark_theme(browser, tmp_path):
    report = qb.save_report(synthetic_run(duration_s=12), tmp_path / "report.html")
    page = browser.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    page.wait_for_function(DRAWN)
    light = "(e, name) => getComputedStyle(e)[name].match(/\\d+/g)[1] > 128"
    assert not page.eval_on_selector("body", light, "backgroundColor")
    for text in ("h1", ".qbkit td", ".qbkit-title"):
        assert page.eval_on_selector(text, light, "color"), text
    page.close()


def test_a_report_fits_a_phone(browser, tmp_path):
    study = qb.save_report(qb.load_study(DATA / "envelope"), tmp_path / "study.html")
    evaluation = qb.load_evaluation(DATA / "evaluations" / "quinn-bbr.json")
    for report in (study, qb.save_evaluation(evaluation, tmp_path / "evaluation.html")):
        page = browser.new_page(viewport={"width": 390, "height": 800}, is_mobile=True)
        page.goto(report.as_uri())
        page.wait_for_function(DRAWN)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.close()
