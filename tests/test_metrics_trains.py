"""Inter-packet gaps and packet trains, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import synthetic_run

import qbkit as qb
from qbkit.metrics.flows.trains import TRAIN_GAP_MS, PacketTrains, packet_trains, train_lengths


def test_trains_by_hand():
    # One packet, then three back to back, then two: 1, 3, 3, 3, 2, 2.
    gap_ms = np.array([0.5, 0.01, 0.09, 0.1, 0.0])
    assert train_lengths(gap_ms).tolist() == [1, 3, 3, 3, 2, 2]
    trains = PacketTrains("a", gap_ms, train_lengths(gap_ms))
    assert trains.back_to_back_share == 3 / 5
    assert [trains.train_quantile(q) for q in (1 / 6, 0.5, 1)] == [1, 2, 3]


def test_a_shorter_gap_ends_a_train_sooner():
    gap_ms = np.array([0.5, 0.01, 0.09, 0.1, 0.0])
    lengths = train_lengths(gap_ms, 0.05)
    assert lengths.tolist() == [1, 2, 2, 1, 2, 2]
    assert PacketTrains("a", gap_ms, lengths, 0.05).back_to_back_share == 2 / 5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_a_train_of_n_packets_counts_n_times(gaps_ms: list[float]):
    lengths = train_lengths(np.array(gaps_ms))
    assert len(lengths) == len(gaps_ms) + 1
    trains = 1 + sum(gap >= TRAIN_GAP_MS for gap in gaps_ms)
    assert np.sum(1 / lengths) == pytest.approx(trains)


@pytest.mark.guest
def test_a_pacing_sender_has_shorter_trains_than_one_that_does_not_pace(tmp_path: Path):
    """The kernel's BBR paces; its CUBIC, clocked by ACKs, answers each with two or more packets."""
    median = {}
    for controller in ("bbr", "cubic"):
        link = qb.Bottleneck(rate_mbps=10, rtt_ms=30, buffer_bdp=1)
        run = qb.Experiment(
            bottleneck=link, flows=[f"tcp:{controller}"], duration_s=10, seed=1, jitter_ms=0
        ).run(out=tmp_path / f"{controller}.nc")
        median[controller] = qb.metrics.packet_trains(run).train_quantile(0.5)
        with pytest.raises(qb.MetricError, match="sends 0 packets after 1000 s; 2 are needed"):
            qb.metrics.packet_trains(run, skip_start_s=1000)
    assert median["bbr"] == 1
    assert median["cubic"] >= 2


@pytest.mark.guest
def test_a_paced_sender_on_a_fast_link_sends_no_trains(tmp_path: Path):
    """The kernel's BBR paces at up to 1.25 of 100 Mbit/s: its frames are 0.097 ms apart."""
    link = qb.Bottleneck(rate_mbps=100, rtt_ms=10, buffer_bdp=1)
    run = qb.Experiment(bottleneck=link, flows=["tcp:bbr"], duration_s=5, seed=1, jitter_ms=0).run(
        out=tmp_path / "bbr.nc"
    )
    default, shorter = (qb.metrics.packet_trains(run, train_gap_ms=gap) for gap in (0.1, 0.04))
    assert default.back_to_back_share > 0.1
    assert shorter.back_to_back_share < 0.01


def test_gaps_and_times_that_cannot_be_are_one_sentence():
    for gap_ms in (-1.0, math.nan):
        with pytest.raises(qb.MetricError, match=r"train_gap_ms is .*; give 0 or more ms"):
            packet_trains(synthetic_run(), train_gap_ms=gap_ms)
    for function in (packet_trains, qb.metrics.loss_response):
        for skip_s in (-5.0, math.nan, math.inf):
            with pytest.raises(qb.MetricError, match=r"skip_start_s is .*; give 0 or more seconds"):
                function(synthetic_run(), skip_start_s=skip_s)


def test_a_run_without_packets_is_one_sentence():
    run = qb.load_run(Path(__file__).parents[1] / "data/envelope/test-seed-1.nc")
    with pytest.raises(qb.MetricError, match="the run has no packets of quic-go:cubic, from which"):
        qb.metrics.packet_trains(run)
