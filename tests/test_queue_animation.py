"""The queue, packet by packet: the packets in it are those that have arrived and not left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic import synthetic_run
from test_plots_browser import browser, opened, settled

import qbkit as qb
from qbkit import plots
from qbkit.errors import MetricError
from qbkit.plots.flows.queue_animation import _bytes_at
from qbkit.studies.evaluation.case_pages import packets_at

__all__ = ["browser"]  # a fixture, used by its name

SECOND = Path(__file__).parents[1] / "data" / "start" / "one-second.nc"
VIEW = "document.querySelector('.qbkit-chart').vegaView"
TILES = f"""() => {{
    const found = [];
    const walk = (item) => {{
        const d = item.datum;
        if (d && d.ahead !== undefined && item.width !== undefined)
            found.push([d.label, d.bytes, d.ahead, d.out_ms]);
        (item.items || []).forEach(walk);
    }};
    walk({VIEW}.scenegraph().root);
    return found;
}}"""


def test_the_length_of_the_queue_is_what_arrived_and_did_not_leave():
    # Packets of 1,000, 500 and 200 B: in at 0, 1, 5 ms, out at 4, 6, 9 ms.
    columns = ([0.0, 1.0, 5.0], [4.0, 6.0, 9.0], [1000.0, 500.0, 200.0])
    found = _bytes_at(np.array([0.5, 2, 4.5, 5.5, 7, 10]), *map(np.array, columns))
    assert found.tolist() == [1000, 1500, 500, 700, 200, 0]


def test_a_packet_that_the_path_holds_is_not_in_the_queue():
    run = qb.load_run(SECOND)
    held = run.assign(
        packet_left_s=run.packet_departure_s, packet_departure_s=run.packet_departure_s + 1
    )
    charts = [plots.queue_animation_chart(each, from_s=6).to_dict() for each in (run, held)]
    assert charts[0]["datasets"] == charts[1]["datasets"]
    assert packets_at(held, 6).equals(packets_at(run, 6))


def test_bad_input_is_one_sentence():
    run = qb.load_run(SECOND)
    with pytest.raises(MetricError, match="no packet is in the queue from 20 s to 21 s"):
        plots.queue_animation_chart(run, from_s=20)
    for span in (0, -1, float("nan")):
        with pytest.raises(MetricError, match="give a span above 0"):
            plots.queue_animation_chart(run, from_s=6, seconds=span)
    with pytest.raises(MetricError, match="the run has no packets"):
        series = [n for n in synthetic_run(duration_s=12) if not str(n).startswith("packet_")]
        plots.queue_animation_chart(synthetic_run(duration_s=12)[series], from_s=1)


@pytest.mark.browser
@pytest.mark.slow
def test_tiles_are_the_packets_in_the_queue_and_play_moves_the_time(browser, tmp_path):
    run = qb.load_run(SECOND)
    arrived, left = run.packet_time_s.values, run.packet_departure_s.values
    chart = plots.queue_animation_chart(run, from_s=6)
    with opened(browser, plots.save_chart(chart, tmp_path / "queue.html")) as page:
        for at_s in (6.0, 6.31, 6.7):
            page.evaluate(f"{VIEW}.signal('at_ms', {(at_s - 6) * 1e3}).runAsync().then(() => null)")
            settled(page)
            inside = (arrived <= at_s) & (at_s < left)
            tiles = sorted(page.evaluate(TILES), key=lambda tile: tile[3])
            assert len(tiles) == inside.sum() > 40
            sizes = run.packet_size_bytes.values[inside][np.argsort(left[inside], kind="stable")]
            assert [tile[2] for tile in tiles] == np.cumsum(sizes).tolist()
        page.check(".vega-bind input[type=checkbox]")
        page.wait_for_function(f"{VIEW}.signal('at_ms') > 710", timeout=20_000)
        page.uncheck(".vega-bind input[type=checkbox]")
        stopped = page.evaluate(f"{VIEW}.signal('at_ms')")
        page.wait_for_timeout(300)
        assert page.evaluate(f"{VIEW}.signal('at_ms')") == stopped
