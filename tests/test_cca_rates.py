"""Controllers that learn their rate (PCC, the delay-based one) and QUIC-DC, against theory."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_path import PACKET_BYTES, SimulatedPath, ack, make

import qbkit as qb
from qbkit.cca.builtin.delay import Delay
from qbkit.cca.builtin.pcc_allegro import PccAllegro, agreed_direction
from qbkit.cca.builtin.pcc_vivace import Ascent, PccVivace, confidence
from qbkit.cca.builtin.quic_dc import Bandwidth, QueueingDelay, QuicDc
from qbkit.cca.builtin.reno import Reno
from qbkit.cca.events import Packet
from qbkit.cca.monitor_intervals import MonitorInterval

MBIT = 125_000


def interval(
    sent_mbit: float, lost_mbit: float = 0.0, gradient: float = 0.0, length_s: float = 1.0
) -> MonitorInterval:
    """Known by hand: an RTT of 100 ms that grows by the gradient."""
    return MonitorInterval(
        start_s=0.0,
        duration_s=length_s,
        first_number=0,
        is_trial=True,
        last_number=9,
        sent_packets=10,
        sent_bytes=round(sent_mbit * MBIT),
        acked_bytes=round((sent_mbit - lost_mbit) * MBIT),
        lost_bytes=round(lost_mbit * MBIT),
        rtts=[(at_s, 0.1 + gradient * at_s) for at_s in (0.0, 0.25, 0.5, 1.0)],
        end_s=length_s,
    )


# Monitor intervals


def test_an_interval_by_hand() -> None:
    # 5 Mbit in 0.5 s are 10 Mbit/s, of which a fifth is lost.
    found = interval(5, lost_mbit=1, gradient=0.02, length_s=0.5)
    assert found.rate_mbps == pytest.approx(10)
    assert found.throughput_mbps == pytest.approx(8)
    assert found.loss_rate == pytest.approx(0.2)
    assert found.rtt_gradient == pytest.approx(0.02)
    assert found.mean_rtt_s == pytest.approx(0.1 + 0.02 * 1.75 / 4)


def test_an_interval_is_known_when_a_later_packet_shows_its_losses() -> None:
    found = interval(1)
    found.acked_bytes = 0
    assert not found.is_known(newest_number=11)
    assert found.is_known(newest_number=12)
    found.end_s = None
    assert not found.is_known(newest_number=99)


# PCC Allegro


def test_allegro_utility_by_hand() -> None:
    allegro = make(PccAllegro)
    assert isinstance(allegro, PccAllegro)
    # No loss: T·1/(1 + e^(−5)); at 5 % loss half the throughput, less what is lost.
    assert allegro.utility(interval(10)) == pytest.approx(10 / (1 + math.exp(-5)))
    assert allegro.utility(interval(10, lost_mbit=0.5)) == pytest.approx(9.5 / 2 - 0.5)
    assert allegro.utility(interval(10, lost_mbit=5)) == pytest.approx(-5)


@given(st.floats(1, 100), st.floats(1.0, 1.04), st.floats(1.06, 2))
def test_allegro_sends_no_more_than_five_percent_too_much(
    capacity_mbps: float, little: float, much: float
) -> None:
    # Theorem 1 of NSDI 2015: the utility rises with the rate below the capacity, and falls above.
    allegro = make(PccAllegro)
    assert isinstance(allegro, PccAllegro)

    def utility(rate_mbps: float) -> float:
        return allegro.utility(interval(rate_mbps, max(0.0, rate_mbps - capacity_mbps)))

    assert utility(0.9 * capacity_mbps) < utility(capacity_mbps)
    assert utility(much * capacity_mbps) < utility(little * capacity_mbps)


@pytest.mark.parametrize(
    ("signs", "utilities", "direction"),
    [
        ((1, 1), (2, 1, 2, 1), 1),
        ((1, -1), (2, 1, 1, 2), 1),
        ((1, -1), (1, 2, 2, 1), -1),
        ((1, 1), (2, 1, 1, 2), 0),
    ],
)
def test_allegro_goes_where_both_pairs_agree(
    signs: tuple[int, int], utilities: tuple[float, ...], direction: int
) -> None:
    assert agreed_direction(signs, utilities) == direction


# PCC Vivace


def test_vivace_utility_by_hand() -> None:
    vivace = make(PccVivace)
    assert isinstance(vivace, PccVivace)
    power = 10**0.9
    assert vivace.utility(interval(10)) == pytest.approx(power)
    assert vivace.utility(interval(10, gradient=0.02)) == pytest.approx(power - 900 * 10 * 0.02)
    assert vivace.utility(interval(10, gradient=0.009)) == pytest.approx(power)
    assert vivace.utility(interval(10, lost_mbit=1)) == pytest.approx(power - 11.35)


@given(st.floats(2, 100))
def test_vivace_utility_gradient_changes_its_sign_at_the_capacity(capacity_mbps: float) -> None:
    vivace = make(PccVivace)
    assert isinstance(vivace, PccVivace)

    def utility(rate_mbps: float) -> float:
        # Above the capacity a queue grows: dRTT/dt = x/C − 1.
        return vivace.utility(interval(rate_mbps, gradient=max(0.0, rate_mbps / capacity_mbps - 1)))

    below, above = 0.9 * capacity_mbps, 1.1 * capacity_mbps
    assert utility(1.05 * below) > utility(0.95 * below)
    assert utility(1.05 * above) < utility(0.95 * above)


def test_vivace_steps_by_hand() -> None:
    assert [confidence(n) for n in (1, 2, 3, 4, 5)] == [1, 2, 3, 5, 7]
    ascent = Ascent()
    assert ascent.change_mbps(0.1, 10) == pytest.approx(0.1)
    assert ascent.change_mbps(0.1, 10) == pytest.approx(0.2)
    # 3 times 1 is more than 5 % of 10; the boundary then widens by a tenth of the rate.
    assert ascent.change_mbps(1, 10) == pytest.approx(0.5)
    assert ascent.change_mbps(1, 10) == pytest.approx(1.5)
    # Another sign starts again from the first step.
    assert ascent.change_mbps(-1, 10) == pytest.approx(-0.5)


# On a simulated path


def steady(path: SimulatedPath, skip_s: float, duration_s: float) -> tuple[float, float]:
    """Mean queueing delay in ms, and throughput in Mbit/s, after the first seconds."""
    delays_s = [path.queue_delay_s for now_s in path.run(duration_s) if now_s >= skip_s]
    mbps = len(delays_s) * PACKET_BYTES * 8e-6 / (duration_s - skip_s)
    return 1e3 * sum(delays_s) / len(delays_s), mbps


def test_delay_keeps_the_queue_below_five_ms() -> None:
    path = SimulatedPath(make(Delay), rate_mbps=10, rtt_s=0.01, buffer_packets=100)
    queue_ms, mbps = steady(path, skip_s=3, duration_s=20)
    assert queue_ms < 5.8  # with 0.8 ms of serialisation
    assert mbps > 9.3


def test_delay_starts_slowly_until_a_loss() -> None:
    path = SimulatedPath(make(Delay), rate_mbps=10, rtt_s=0.01, buffer_packets=100)
    longest_s = max(path.queue_delay_s for _ in path.run(1))
    assert longest_s == pytest.approx(0.0808, abs=0.001)  # the peak of figure 3: a full buffer
    assert path.controller.state == "delay_control"


def test_delay_starves_no_longer_than_its_least_rate_allows() -> None:
    path = SimulatedPath(make(Delay), rate_mbps=0.4, rtt_s=0.05, buffer_packets=20)
    assert steady(path, skip_s=10, duration_s=30)[1] == pytest.approx(0.4, rel=0.05)


@pytest.mark.parametrize("kind", [PccAllegro, PccVivace])
def test_pcc_fills_the_link(kind: type[PccAllegro] | type[PccVivace]) -> None:
    random.seed(1)
    path = SimulatedPath(make(kind), rate_mbps=10, rtt_s=0.05, buffer_packets=60)
    _, mbps = steady(path, skip_s=5, duration_s=20)
    assert mbps > 8.9


def test_vivace_keeps_the_queue_short_where_allegro_does_not() -> None:
    random.seed(1)
    queues_ms = [
        steady(SimulatedPath(make(kind), rtt_s=0.05, buffer_packets=60), 5, 20)[0]
        for kind in (PccAllegro, PccVivace)
    ]
    assert queues_ms[1] < 0.5 * queues_ms[0]


def test_allegro_ignores_random_loss_that_slows_reno_down() -> None:
    random.seed(1)
    allegro, reno = (
        steady(SimulatedPath(make(kind), rtt_s=0.05, buffer_packets=60, loss=0.005), 10, 30)[1]
        for kind in (PccAllegro, Reno)
    )
    assert reno < 3.5  # Mathis: 1.22/(0.05·√0.005) packets/s are 2.8 Mbit/s
    assert allegro > 2 * reno


# QUIC-DC


def packet(number: int, sent_s: float, one_way_delay_s: float) -> Packet:
    return Packet(number, PACKET_BYTES, sent_s, one_way_delay_s)


def test_queueing_delay_by_equations_3_to_5() -> None:
    # Sent at 0, 10, 20, 30 ms; received 7 s later by a wrong clock, after 25, 28, 40 and 26 ms.
    queueing = QueueingDelay()
    found_ms = []
    for number, delay_ms in enumerate((25, 28, 40, 26)):
        queueing.update(packet(number, number / 100, 7 + delay_ms / 1e3))
        found_ms.append(1e3 * queueing.value_s)
    assert found_ms == pytest.approx([0, 3, 15, 1])


def test_bandwidth_by_equation_7() -> None:
    bandwidth = Bandwidth()
    for now_s, acked_bytes in [(0, 0), (0.1, 100_000), (0.2, 200_000), (0.3, 50_000)]:
        bandwidth.update(ack(now_s, Packet(0, acked_bytes, now_s - 0.05, 0.025), rtt_s=0.05))
    # 1, 2 and 0.5 MB/s: 0.2·1 + 0.8·2 = 1.8, 0.2·1.8 + 0.8·0.5 = 0.76.
    assert bandwidth.bytes_per_s == pytest.approx(0.76e6)


@pytest.mark.slow
@pytest.mark.parametrize("threshold_ms", [10, 20, 50])
def test_quic_dc_keeps_the_queue_below_its_threshold(threshold_ms: float) -> None:
    controller = make(QuicDc, delay_threshold_ms=threshold_ms)
    path = SimulatedPath(controller, rate_mbps=10, rtt_s=0.05, buffer_packets=250)
    peaks_s = [path.queue_delay_s for now_s in path.run(40) if now_s > 10]
    # A packet more an RTT, and one RTT until the sender hears of it; 0.8 ms of serialisation.
    assert 1e3 * max(peaks_s) == pytest.approx(threshold_ms + 0.8, abs=2)
    assert path.dropped == 0
    # Equation 6's reaction empties the queue and no more: BWE·RTTmin is the BDP.
    assert controller.ssthresh_bytes == pytest.approx(10 * MBIT * 0.0508, rel=0.02)


def test_quic_dc_does_not_take_late_acks_for_congestion() -> None:
    def slow_acks(now_s: float) -> float:
        return 0.03 * abs(now_s % 2 - 1)  # never so steep that ACKs overtake each other

    controller = make(QuicDc, delay_threshold_ms=20)
    path = SimulatedPath(controller, rtt_s=0.05, buffer_packets=250, reverse_delay_s=slow_acks)
    reductions, before = [], None
    for _ in path.run(30):
        if controller.ssthresh_bytes != before:
            before = controller.ssthresh_bytes
            reductions.append(1e3 * path.queue_delay_s)
    assert len(reductions) > 5
    assert min(reductions) > 20


def test_quic_dc_reacts_to_loss_as_westwood_does() -> None:
    # A buffer shorter than the threshold: the queue drops before the delay is noticed.
    path = SimulatedPath(make(QuicDc, delay_threshold_ms=100), rtt_s=0.05, buffer_packets=30)
    assert steady(path, 5, 40)[1] > 9.5
    assert path.dropped > 0
    assert path.controller.ssthresh_bytes == pytest.approx(10 * MBIT * 0.0508, rel=0.05)


# In the guest


@pytest.mark.guest
@pytest.mark.parametrize(
    ("name", "rate_mbps"), [("delay", 4), ("pcc-allegro", 4), ("pcc-vivace", 20), ("quic-dc", 4)]
)
def test_it_fills_a_real_link(name: str, rate_mbps: float) -> None:
    link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=40, buffer_bdp=4)
    run = qb.Experiment(bottleneck=link, flows=[f"qbkit:{name}"], duration_s=6).run()
    row = run.qb.summary().iloc[0]
    assert row.throughput_mbps > 0.625 * rate_mbps  # with its start-up
    assert 40 < row.rtt_mean_ms < 205


@pytest.mark.guest
def test_quic_dc_measures_the_queueing_delay_that_the_captures_see() -> None:
    link = qb.Bottleneck(rate_mbps=4, rtt_ms=40, buffer_bdp=4)
    run = qb.Experiment(bottleneck=link, flows=["qbkit:quic-dc"], duration_s=6).run()
    seen_ms, told_ms = run.queue_delay_ms[0], run.one_way_queueing_delay_ms[0]
    assert float(abs(seen_ms - told_ms)[20:].median()) < 4  # a frame takes 3 ms
    assert float(run.queue_delay_ms[0][20:].max()) < 20 + 15
