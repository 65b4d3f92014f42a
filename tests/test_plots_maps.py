"""The conformance map and the matrix of interactions: what they hold, and in a real browser."""

from __future__ import annotations

import pytest
from chart_words import said, tables_of
from synthetic_cubes import pairs_cube, settings_cube
from test_plots_browser import browser, opened, settled

from qbkit import plots
from qbkit.errors import MetricError
from qbkit.metrics import conformance_map, map_sentence

__all__ = ["browser"]  # a fixture, used by its name

TILE = """([row, field, value]) => {
    // Middle of a tile on the canvas: places of its groups, summed up.
    let found = null;
    const walk = (item, x, y) => {
        if (item.marktype && item.marktype !== 'group' && item.marktype !== 'rect') return;
        for (const child of item.items || []) {
            const d = child.datum;
            if (item.marktype === 'rect' && d && d.row === row && d[field] === value && !found)
                found = [x + child.x + child.width / 2, y + child.y + child.height / 2];
            if (child.items) walk(child, x + (child.x || 0), y + (child.y || 0));
        }
    };
    const view = document.querySelector('.qbkit-chart').vegaView;
    const [[x0, y0], pad] = [view.origin(), view.padding()];
    walk(view.scenegraph().root, x0 + pad.left, y0 + pad.top);
    return found;
}"""
WORDS = """() => {
    const found = [];
    const walk = (item) => {
        if (item.text !== undefined && item.fontWeight === 600) found.push(String(item.text));
        (item.items || []).forEach(walk);
    };
    walk(document.querySelector('.qbkit-chart').vegaView.scenegraph().root);
    return found.join(' | ');
}"""


@pytest.mark.slow
def test_every_cell_of_the_map_has_the_numbers_of_the_metric():
    cube = settings_cube(["tcp:cubic", "a:cubic", "b:cubic"])
    chart = plots.conformance_map_chart({"tcp:cubic": cube})
    drawn = next(t for t in tables_of(chart) if "conformance_t" in t[0])
    known = conformance_map(cube, "tcp:cubic")
    assert len(drawn) == 3 * 4
    floors, cells = drawn[:4], drawn[4:]
    assert {cell["row"] for cell in floors} == {"tcp:cubic with itself"}
    floor = known.noise_floor.isel({"flows.0": 0}).values.ravel()
    assert [float(c["conformance"]) for c in floors] == pytest.approx(floor.tolist(), abs=1e-9)
    assert {cell["deviation"] for cell in floors} == {""}
    for cell in cells:
        rtt, buffer = (float(word.split()[0]) for word in cell["setting"].split(","))
        place = {"bottleneck.rtt_ms": rtt, "bottleneck.buffer_bdp": buffer, "flows.0": cell["row"]}
        for name in ("conformance", "deviation", "delta_delay_ms"):
            assert float(cell[name]) == pytest.approx(float(known[name].sel(place)), abs=1e-9)
    # The same cloud 4 and 8 ms to the right: nothing shared, and all after a translation.
    a = known.sel({"flows.0": "a:cubic"})
    assert a.conformance.max() < 0.4
    assert a.conformance_t.min() > 0.9
    assert a.delta_delay_ms.values == pytest.approx(4, abs=0.5)


@pytest.mark.slow
def test_the_map_says_what_it_may_claim():
    cube = settings_cube(["tcp:cubic", "a:cubic"], seeds=3)
    found = conformance_map(cube, "tcp:cubic")
    assert 0.7 < found.noise_floor.min() <= found.noise_floor.max() <= 1
    chart = plots.conformance_map_chart({"tcp:cubic": cube}).to_dict()
    assert map_sentence(found) in said(chart)
    lone = conformance_map(cube.isel(seed=[0]), "tcp:cubic")
    points = cube[["point_delay_ms", "point_throughput_mbps"]]
    half = cube.assign(points.where(cube["flows.0"] != "tcp:cubic"))
    assert map_sentence(conformance_map(half, "tcp:cubic")) == (
        "No cell has runs of both sides, tcp:cubic and another: run them."
    )
    assert lone.noise_floor.isnull().all()
    assert lone.p_value.isnull().all()
    assert map_sentence(lone) == (
        "One trial per side: noise could explain any cell. Give at least 2 seeds."
    )


@pytest.mark.slow
def test_families_share_a_map():
    cubes = {f"tcp:{f}": settings_cube([f"tcp:{f}", f"a:{f}"]) for f in ("cubic", "bbr")}
    drawn = next(
        t for t in tables_of(plots.conformance_map_chart(cubes)) if "conformance_t" in t[0]
    )
    rows = list(dict.fromkeys(cell["row"] for cell in drawn))
    assert rows == ["tcp:cubic with itself", "a:cubic", "tcp:bbr with itself", "a:bbr"]


@pytest.mark.slow
def test_the_most_conformant_row_follows_the_noise_floor():
    cube = settings_cube(["tcp:cubic", "a:cubic", "b:cubic"])  # b is twice as far away
    cube = cube.isel({"flows.0": [2, 1, 0]})
    drawn = next(
        t for t in tables_of(plots.conformance_map_chart({"tcp:cubic": cube})) if "settles" in t[0]
    )
    rows = list(dict.fromkeys(cell["row"] for cell in drawn))
    assert rows == ["tcp:cubic with itself", "a:cubic", "b:cubic"]


def test_bad_input_is_one_sentence():
    cube = settings_cube(["tcp:cubic", "a:cubic"])
    with pytest.raises(MetricError, match="no quantity speed; choose from conformance, deviation"):
        plots.conformance_map_chart({"tcp:cubic": cube}, quantities=["speed"])
    with pytest.raises(MetricError, match="no cell has envelopes of both sides"):
        plots.conformance_map_chart({})
    with pytest.raises(MetricError, match="the reference tcp:bbr is not in the sweep"):
        plots.conformance_map_chart({"tcp:bbr": cube})
    with pytest.raises(MetricError, match=r"choose one value of bottleneck\.buffer_bdp first"):
        plots.interaction_chart(pairs_cube("ab").expand_dims({"bottleneck.buffer_bdp": [1, 5]}))
    with pytest.raises(MetricError, match="tcp:cubic, which defines the expected ratio"):
        plots.expectation_chart(pairs_cube(["a:cubic", "a:bbr"]))


@pytest.mark.slow
def test_the_matrix_is_ordered_by_dominance_and_mirrored():
    names = ["tcp:reno", "quinn:bbr", "tcp:cubic"]  # the first is the strongest
    chart = plots.interaction_chart(pairs_cube(names))
    cells = next(t for t in tables_of(chart) if "ratio" in t[0])
    assert list(dict.fromkeys(c["row"] for c in cells)) == names
    ratio = {(c["row"], c["column"]): float(c["ratio"]) for c in cells}
    assert ratio["tcp:reno", "tcp:cubic"] == pytest.approx(0.5 + 0.4 * 2 / 3, abs=1e-3)
    for x in names:
        for y in names:
            assert ratio[x, y] + ratio[y, x] == pytest.approx(1, abs=2e-3)


@pytest.mark.slow
def test_the_throughput_of_a_pair_is_that_of_its_ratio():
    """The drawn steps are coarser, and do not hold all of the trial."""
    names = [f"stack-{i:02d}:cubic" for i in range(25)]
    cube = pairs_cube(names, steps=80)
    growing = cube.series_throughput_mbps * cube.time / cube.time.mean()
    cube["series_throughput_mbps"] = growing
    cube.attrs["sweep"] = '{"settle_s": 21}'
    tables = tables_of(plots.interaction_chart(cube))
    means = {(c["row"], c["column"], c["side"]): float(c["mean"]) for c in _of(tables, "mean")}
    ratios = {(c["row"], c["column"]): float(c["ratio"]) for c in _of(tables, "ratio")}
    seen = growing.sel(time=slice(21, None)).mean("time")
    assert means[names[0], names[1], "row"] == pytest.approx(float(seen[0, 1, 0]))
    for (row, column), ratio in ratios.items():
        mine, other = (means[row, column, side] for side in ("row", "column"))
        assert mine / (mine + other) == pytest.approx(ratio, abs=1e-6)
    assert max(float(c["time_s"]) for c in _of(tables, "time_s")) < 79


def _of(tables, column):
    return next(table for table in tables if column in table[0])


@pytest.mark.slow
def test_rows_and_columns_in_another_order_keep_their_flows():
    """A sweep may name the same implementations in two orders, or others on either side."""

    def drawn(cube):
        tables = tables_of(plots.interaction_chart(cube))
        ratios = next(t for t in tables if "ratio" in t[0])
        series = next(t for t in tables if "side" in t[0])
        return (
            {tuple(row[n] for n in ("row", "column", "ratio")) for row in ratios},
            {tuple(sorted(row.items())) for row in series},
        )

    cube = pairs_cube(["tcp:reno", "quinn:bbr", "tcp:cubic"])
    known = drawn(cube)
    assert drawn(cube.isel({"flows.0": [2, 0, 1]})) == known
    assert drawn(cube.isel({"flows.1": [1, 2, 0]})) == known
    part = drawn(cube.isel({"flows.0": [0], "flows.1": [1, 2]}))  # one against two others
    pairs = {("tcp:reno", "quinn:bbr"), ("tcp:reno", "tcp:cubic")}
    both = pairs | {(y, x) for x, y in pairs}
    assert {(row, column) for row, column, ratio in part[0] if ratio} == both
    assert part[1] == {row for row in known[1] if (dict(row)["row"], dict(row)["column"]) in both}


@pytest.mark.slow
def test_twenty_five_by_twenty_five_stays_readable_and_small():
    names = [f"stack-{i:02d}:cubic" for i in range(25)]
    chart = plots.interaction_chart(pairs_cube(names, steps=60))
    matrix = chart.to_dict()["hconcat"][0]
    assert matrix["width"] / 25 >= 27  # room for four digits of 9.5 pixels
    assert sum(len(t) for t in tables_of(chart)) < 30_000


@pytest.mark.browser
@pytest.mark.slow
def test_a_click_on_a_cell_of_the_map_opens_its_envelope(browser, tmp_path):
    cube = settings_cube(["tcp:cubic", "a:cubic", "b:cubic"])
    chart = plots.conformance_map_chart({"tcp:cubic": cube})
    with opened(browser, plots.save_chart(chart, tmp_path / "map.html")) as page:
        assert "a:cubic, 10 ms, 0.5 BDP" in page.evaluate(WORDS)  # not the noise floor above it
        click(page, "b:cubic", "setting", "50 ms, 5 BDP")
        assert "b:cubic, 50 ms, 5 BDP" in page.evaluate(WORDS)


@pytest.mark.browser
@pytest.mark.slow
def test_a_click_on_a_pair_shows_its_two_flows(browser, tmp_path):
    chart = plots.interaction_chart(pairs_cube(["a:cubic", "b:bbr", "c:reno"]))
    with opened(browser, plots.save_chart(chart, tmp_path / "pairs.html")) as page:
        click(page, "c:reno", "column", "a:cubic")  # ran the other way round
        words = page.evaluate(WORDS)
        assert "c:reno  2.3 Mbit/s" in words
        assert "a:cubic  7.7 Mbit/s" in words


def click(page, row: str, field: str, value: str) -> None:
    box = page.locator("canvas").bounding_box()
    x, y = page.evaluate(TILE, [row, field, value])
    page.mouse.click(box["x"] + x, box["y"] + y)
    settled(page)
