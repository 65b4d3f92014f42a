"""Speed Index against speedline, and the multiplexing of constructed pages."""

import io

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from qbkit.metrics.web.multiplexing import multiplexing, page_multiplexing
from qbkit.metrics.web.speed_index import speed_index
from qbkit.spec import Bottleneck, Experiment
from qbkit.traces.web.visual import visual_progress

K = 10_000


def order(*parts):
    """Chunks of 1000 B: ``(resource, count)`` one after another."""
    return np.concatenate([np.full(count, resource) for resource, count in parts])


def inferred(which, urgency, start=None):
    start = np.zeros(len(urgency), int) if start is None else start
    return multiplexing(which, np.full(len(which), 1000), urgency, start)


def test_one_resource_after_another_is_sequential():
    found = inferred(order((0, 100), (1, 100), (2, 100)), [3, 3, 3])
    assert found.strategy == "sequential"
    assert found.in_a_row == 1.0
    assert found.contended_bytes == 200_000  # the last one is alone


def test_turns_are_round_robin():
    found = inferred(np.tile([0, 1, 2], 100), [3, 3, 3])
    assert found.strategy == "round-robin"
    assert found.evenness > 0.98


def test_unequal_turns_are_weighted():
    # Three chunks of the first for one of the second: shares 3/4 and 1/4, half of the worst case.
    found = inferred(np.append(np.tile([0, 0, 0, 1], 100), np.full(200, 1)), [3, 3])
    assert found.strategy == "weighted"
    assert found.evenness == pytest.approx(0.5, abs=0.01)


def test_a_later_and_more_urgent_resource_that_goes_first_shows_priorities():
    # 1 is asked for when 50 chunks have come, and goes first from then on.
    found = inferred(order((0, 50), (1, 100), (0, 100)), [5, 1], [0, 50])
    assert found.strategy == "by priority"
    assert (found.telling_bytes, found.by_priority) == (100_000, 1.0)


def test_requests_in_the_order_of_their_urgency_do_not_show_priorities():
    """Yu and Benson, 8.1.1: a first-in-first-out server looked as if it obeyed priorities."""
    found = inferred(order((0, 100), (1, 100)), [1, 5])
    assert found.strategy == "sequential"
    assert found.telling_bytes == 0


def test_priorities_that_are_ignored():
    found = inferred(order((0, 150), (1, 100)), [5, 1], [0, 50])
    assert found.strategy == "sequential"
    assert found.by_priority == 0.0


def test_turns_within_one_urgency_do_not_hide_priorities():
    which = np.concatenate([np.tile([0, 1], 50), np.tile([2, 3], 100), np.tile([0, 1], 50)])
    found = inferred(which, [5, 5, 1, 1], [0, 0, 100, 100])
    assert found.strategy == "by priority"
    assert found.evenness > 0.95


def page_load(which, sent_s):
    """A chunk of 1000 B each ms; the browser wanted everything at once, at 0 s."""
    count = len(which)
    return xr.Dataset(
        {
            "resource_start_s": ("resource", np.zeros(len(sent_s))),
            "resource_sent_s": ("resource", sent_s),
            "resource_urgency": ("resource", np.full(len(sent_s), 3)),
            "chunk_time_s": ("chunk", np.arange(count) / 1e3),
            "chunk_bytes": ("chunk", np.full(count, 1000)),
            "chunk_new_bytes": ("chunk", np.full(count, 1000)),
            "chunk_resource": ("chunk", which),
            "queue_delay_ms": ("time", [0.0]),
        },
        attrs={"rtt_ms": 1.0},
    )


def test_a_server_cannot_send_what_the_browser_has_not_asked_for_yet():
    which = np.append(order((0, 101)), np.tile([1, 0], 100))
    run = page_load(which, [0.0, 0.1])
    assert (found := page_multiplexing(run)).strategy == "round-robin"
    assert found.contended_bytes == 199_000
    assert page_multiplexing(run.drop_vars("resource_sent_s")).strategy == "weighted"


def test_a_request_takes_the_longest_delay_of_a_link_that_changes():
    which = np.append(order((0, 101)), np.tile([1, 0], 100))
    run = page_load(which, [0.0, 0.0])
    assert page_multiplexing(run).strategy == "weighted"
    link = Bottleneck(rtt_ms=1, buffer_packets=50, delay="0:100")
    spec = Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=1).to_json()
    found = page_multiplexing(run.assign_attrs(spec=spec, duration_s=1.0))
    assert (found.strategy, found.contended_bytes) == ("round-robin", 200_000)


def test_a_server_divides_each_connection_by_itself():
    which = np.append(np.tile([0, 2], 80), order((0, 20), (1, 100)))
    run = page_load(which, np.zeros(3)).assign(chunk_connection=("chunk", which // 2))
    assert (found := page_multiplexing(run)).strategy == "sequential"
    assert found.contended_bytes == 99_000


def test_little_contention_is_undecided():
    assert inferred(order((0, 20), (1, 20)), [3, 3]).strategy == "undecided"
    assert inferred(np.array([], int), [3, 3]).strategy == "undecided"


def test_speed_index_by_hand():
    assert speed_index([1.0, 2.0, 4.0], [50, 80, 100]) == pytest.approx(1 + 0.5 + 0.4)
    assert speed_index([0.0, 1.0, 3.0], [0, 40, 100]) == pytest.approx(1 + 2 * 0.6)
    assert np.isnan(speed_index([0.0], [0]))


def screenshots() -> list[bytes]:
    """Blocks that appear one after another on white."""
    blocks = [
        ((0, 0, 32, 32), (200, 30, 40)),
        ((32, 0, 64, 48), (20, 120, 220)),
        ((0, 32, 32, 64), (90, 90, 90)),
    ]
    image, found = Image.new("RGB", (64, 64), "white"), []
    for box, colour in [((0, 0, 0, 0), "white"), *blocks]:
        image = image.copy()
        image.paste(colour, box)
        file = io.BytesIO()
        image.save(file, "JPEG", quality=100, subsampling=0)
        found.append(file.getvalue())
    return found


def test_progress_and_index_are_those_of_speedline():
    """speedline-core 1.4.3 printed 0, 28, 71 and 100 %, and 769 ms, for these files."""
    progress = visual_progress(screenshots())
    assert progress.tolist() == [0, 28, 71, 100]
    assert speed_index([0.05, 0.3, 0.75, 1.25], progress) == pytest.approx(0.769)


def test_a_page_that_stays_white_is_complete_at_once():
    assert visual_progress(screenshots()[:1] * 2).tolist() == [100, 100]
