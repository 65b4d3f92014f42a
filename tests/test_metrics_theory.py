"""Closed-form models against the tables of their sources, by hand, and as laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import synthetic_run
from test_metrics_flows import two_flows, with_reverse_traffic

from qbkit.errors import MetricError
from qbkit.metrics import link_share, loss_response, summary, theory

RATES = st.floats(1e-7, 0.02)
LINK = {"rate_mbps": 10, "rtt_ms": 40}


@pytest.mark.parametrize(
    ("rtt_ms", "c", "windows"),
    [
        # RFC 8312 and RFC 9438, tables 1 and 2: loss rates 10^-2 to 10^-8.
        (100, 0.4, [12, 38, 187, 1054, 5926, 33325, 187400]),
        (100, 4, [12, 59, 333, 1874, 10538, 59261, 333250]),
        (10, 0.4, [12, 38, 120, 379, 1200, 5926, 33325]),
        (10, 4, [12, 38, 120, 379, 1874, 10538, 59261]),
    ],
)
def test_cubic_as_in_the_tables_of_its_rfc(rtt_ms, c, windows):
    found = theory.cubic_window_packets(10.0 ** -np.arange(2, 9), rtt_ms, c=c)
    # The RFC rounds Reno's √1.5 = 1.2247 to 1.2.
    assert found == pytest.approx(windows, rel=0.025)


def test_reno_by_hand():
    # √(3 / (2 · 0.0096)) = √156.25; with an ACK for every second packet √78.125.
    assert theory.mathis_window_packets(0.0096) == pytest.approx(12.5)
    assert theory.mathis_window_packets(0.0096, ack_every_packets=2) == pytest.approx(8.8388, 1e-4)
    # A period from W/2 to W takes W/2 round trips and 3W²/8 packets, one of which is lost; W = 16:
    # 96 packets, on average 12 in a window.
    assert theory.aimd_window_packets(1 / 96) == pytest.approx(12)
    # AIMD(1, 0.7): 7 to 10 is 8.5 on average and 8.5 · 3 packets.
    assert theory.aimd_window_packets(1 / 25.5, beta=0.7) == pytest.approx(8.5)


def test_throughput_of_a_window_by_hand():
    # 100 packets of 1500 bytes in 50 ms are 24 Mbit/s.
    assert theory.window_throughput_mbps(100, 50) == pytest.approx(24)


def test_reno_friendly_alpha_of_cubic():
    assert theory.reno_friendly_alpha() == pytest.approx(9 / 17)


@given(p=RATES, beta=st.floats(0.05, 0.95))
def test_friendly_aimd_has_renos_window_at_every_loss_rate(p, beta):
    alpha = theory.reno_friendly_alpha(beta)
    window = theory.aimd_window_packets(p, alpha=alpha, beta=beta)
    assert window == pytest.approx(theory.mathis_window_packets(p))


@given(p=RATES, rtt_ms=st.floats(1, 1000), more=st.floats(1.01, 10))
def test_windows_shrink_with_loss_and_cubics_never_below_renos(p, rtt_ms, more):
    cubic = theory.cubic_window_packets
    assert cubic(p, rtt_ms) >= theory.mathis_window_packets(p) * (1 - 1e-12)
    assert cubic(p * more, rtt_ms) < cubic(p, rtt_ms) <= cubic(p, rtt_ms * more)


def test_bbr_by_hand():
    # 10 Mbit/s, 40 ms: 100/3 packets of 1500 bytes a BDP. X = 16, N = 2: q = 1600/3, p = 1/2 - 1/32
    # - 8·3/1600 = 0.45375; the queue drains in 0.64 s, so BBR sends nothing for 0.88 of 10 s.
    assert theory.bbr_share(16, bbr_flows=2, **LINK) == pytest.approx(0.54625 * 0.912)
    # At 1 BDP its cap is more than path and queue hold: all, but for 0.28 of 10 s.
    assert theory.bbr_share(1, **LINK) == pytest.approx(0.972)


@given(depth=st.floats(1, 64), flows=st.integers(1, 32))
def test_bbr_gets_less_of_a_deeper_queue_and_more_with_more_flows(depth, flows):
    share = theory.bbr_share(depth, bbr_flows=flows, **LINK)
    assert 0 < share < 1
    assert theory.bbr_share(depth * 1.5, bbr_flows=flows, **LINK) < share
    assert theory.bbr_share(depth, bbr_flows=flows + 1, **LINK) >= share


def test_cubic_beside_reno_in_and_out_of_its_friendly_region():
    # 10 Mbit/s and 40 ms hold 67 packets with 1 BDP of queue: Reno's region, equal shares.
    assert theory.cubic_share(1, **LINK) == pytest.approx(0.5)
    assert theory.cubic_share(1, cubic_flows=1, reno_flows=3, **LINK) == pytest.approx(0.25)
    # At 1 Gbit/s and 100 ms, 2 BDP are 25,000 packets in 300 ms.
    share = float(theory.cubic_share(2, rate_mbps=1000, rtt_ms=100))
    reno = (1 - share) * 25_000
    p = 1.5 / reno**2
    assert 1.0538 * (0.3 / p) ** 0.75 == pytest.approx(share * 25_000, rel=1e-3)
    assert share > 0.8


@given(
    depth=st.floats(0.1, 50),
    rate_mbps=st.floats(1, 10_000),
    rtt_ms=st.floats(1, 500),
    flows=st.integers(1, 20),
    others=st.integers(1, 20),
)
def test_cubic_gets_at_least_its_part_of_the_flows(depth, rate_mbps, rtt_ms, flows, others):
    found = theory.cubic_share(
        depth, rate_mbps=rate_mbps, rtt_ms=rtt_ms, cubic_flows=flows, reno_flows=others
    )
    assert theory.equal_share(flows, others) * (1 - 1e-9) <= found < 1


def test_models_take_arrays():
    depths = np.array([1.0, 2, 4])
    for model in (theory.bbr_share, theory.cubic_share):
        each = [float(model(depth, **LINK)) for depth in depths]
        assert model(depths, **LINK) == pytest.approx(each)
    assert theory.cubic_share(2, cubic_flows=np.array([1, 2]), **LINK).shape == (2,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.mathis_window_packets(0), "loss_rate must be above 0 and finite"),
        (lambda: theory.mathis_window_packets(2), "is more than 1; give a fraction, not percent"),
        (lambda: theory.mathis_window_packets([0.1, np.nan]), "finite, not nan"),
        (lambda: theory.mathis_window_packets("few"), "must be a number or an array of numbers"),
        (lambda: theory.aimd_window_packets(0.1, beta=1), "must be between 0 and 1, not 1"),
        (lambda: theory.cubic_window_packets(0.1, -5), "rtt_ms must be above 0"),
        (lambda: theory.bbr_share(0.5, **LINK), "needs a buffer of 1 BDP or more, not 0.5"),
        (lambda: theory.bbr_share(300, **LINK), "takes 12 s to drain"),
        (lambda: theory.window_throughput_mbps(9, 9, packet_bytes=-1), "packet_bytes must be ab"),
        (
            lambda: theory.cubic_window_packets([0.1, 0.2], [1, 2, 3]),
            r"loss_rate \(2,\) and rtt_ms",
        ),
        (lambda: theory.window_throughput_mbps([1, 2], [1, 2, 3]), "do not fit each other"),
        (lambda: theory.bbr_share([1, 2], bbr_flows=[1, 2, 3], **LINK), "do not fit each other"),
        (lambda: theory.cubic_share([1, 2], reno_flows=[1, 2, 3], **LINK), "do not fit each oth"),
        (
            lambda: theory.equal_share([1, 2], [1, 2, 3]),
            "do not fit each other; give arrays of one",
        ),
        (lambda: theory.cubic_share(1, rate_mbps=0, rtt_ms=10), "rate_mbps must be above 0"),
    ],
)
def test_bad_arguments_of_a_model_get_one_sentence(call, words):
    with pytest.raises(MetricError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_link_share_by_hand():
    # From 4 to 8 s both got 1000 bytes through.
    assert link_share(two_flows(), ["a"]) == pytest.approx(0.5)
    assert link_share(two_flows(), ["a", 1]) == pytest.approx(1)
    # A reverse flow shares no link with the other.
    assert link_share(with_reverse_traffic(), ["a"]) == 1
    with pytest.raises(MetricError, match="opposite directions"):
        link_share(with_reverse_traffic(), ["a", "b"])
    for flows in ([], ["a", 0]):
        with pytest.raises(MetricError, match="needs flows, each given once"):
            link_share(two_flows(), flows)


def test_the_window_follows_littles_law():
    run = synthetic_run(flows=["tcp:cubic"])
    found = loss_response(run, 0, skip_start_s=0.0)
    row = summary(run).iloc[0]
    assert found.rtt_ms == pytest.approx(row.rtt_mean_ms)
    assert found.loss_rate * 100 == pytest.approx(row.loss_percent)
    packets_per_s = row.throughput_mbps * 1e6 / 8 / 1514
    assert found.window_packets == pytest.approx(packets_per_s * found.rtt_ms / 1e3, rel=1e-6)
    with pytest.raises(MetricError, match="from which its window is computed"):
        loss_response(run.drop_dims("packet"))
