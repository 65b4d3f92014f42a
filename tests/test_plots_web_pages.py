"""Charts of page loads, drawn from constructed loads."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from PIL import Image

import qbkit as qb
from qbkit.errors import MetricError
from qbkit.metrics import page_differences, page_table, protocol_shares
from qbkit.traces.run.journey import Fate

URL = "https://test.example/"


def jpeg(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, "JPEG")
    return file.getvalue()


def page_load(protocol: str, seed: int, load_s: float) -> xr.Dataset:
    """A document and two images; the second one is the largest."""
    film = [jpeg("white"), jpeg("red")]
    sizes = [1000, 3000, 9000]
    spec = {"server": "envoy:cubic", "client": "headless-shell", "page": "small", "seed": seed}
    spec["bottleneck"] = {"loss_percent": 1.0, "rtt_ms": 15.0}
    names = [URL, f"{URL}a.jpg", f"{URL}b.jpg"]
    order = [0, 1, 2, 1, 2]
    return xr.Dataset(
        {
            "page_load_time_s": load_s,
            "first_contentful_paint_s": 0.2,
            "largest_contentful_paint_s": 0.4,
            "resource_url": ("resource", names),
            "resource_type": ("resource", ["document", "image", "image"]),
            "resource_protocol": ("resource", [protocol] * 3),
            "resource_bytes": ("resource", sizes),
            "resource_urgency": ("resource", [0, 3, 3]),
            "resource_start_s": ("resource", [0.0, 0.1, 0.2]),
            "resource_first_byte_s": ("resource", [0.1, 0.2, 0.3]),
            "resource_end_s": ("resource", [0.15, 0.5, 0.6]),
            "screenshot_time_s": ("screenshot", [0.2, 0.6]),
            "visual_progress_percent": ("screenshot", [0.0, 100.0]),
            "film": ("film_byte", np.frombuffer(b"".join(film), np.uint8)),
            "film_end": ("screenshot", np.cumsum([len(data) for data in film])),
            "chunk_time_s": ("chunk", np.arange(5) / 10),
            "chunk_bytes": ("chunk", [1000] * 5),
            "chunk_new_bytes": ("chunk", [1000] * 5),
            "chunk_resource": ("chunk", order),
            "packet_fate": ("packet", [0, 0, 1]),
            "queue_delay_ms": (("flow", "time"), [[0.0, 5.0]]),
        },
        attrs={
            "web_load": json.dumps(spec),
            "protocol": protocol,
            "cpu_s": 3.0,
            "rtt_ms": 15.0,
            "rate_mbps": 10.0,
            "queue_bytes": 20_000,
        },
    )


@pytest.fixture(scope="module")
def loads() -> list[xr.Dataset]:
    times = {"h2": (1.0, 1.2, 1.1), "h3": (0.9, 0.88, 0.86)}
    return [page_load(p, s + 1, t) for p, given in times.items() for s, t in enumerate(given)]


def test_the_table_and_its_differences(loads: list[xr.Dataset]):
    table = page_table(loads)
    assert set(table.loss) == {"1 % at random"}
    assert set(table.main_end_s) == {0.6} and set(table.lost_packets) == {1}
    assert set(table.speed_index_s) == {0.6}
    cells = page_differences(table).set_index("time")
    row = cells.loc["page_load_time_s"]
    assert (row.h2_median_s, row.h3_median_s) == (1.1, 0.88)
    assert row.difference_percent == pytest.approx(-20)
    assert row.low_percent <= -20 <= row.high_percent
    assert cells.loc["speed_index_s"].difference_percent == 0
    median = qb.metrics.median_page_load(loads[:3])
    assert float(median.page_load_time_s) == 1.1


def test_loads_over_two_links_are_not_compared_as_one(loads: list[xr.Dataset]):
    table = page_table(loads)
    both = pd.concat([table, table.assign(link="rate_mbps 50.0")])
    plots = (qb.plots.page_differences_chart, qb.plots.page_times_chart, qb.plots.main_image_chart)
    for compare in (page_differences, *plots):
        with pytest.raises(MetricError, match="differ in their link"):
            compare(both)


def test_two_browsers_are_two_rows_of_a_chart(loads: list[xr.Dataset]):
    table = page_table(loads)
    both = pd.concat([table, table.assign(client="firefox")])
    plots, rows = qb.plots, "envoy:cubic, small, 1 % at random, 15 ms"
    for draw in (plots.page_differences_chart, plots.page_times_chart, plots.main_image_chart):
        text = json.dumps(draw(both).to_dict(), ensure_ascii=False)
        assert f"{rows}, firefox" in text and f"{rows}, headless-shell" in text
        assert f"{rows}, " not in json.dumps(draw(table).to_dict(), ensure_ascii=False)


def test_loads_without_a_time_are_left_out_of_it(loads: list[xr.Dataset]):
    """As the largest contentful paint of a page that had none."""
    nan = {"largest_contentful_paint_s": np.nan, "page_load_time_s": np.nan}
    some = [*loads[:3], loads[0].assign(nan), *loads[3:]]
    cells = page_differences(page_table(some)).set_index("time")
    row = cells.loc["largest_contentful_paint_s"]
    assert (row.h2_median_s, row.h2_loads, row.h3_loads) == (0.4, 3, 3)
    assert float(qb.metrics.median_page_load(some[:4]).page_load_time_s) == 1.1
    with pytest.raises(MetricError, match="no load has a page_load_time_s"):
        qb.metrics.median_page_load(some[3:4])


def test_a_packet_that_is_queued_at_the_end_is_not_lost(loads: list[xr.Dataset]):
    queued = loads[0].assign(packet_fate=("packet", [0, 1, Fate.UNKNOWN]))
    assert page_table([queued]).lost_packets.tolist() == [1]


def test_shares_are_of_each_type(loads: list[xr.Dataset]):
    shares = protocol_shares(loads[0]).set_index("type")
    assert shares.loc["image", "bytes"] == 12_000
    assert shares.loc["image", "h2"] == 100


@pytest.mark.parametrize("name", ["streams_chart", "multiplexing_chart", "film_chart"])
def test_without_loads_there_is_nothing_to_show(name):
    with pytest.raises(MetricError, match="there is nothing to show; give page loads"):
        getattr(qb.plots, name)({})


@pytest.mark.parametrize("name", ["streams_chart", "multiplexing_chart", "film_chart"])
def test_a_load_without_streams_or_screenshots_is_named(loads: list[xr.Dataset], name):
    """As those of Firefox, and those that ended early."""
    bare = loads[0].drop_vars(["chunk_resource", "screenshot_time_s"])
    with pytest.raises(MetricError, match=r"mine is no complete page load with .*, as Chromium's"):
        getattr(qb.plots, name)({"whole": loads[0], "mine": bare})


def test_objects_pages_and_times_are_not_taken_for_each_other(loads: list[xr.Dataset]):
    with pytest.raises(MetricError, match="no load of an object; pages are for page_table"):
        qb.metrics.web_table(loads)
    with pytest.raises(MetricError, match="'page_load' is no time of a page; choose from page_l"):
        qb.metrics.median_page_load(loads, "page_load")


def test_a_run_without_a_page_is_refused():
    with pytest.raises(MetricError, match="this run is no page load"):
        page_table([xr.Dataset()])


@pytest.mark.slow
def test_all_charts_are_valid_vega_lite(loads: list[xr.Dataset]):
    table, pair = page_table(loads), {"h2": loads[0], "h3": loads[3]}
    plots = qb.plots
    charts = [
        plots.page_differences_chart(table),
        plots.page_times_chart(table),
        plots.main_image_chart(table),
        plots.streams_chart(pair),
        plots.multiplexing_chart(pair),
        plots.film_chart(pair),
    ]
    texts = [json.dumps(chart.to_dict()) for chart in charts]
    assert "\\u221220" in texts[0]  # the number in the cell
    assert texts[5].count("data:image/jpeg;base64,") == 4
    with pytest.raises(MetricError, match="no setting has two loads of each protocol"):
        plots.page_differences_chart(table[table.seed == 1])


def test_another_table_is_refused_by_name(loads: list[xr.Dataset]):
    table = page_table(loads)
    plots, other = qb.plots, page_differences(table)
    words = r"the table lacks protocol, .*; give that of qb\.metrics\.page_table"
    for draw in (plots.page_differences_chart, plots.page_times_chart, plots.main_image_chart):
        with pytest.raises(MetricError, match=words):
            draw(other)
    words = r"the table lacks object_bytes, .*; give that of qb\.metrics\.web_table"
    for draw in (plots.web_objects_chart, plots.client_consistency_chart):
        given = [table] if draw is plots.client_consistency_chart else [table, table]
        with pytest.raises(MetricError, match=words):
            draw(*given, base_rtt_ms=15)
