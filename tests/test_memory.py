"""Captures become a dataset window by window: the same packets, and memory for the result alone."""

from __future__ import annotations

from pathlib import Path

import memory
import numpy as np
import pytest
import xarray as xr

from qbkit.spec import Experiment
from qbkit.traces import build
from qbkit.traces.run import match, pcap
from qbkit.traces.run.frames import Columns, Packets
from qbkit.traces.run.match import NEVER

BYTES_PER_PACKET = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    memory.generate(made, 3000, 3.0)
    return made


def assert_same(one: Packets, other: Packets) -> None:
    for name in set(Columns._fields) - {"way"}:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for mine, theirs in zip(one.ways, other.ways, strict=True):
        assert np.array_equal(mine[one.way], theirs[other.way])


@pytest.mark.slow
@pytest.mark.parametrize("cut", [0, 1, 100, 150])
def test_windows_of_any_size_give_the_same_packets(folder, tmp_path, monkeypatch, cut):
    content = (folder / "before.pcap").read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(content[: len(content) - cut])
    seen = []
    monkeypatch.setattr(pcap.warnings, "warn", lambda words, **_: seen.append(words))
    whole = pcap.read_packets(path)
    monkeypatch.setattr(pcap, "MAX_CAPTURED", 200)
    for window in (217, 500, 1 << 14):
        monkeypatch.setattr(pcap, "WINDOW_BYTES", window)
        assert_same(pcap.read_packets(path), whole)
    assert len(whole.ways.source) == 2
    assert len(set(seen)) == bool(cut)
    assert not cut or f" of {len(content) - cut}, after {len(whole)} packets" in seen[0]


def test_damage_in_a_later_window_is_found_where_it_is(folder, tmp_path, monkeypatch):
    content = bytearray((folder / "after.pcap").read_bytes())
    at = 24 + 1000 * (16 + memory.SNAPLEN)
    content[at + 8 : at + 12] = b"\xff" * 4
    path = tmp_path / "damaged.pcap"
    path.write_bytes(content)
    monkeypatch.setattr(pcap, "MAX_CAPTURED", 200)
    for window in (500, 1 << 21):
        monkeypatch.setattr(pcap, "WINDOW_BYTES", window)
        with pytest.warns(UserWarning, match=f"at byte {at} of {len(content)}, after 1000 packets"):
            assert len(pcap.read_packets(path)) == 1000


@pytest.mark.parametrize("find", [match.match, match.match_last])
def test_matching_in_parts_is_matching(find, monkeypatch):
    rng = np.random.default_rng(1)
    key = rng.integers(0, 200, 500).astype(np.uint64)
    before_ns = np.sort(rng.integers(0, 1000, 500))
    behind_ns = np.sort(rng.integers(0, 1000, 300))
    behind_key = rng.choice(key, 300)
    whole = find(key, before_ns, behind_key, behind_ns)
    monkeypatch.setattr(match, "PART_PACKETS", 10)
    assert np.array_equal(find(key, before_ns, behind_key, behind_ns), whole)
    assert 0 < (whole != NEVER).sum() < 300


def test_a_generated_run_says_what_was_generated(folder):
    experiment = Experiment(flows=["tcp:cubic"], duration_s=3, bottleneck={"rate_mbps": 20})
    run = build(folder, experiment, {})
    assert run.sizes["packet"] == 3000 and run.sizes["ack"] == 1500
    assert run["dropped_packets"].sum() == 3
    np.testing.assert_allclose(run["queue_delay_ms"].values[0, :10], 20)
    xr.testing.assert_equal(run["sample_flow"], xr.zeros_like(run["sample_flow"]))


@pytest.mark.slow
def test_memory_per_packet_at_the_peak():
    few, many = (memory.costs(packets, packets / 400)[0] for packets in (40_000, 240_000))
    assert (many.peak_bytes - few.peak_bytes) / 200_000 <= BYTES_PER_PACKET
