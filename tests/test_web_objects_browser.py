"""The heat map of HTTP/3 against HTTP/2 in a real browser: a click opens a cell, on any page."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_plots_browser import WIDTHS, browser, opened, settled

import qbkit as qb
from qbkit import plots
from qbkit.plots.drawing.render import chart_fragment

__all__ = ["browser"]  # a fixture, used by its name

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DATA = Path(__file__).parents[1] / "data/web_objects"
ITEMS = """(name) => {
    // The items of marks whose data have this column, with their places on the canvas.
    const found = [];
    const view = document.querySelector('.qbkit-chart').vegaView;
    const walk = (item, x, y) => {
        for (const child of item.items || []) {
            const [cx, cy] = [x + (child.x || 0), y + (child.y || 0)];
            if (child.datum && name in child.datum && child.mark) found.push({
                kind: child.mark.marktype, x: cx, y: cy, width: child.width, height: child.height,
                fill: child.fill, text: child.text, opacity: child.opacity, datum: child.datum});
            if (child.items) walk(child, cx, cy);
        }
    };
    const [[x0, y0], pad] = [view.origin(), view.padding()];
    walk(view.scenegraph().root, x0 + pad.left, y0 + pad.top);
    return found;
}"""


@pytest.fixture(scope="module")
def tables():
    found = qb.load_tables(DATA)
    loads, acked = found["loads"], found["acked"]
    grid = (loads.client == "go") & (loads.tcp_initial_window_packets == 10)
    return loads[grid & (loads.server == "envoy:cubic")], acked[acked.server == "envoy:cubic"]


@pytest.fixture(scope="module")
def path(tables, tmp_path_factory):
    chart = plots.web_objects_chart(*tables, base_rtt_ms=15)
    return plots.save_chart(chart, tmp_path_factory.mktemp("web") / "objects.html")


@pytest.mark.parametrize(
    ("size", "loss_percent", "extra_ms"), [(1_000_000, 1, 50), (100_000, 1, 0), (5_000_000, 0.1, 0)]
)
def test_a_click_opens_the_median_loads_and_all_first_retransmissions(
    browser, path, tables, size, loss_percent, extra_ms
):
    loads, acked = (
        rows[
            (rows.object_bytes == size)
            & (rows.loss_percent == loss_percent)
            & (rows.rtt_ms == 15 + extra_ms)
        ]
        for rows in tables
    )
    with opened(browser, path) as page:
        column = f"{loss_percent:g} %, +{extra_ms} ms"
        row = (
            f"envoy:cubic · {size // 1000} KB"
            if size < 1e6
            else f"envoy:cubic · {size // 10**6} MB"
        )
        place = {"row": row, "column": column}
        tiles = [i for i in page.evaluate(ITEMS, "percent") if i["kind"] == "rect"]
        (tile,) = [i for i in tiles if place.items() <= i["datum"].items()]
        box = page.locator("canvas").bounding_box()
        page.mouse.click(
            box["x"] + tile["x"] + tile["width"] / 2, box["y"] + tile["y"] + tile["height"] / 2
        )
        settled(page)
        drawn = [i["datum"] for i in page.evaluate(ITEMS, "kb") if i["kind"] == "symbol"]
        assert all(place.items() <= datum.items() for datum in drawn)
        dots = {(d["protocol"], d["seed"]) for d in drawn if "lost" in d}
        lossy = loads[loads.first_retransmission_offset_bytes.notna()]
        assert dots == set(zip(lossy.protocol, lossy.seed, strict=True))
        for protocol in ("h2", "h3"):
            curve = [d for d in drawn if "lost" not in d and d["protocol"] == protocol]
            mine = acked[acked.protocol == protocol]
            assert max(d["kb"] for d in curve) == pytest.approx(mine.bytes.max() / 1e3, rel=1e-6)
            # The curve is that of the load in the middle.
            times_s = loads[loads.protocol == protocol].time_to_last_byte_s.sort_values()
            seed = mine.seed.iloc[0]
            chosen_s = loads[(loads.protocol == protocol) & (loads.seed == seed)]
            rank = (times_s < chosen_s.time_to_last_byte_s.iloc[0]).sum()
            assert rank in {(len(times_s) - 1) // 2, len(times_s) // 2}


def test_charts_of_the_web_fit_a_cell_at_1280_pixels(browser, tables, tmp_path):
    folder = DATA.parent / "web_pages"
    loads, runs = qb.load_tables(folder / "tables")["loads"], qb.load_runs(folder / "runs")
    shown = loads[(loads.client == "headless-shell") & (loads.buffer_packets == 50)]
    pair = {name: runs[f"medium-none-15ms-{name}"] for name in ("h2", "h3")}
    charts = [
        plots.web_objects_chart(*tables, base_rtt_ms=15),
        plots.page_differences_chart(shown),
        plots.page_times_chart(shown),
        plots.main_image_chart(shown),
        plots.film_chart(pair),
        plots.streams_chart(pair),
    ]
    path = tmp_path / "web.html"
    # What JupyterLab leaves for an output in a window of 1,280 pixels.
    path.write_text(
        "<!DOCTYPE html><meta charset=utf-8><div style='width:828px'>"
        + "".join(chart_fragment(chart.to_dict()) for chart in charts)
    )
    with opened(browser, path) as page:
        page.wait_for_timeout(1000)
        for canvas_px, view_px in page.evaluate(WIDTHS):
            assert canvas_px <= view_px == 828


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2 of an opaque colour."""
    if colour.startswith("#"):
        parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    else:
        parts = [255] * 3 if colour == "white" else [int(p) for p in colour[4:-1].split(",")]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4
        for p in (part / 255 for part in parts)
    ]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("ground", ["white", "#111111"])
def test_numbers_are_readable_on_every_tile_in_both_themes(browser, path, ground):
    with opened(browser, path) as page:
        page.evaluate("(colour) => { document.body.style.background = colour }", ground)
        page.wait_for_timeout(1500)
        items = page.evaluate(ITEMS, "percent")
        tiles = {
            str(i["datum"]["row"]) + i["datum"]["column"]: i["fill"]
            for i in items
            if i["kind"] == "rect"
        }
        numbers = [i for i in items if i["kind"] == "text" and i["text"]]
        assert len(numbers) > 10
        for number in numbers:
            tile = luminance(tiles[number["datum"]["row"] + number["datum"]["column"]])
            lights = sorted([tile, luminance(number["fill"])])
            # White and black ink have 4.3 on the least favourable colour.
            assert (lights[1] + 0.05) / (lights[0] + 0.05) > 4
