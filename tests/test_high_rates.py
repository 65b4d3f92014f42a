"""Gigabits per second: the link stays exact, no window limits, and memory is checked first."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qbkit import stacks
from qbkit.errors import EngineError, SpecError
from qbkit.execution import preflight
from qbkit.execution.preflight import needs, require_room
from qbkit.spec import FRAME_BYTES, Bottleneck, Experiment, Flow
from qbkit.testbed import links, memory, plan


def experiment(rate_mbps, rtt_ms, *flows, **words):
    link = Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=1)
    return Experiment(bottleneck=link, flows=flows or ["tcp:reno"], **words)


def data_of(spec):
    drivers = [stacks.get(flow.stack) for flow in spec.flows]
    return plan.make_plan(spec, drivers, "virtual", "capture").data


def test_what_path_and_queues_hold():
    # 100 Mbit/s x 80 ms = 1,000,000 bytes, and as much in each queue.
    spec = experiment(
        100, 80, Flow("tcp", "bbr", extra_rtt_ms=40), "tcp:bbr", "tcp:bbr", topology="parking_lot"
    )
    assert [spec.path_bytes(i) for i in range(3)] == [3_500_000, 2_000_000, 2_000_000]
    assert spec.most_path_bytes == 3_500_000


def test_a_path_beyond_all_windows_is_refused():
    # 10 Gbit/s x 500 ms = 625 MB, twice that with the queue.
    with pytest.raises(SpecError, match="path and queue hold 1192 MiB; the most is 1024 MiB"):
        experiment(10_000, 500)


def test_windows_and_buffers_follow_the_path():
    small, large = data_of(experiment(20, 50, "quinn:bbr")), data_of(experiment(1000, 50))
    for data in (small, large):  # 12.5 MB in path and queue at most: what there always was
        assert data["flows"][0]["window_bytes"] == 128 * 2**20
        assert data["tcp_buffer_bytes"] == 64 * 2**20
        assert data["tcp_memory_bytes"] == 2**30
    assert plan.WINDOW not in small["flows"][0]["env"]
    # 10 Gbit/s x 100 ms and its queue: 250 MB, for slow start 500 MB; the next power of two.
    wide = data_of(experiment(10_000, 100, "quinn:bbr", "ngtcp2:cubic"))
    assert wide["flows"][0]["window_bytes"] == 512 * 2**20
    assert wide["flows"][0]["env"][plan.WINDOW] == str(512 * 2**20)
    assert wide["tcp_buffer_bytes"] == 2**30
    # ngtcp2's receiver knows one window only; a run with it gets a warning.
    assert wide["flows"][1]["window_bytes"] == 128 * 2**20
    assert plan.WINDOW not in wide["flows"][1]["env"]


@pytest.mark.parametrize(
    ("rate_mbps", "rtt_ms", "blocks"),
    # 20 Mbit/s: 2.5 MB in a second and a burst of 4 x 250 kB, 2,312 frames: twice that is 4.5.
    # 100 Mbit/s: 12.5 MB and 4 x 1.25 MB are 11,559 frames; twice that fills 22.6 blocks.
    [(20, 50, 8), (100, 50, 23), (10_000, 10, 64)],
)
def test_the_captures_ring_holds_a_second_and_a_burst(rate_mbps, rtt_ms, blocks):
    assert data_of(experiment(rate_mbps, rtt_ms))["capture_blocks"] == blocks


def test_bucket_holds_one_frame_and_a_late_timer():
    def burst(rate_mbps):
        words = links.bottleneck_lines(Bottleneck(rate_mbps=rate_mbps), "virtual")[0].split()
        return int(words[words.index("burst") + 1])

    assert burst(1) == burst(20) == burst(128) == FRAME_BYTES + 16
    assert burst(10_000) == FRAME_BYTES + 1250  # 10 Gbit/s for a microsecond


def test_memory_is_checked_before_the_run(monkeypatch, tmp_path):
    long = experiment(10_000, 100, duration_s=60)
    assert memory.guest_mb(experiment(10_000, 100)) == 2048
    assert memory.guest_mb(experiment(10_000, 200)) == 6144
    # 60 s x 1.25 GB/s / 1514 B = 49.5 million frames, of 150 bytes each.
    assert needs(long).memory_bytes == pytest.approx(7.6e9, rel=0.01)
    monkeypatch.setattr(memory, "free_bytes", lambda: 4e9)

    class Usage:
        free = 1e12

    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: Usage)
    with pytest.raises(EngineError, match=r"may need 7\.6 GB of memory, but 4\.0 GB are free"):
        require_room([needs(long)], tmp_path, "virtual")
    require_room([needs(experiment(20, 50, duration_s=120))], tmp_path, "virtual")
    require_room([needs(experiment(10_000, 100, duration_s=10))], tmp_path, "virtual")


def test_free_memory_is_read():
    assert 1e7 < memory.free_bytes() < 1e15


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    """Reno alone on 10 Gbit/s, without jitter: it fills the queue after some 50 ms."""
    spec = experiment(10_000, 4, duration_s=0.15, jitter_ms=0.0)
    return spec.run(engine="virtual", out=tmp_path_factory.mktemp("fast") / "run.nc")


@pytest.mark.guest
def test_rate_of_10_gbit_is_exact(fast):
    departure_s = np.sort(fast.packet_departure_s.values)
    busy = departure_s[(departure_s > 0.05) & (departure_s < 0.09)]
    # 40 ms x 10 Gbit/s / 1514 bytes = 33,025 frames; the kernel's frame takes 1211 ns, not 1211.2.
    assert len(busy) == pytest.approx(33_025, rel=3e-4)
    # A server of constant rate: no frame is off its place by more than a late timer.
    place = np.arange(len(busy))
    line = np.polynomial.Polynomial.fit(place, busy, 1)
    assert np.abs(busy - line(place)).max() < 1.5e-6


@pytest.mark.guest
def test_delay_of_10_gbit_is_exact(fast):
    assert float(fast.min_rtt_ms.min()) == pytest.approx(4, abs=0.010)


@pytest.mark.guest
def test_buffer_of_10_gbit_is_exact(fast):
    arrival_s, departure_s = fast.packet_time_s.values, fast.packet_departure_s.values
    size = fast.packet_size_bytes.values.astype(int)
    out = np.isfinite(departure_s)
    dropped = np.flatnonzero(~out)
    assert len(dropped) > 100
    came = np.cumsum(np.where(out, size, 0))[dropped]
    order = np.argsort(departure_s[out], kind="stable")
    left = np.append(0, np.cumsum(size[out][order]))
    gone = np.searchsorted(departure_s[out][order], arrival_s[dropped], "right")
    inside = came - left[gone]
    limit = fast.attrs["queue_bytes"]
    assert limit == 5_000_000
    assert limit - FRAME_BYTES < inside.min()
    assert inside.max() <= limit


@pytest.mark.guest
def test_nothing_is_lost_of_10_gbit(fast):
    assert fast.attrs["capture_drops"] == 0
    assert json.loads(fast.attrs["warnings"]) == []


@pytest.mark.guest
def test_no_window_limits_a_long_path_of_10_gbit(tmp_path):
    # 50 MB travel and 50 MB may queue; buffers of 64 MiB gave windows of 37 MB.
    spec = experiment(10_000, 40, duration_s=0.65)
    ds = spec.run(engine="virtual", out=tmp_path / "run.nc")
    departure_s = ds.packet_departure_s.values
    bits = ds.packet_size_bytes.values[(departure_s >= 0.6) & (departure_s < 0.65)].sum() * 8.0
    assert bits / 0.05 / 1e6 == pytest.approx(10_000, rel=1e-3)
    assert json.loads(ds.attrs["warnings"]) == []
    assert ds.attrs["capture_drops"] == 0
