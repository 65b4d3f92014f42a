"""The controllers in Python: their formulas by hand, their filters, BBR on a path of arithmetic,
and each of them, with its knobs, in the guest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np
import pytest
import xarray as xr
from aioquic.quic.packet import QuicPacketType
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.tls import Epoch
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.stacks.cca.bbr import HIGH_GAIN, Bbr
from qbkit.stacks.cca.cubic import Cubic, friendly_alpha
from qbkit.stacks.cca.filters import MinRtt, WindowedMax
from qbkit.stacks.cca.hystart import HyStart
from qbkit.stacks.cca.knobs import KNOBS, Knobs, read_knobs
from qbkit.stacks.cca.pacer import RatePacer
from qbkit.stacks.cca.reno import Reno
from qbkit.stacks.cca.window import WindowController, emulated_beta

PACKET_BYTES = 1000


def packet(number: int, sent_s: float) -> QuicSentPacket:
    return QuicSentPacket(
        epoch=Epoch.ONE_RTT,
        in_flight=True,
        is_ack_eliciting=True,
        is_crypto_packet=False,
        packet_number=number,
        packet_type=QuicPacketType.ONE_RTT,
        sent_time=sent_s,
        sent_bytes=PACKET_BYTES,
    )


# Formulas


@pytest.mark.parametrize(
    ("flows", "beta", "alpha"),
    [(1, 0.7, 0.9 / 1.7), (2, 0.85, 1.8 / 1.85)],  # 3·1·0.3/1.7; 3·4·0.15/1.85
)
def test_cubic_of_n_flows(flows: int, beta: float, alpha: float) -> None:
    controller = Cubic(Knobs(emulated_flows=flows), max_datagram_size=PACKET_BYTES)
    assert controller.beta == pytest.approx(beta)
    assert controller.alpha == pytest.approx(alpha)
    assert friendly_alpha(flows, beta) == pytest.approx(alpha)


def test_beta_is_that_of_one_flow() -> None:
    assert emulated_beta(2, 0.5) == 0.75
    assert Reno(Knobs(beta=0.7), max_datagram_size=1000).beta == 0.7
    assert Reno(Knobs(beta=0.7, emulated_flows=3), max_datagram_size=1000).beta == 2.7 / 3


@pytest.mark.parametrize("flows", [1, 2, 5])
def test_reno_grows_by_n_packets_a_round(flows: int) -> None:
    controller = Reno(
        Knobs(emulated_flows=flows, initial_window_packets=100), max_datagram_size=PACKET_BYTES
    )
    lose(controller, 1.0)
    window = controller.congestion_window
    acknowledge(controller, range(window // PACKET_BYTES), 1.1)
    grown = controller.congestion_window - window
    assert grown == pytest.approx(flows * PACKET_BYTES, rel=0.06)  # the window grows meanwhile


def test_cubic_is_back_at_its_peak_after_k() -> None:
    # K = ((1 − 0.7)·100/0.4)^⅓ = 4.217 s; the Reno-friendly window has 70 + 0.53·42 by then.
    controller = Cubic(Knobs(initial_window_packets=100), max_datagram_size=PACKET_BYTES)
    lose(controller, 1.0)
    assert controller.congestion_window == 70 * PACKET_BYTES
    assert controller.ssthresh == 70 * PACKET_BYTES
    windows = {}
    for round_trip in range(1, 90):
        now = 1.0 + 0.1 * round_trip
        controller.on_rtt_measurement(now=now, rtt=0.1)
        acknowledge(controller, range(controller.congestion_window // PACKET_BYTES), now)
        windows[round_trip] = controller.congestion_window / PACKET_BYTES
    assert windows[42] == pytest.approx(100, abs=0.5)
    # As far beyond the peak as it was below: W(2K) = W_max + 0.3 W_max.
    assert windows[84] == pytest.approx(130, rel=0.03)


def test_cubic_converges_fast_below_its_last_peak() -> None:
    controller = Cubic(Knobs(initial_window_packets=100), max_datagram_size=PACKET_BYTES)
    lose(controller, 1.0)
    assert controller._w_max == 100 * PACKET_BYTES
    lose(controller, 2.0)  # at 70 packets
    assert controller._w_max == pytest.approx(0.85 * 70 * PACKET_BYTES)


@pytest.mark.parametrize("kind", [Cubic, Reno])
def test_one_cut_a_round_trip(kind: type[WindowController]) -> None:
    controller = kind(Knobs(initial_window_packets=100), max_datagram_size=PACKET_BYTES)
    for number in range(3):
        controller.on_packet_sent(packet=packet(number, 0.5))
    controller.on_packets_lost(now=1.0, packets=[packet(0, 0.5)])
    cut = controller.congestion_window
    controller.on_packets_lost(now=1.01, packets=[packet(1, 0.5)])
    controller.on_packet_acked(now=1.02, packet=packet(2, 0.5))
    assert controller.congestion_window == cut  # no growth by what was sent before the cut
    assert (controller.lost_packets, controller.bytes_in_flight) == (2, 0)


def test_hystart_leaves_when_a_round_is_an_eighth_longer() -> None:
    hystart = HyStart()
    rounds = [(0.050, False), (0.056, False), (0.057, True)]
    for number, (rtt_s, over) in enumerate(rounds):
        hystart.on_acked(packet(number, float(number)), now=number + 0.5)
        ends = [hystart.is_over(rtt_s, window_packets=20) for _ in range(8)]
        assert ends == [False] * 7 + [over]


def lose(controller: WindowController, now: float) -> None:
    lost = packet(0, now - 0.1)
    controller.on_packet_sent(packet=lost)
    controller.on_packets_lost(now=now, packets=[lost])


def acknowledge(controller: WindowController, numbers: range, now: float) -> None:
    for number in numbers:
        one = packet(number, now - 0.05)
        controller.on_packet_sent(packet=one)
        controller.on_packet_acked(now=now, packet=one)


# Filters


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e9)), min_size=1, max_size=60))
def test_windowed_max_is_the_max_of_the_window(steps: list[tuple[int, float]]) -> None:
    found, seen, at = WindowedMax(10), [], 0
    for step, value in steps:
        at += step
        seen.append((at, value))
        found.update(at, value)
        assert found.value == max(v for t, v in seen if t >= at - 10)


@given(st.lists(st.tuples(st.floats(0, 4), st.floats(0.001, 1)), min_size=1, max_size=60))
def test_min_rtt_is_replaced_when_it_is_ten_seconds_old(steps: list[tuple[float, float]]) -> None:
    found, now, best, best_s = MinRtt(), 0.0, math.inf, 0.0
    for step, rtt_s in steps:
        now += step
        old = now > best_s + 10 and best < math.inf
        assert found.update(rtt_s, now) == old
        if old or rtt_s < best:
            best, best_s = rtt_s, now
        assert (found.value_s, found.found_s) == (best, best_s)


@given(st.floats(1e4, 1e8), st.lists(st.floats(0, 0.01), max_size=200))
def test_the_pacer_keeps_its_rate(rate_bytes_per_s: float, waits_s: list[float]) -> None:
    pacer, now, sent = RatePacer(max_datagram_size=1000), 0.0, 0
    pacer.rate_bytes_per_s = rate_bytes_per_s
    for wait_s in waits_s:
        now += wait_s
        for _ in range(100):
            if pacer.next_send_time(now) is None:
                pacer.update_after_send(now)
                sent += 1
    # one at the start, those of the time, and of the millisecond of lateness made good
    assert (sent - 1) * 1000 <= rate_bytes_per_s * (now + 0.001) * (1 + 1e-9) + 1e-3


# BBR on a link of 10 Mbit/s and 100 ms with a queue without end

RATE_BYTES_PER_S = 10e6 / 8
RTT_S = 0.1
PRODUCT_BYTES = RATE_BYTES_PER_S * RTT_S


def path(controller: Bbr, duration_s: float) -> Iterator[tuple[float, Bbr]]:
    """The time and the controller after every ACK; every packet is acknowledged."""
    acks: list[tuple[float, int, QuicSentPacket]] = []
    now, number, free_s = 1.0, 0, 0.0
    controller.on_rtt_measurement(now=now, rtt=RTT_S)  # the handshake's
    while now < 1 + duration_s:
        wait_s = controller.pacer.next_send_time(now)
        if controller.bytes_in_flight + PACKET_BYTES > controller.congestion_window:
            wait_s = math.inf
        if wait_s is None:
            one = packet(number, now)
            number += 1
            controller.on_packet_sent(packet=one)
            controller.pacer.update_after_send(now)
            free_s = max(free_s, now + RTT_S / 2) + PACKET_BYTES / RATE_BYTES_PER_S
            heapq.heappush(acks, (free_s + RTT_S / 2, number, one))
            continue
        if acks and acks[0][0] <= wait_s:
            now, _, one = heapq.heappop(acks)
            controller.on_packet_acked(now=now, packet=one)
            controller.on_rtt_measurement(now=now, rtt=now - (one.sent_time or 0))
            controller.on_ack_end(now=now)
            yield now - 1, controller
        else:
            now = wait_s


def bbr(**knobs: float) -> Bbr:
    return Bbr(Knobs(**knobs), max_datagram_size=PACKET_BYTES)  # type: ignore[arg-type]


def test_bbr_goes_through_its_states() -> None:
    states: list[str] = []
    gains, windows = set(), []
    for _, controller in path(bbr(), 8):
        if not states or states[-1] != controller.state:
            states.append(controller.state)
        if controller.state == "probe_bw":
            gains.add(controller.pacing_gain)
            windows.append(controller.congestion_window / PACKET_BYTES)
    assert states == ["startup", "drain", "probe_bw"]
    assert gains == {1.25, 0.75, 1.0}
    # 2 BDP, three bursts of two packets, and what comes aggregated
    assert np.median(windows) == pytest.approx(2 * PRODUCT_BYTES / PACKET_BYTES + 6, rel=0.1)
    assert controller.bandwidth.value == pytest.approx(RATE_BYTES_PER_S, rel=0.01)
    assert controller.min_rtt.value_s == pytest.approx(RTT_S, rel=0.01)


def test_startup_doubles_each_round_and_ends_three_rounds_after_the_last_growth() -> None:
    sent_at = {t: c.congestion_window for t, c in path(bbr(), 0.45) if c.state == "startup"}
    # 10 packets, then 20, 40, 80: each ACK lets one more go.
    for round_trip, packets in ((1, 20), (2, 40), (3, 80)):
        window = max(w for t, w in sent_at.items() if t < (round_trip + 1) * RTT_S)
        assert window / PACKET_BYTES == pytest.approx(packets, rel=0.15)


def test_startup_paces_by_two_over_log_two() -> None:
    assert pytest.approx(2.885, abs=1e-3) == HIGH_GAIN
    controller = bbr()
    controller.on_rtt_measurement(now=1.0, rtt=RTT_S)
    first = 10 * PACKET_BYTES / RTT_S * HIGH_GAIN * 0.99
    assert controller.pacer.rate_bytes_per_s == pytest.approx(first)


@pytest.mark.parametrize("percent", [80, 100, 120])
def test_the_pacing_gain_scales_every_rate(percent: float) -> None:
    for now, controller in path(bbr(pacing_gain_percent=percent), 4):
        if now > 3:
            rate = controller.bandwidth.value * controller.pacing_gain * 0.99 * percent / 100
            assert controller.pacer.rate_bytes_per_s == pytest.approx(rate)


def test_probe_rtt_lasts_200_ms_with_four_packets_and_comes_back() -> None:
    times = [t for t, c in path(bbr(), 24) if c.state == "probe_rtt"]
    gaps = np.flatnonzero(np.diff(times) > 1)
    episodes = np.split(np.array(times), gaps + 1)
    assert len(episodes) == 2
    for episode in episodes:
        assert 0.2 < episode[-1] - episode[0] < 0.2 + 3 * RTT_S
    # ten seconds from the end of the first, when the minimum's clock is set anew
    assert episodes[1][0] - episodes[0][-1] == pytest.approx(10, abs=0.1)
    windows = [c.congestion_window for _, c in path(bbr(), 10.4) if c.state == "probe_rtt"]
    assert min(windows) == 4 * PACKET_BYTES


def test_a_first_rtt_of_10_ms_stops_startup_on_a_path_of_100_ms() -> None:
    good, bad = bbr(), bbr(first_rtt_ms=10)
    for controller in (good, bad):
        list(path(controller, 5))
    # Window 2.885·bw·10 ms: less than what is in flight; three rounds, and the pipe seems full.
    assert good.bandwidth.value > 0.98 * RATE_BYTES_PER_S
    assert bad.bandwidth.value < 0.5 * RATE_BYTES_PER_S
    assert bad.state == "probe_bw"
    # ... until the minimum is ten seconds old.
    late = bbr(first_rtt_ms=10)
    list(path(late, 13))
    assert late.min_rtt.value_s == pytest.approx(RTT_S, rel=0.05)


def test_recovery_conserves_packets_for_a_round_and_restores_the_window() -> None:
    controller = bbr()
    list(path(controller, 3))
    before, now = controller.congestion_window, 5.0
    for number in range(20):
        controller.on_packet_sent(packet=packet(10_000 + number, now))
    controller.on_packet_acked(now=now + 0.1, packet=packet(10_001, now))
    controller.on_packets_lost(now=now + 0.1, packets=[packet(10_000, now)])
    controller.on_ack_end(now=now + 0.1)
    assert controller.congestion_window == controller.bytes_in_flight + PACKET_BYTES
    again = packet(20_000, now + 0.1)
    controller.on_packet_sent(packet=again)
    controller.on_packet_acked(now=now + 0.2, packet=again)
    controller.on_ack_end(now=now + 0.2)
    # ... less the two packets that a phase of probing has more.
    assert controller.congestion_window >= before - 2 * PACKET_BYTES


# Knobs


def test_knobs_are_read_and_named() -> None:
    words = ["emulated_flows=2", "beta=0.6", "pacing=false", "initial_window_packets=32"]
    assert read_knobs(words, "cubic") == Knobs(
        emulated_flows=2, beta=0.6, pacing=False, initial_window_packets=32
    )
    assert read_knobs(["first_rtt_ms=10"]).first_rtt_ms == 10  # a receiver takes all
    assert set(KNOBS) | {"qlog"} == set(stacks.get("qbkit").options)


@pytest.mark.parametrize(
    ("controller", "options", "sentence"),
    [
        ("bbr", {"beta": 0.7}, "qbkit:bbr has no option beta; supported: ack_every_packets, first"),
        ("reno", {"first_rtt_ms": 10}, "qbkit:reno has no option first_rtt_ms; supported: "),
        ("cubic", {"beta": 1.5}, "the option beta is 1.5; it must be a number from 0.05 to 0.95"),
        ("cubic", {"beta": "nan"}, "the option beta is nan; it must be a number"),
        ("cubic", {"emulated_flows": 0}, "emulated_flows is 0; it must be a whole number from 1"),
        ("cubic", {"emulated_flows": 1.5}, "emulated_flows is 1.5; it must be a whole number"),
        ("cubic", {"pacing": "maybe"}, "the option pacing is maybe; it must be true or false"),
        ("cubic", {"alpha": 1}, "qbkit has no option alpha; supported: "),
    ],
)
def test_what_cannot_be_is_one_sentence(
    controller: str, options: dict[str, object], sentence: str
) -> None:
    flow = qb.Flow("qbkit", controller, options=options)
    with pytest.raises(SpecError, match=sentence):
        qb.Experiment(flows=[flow], duration_s=1).run()


# In the guest


def alone(
    name: str,
    duration_s: float,
    rate_mbps: float = 20,
    rtt_ms: float = 50,
    buffer_bdp: float = 1,
    **options: object,
) -> xr.Dataset:
    link = qb.Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=buffer_bdp)
    flow = qb.Flow(*name.split(":"), options=options)
    return qb.Experiment(bottleneck=link, flows=[flow], duration_s=duration_s, seed=1).run()


@pytest.mark.guest
def test_bbr_alone_is_like_the_kernels() -> None:
    ours, kernel = (alone(f"{stack}:bbr", 8).sel(time=slice(2, None)) for stack in ("qbkit", "tcp"))
    for run in (ours, kernel):
        assert run.throughput_mbps.mean() > 19
    delays_ms = [float(run.queue_delay_ms.mean()) for run in (ours, kernel)]
    assert delays_ms[0] == pytest.approx(delays_ms[1], abs=3)  # of 50 that the buffer holds
    assert float(ours.cwnd_bytes.median()) == pytest.approx(float(kernel.cwnd_bytes.median()), 0.1)
    assert float(ours.delivery_rate_mbps.median()) == pytest.approx(20, 0.05)


@pytest.mark.guest
def test_bbr_probes_the_rtt_every_ten_seconds() -> None:
    run = alone("qbkit:bbr", 23, rate_mbps=3)
    state = run.sample_state.values
    times_s = run.sample_time_s.values[state == 7]
    begins_s = times_s[np.flatnonzero(np.diff(times_s, prepend=-9) > 1)]
    assert len(begins_s) == 2
    assert np.diff(begins_s)[0] == pytest.approx(10.3, abs=0.4)


@pytest.mark.guest
def test_a_scaled_gain_fills_the_queue() -> None:
    usual, scaled = (
        alone("qbkit:bbr", 5, rate_mbps=10, pacing_gain_percent=percent).sel(time=slice(2, None))
        for percent in (100, 120)
    )
    assert scaled.queue_delay_ms.mean() > 3 * usual.queue_delay_ms.mean()
    ratio = scaled.pacing_rate_mbps.median() / usual.pacing_rate_mbps.median()
    assert float(ratio) == pytest.approx(1.2, rel=0.05)


@pytest.mark.guest
def test_a_false_first_rtt_slows_the_start() -> None:
    good, bad = (
        alone("qbkit:bbr", 4, rate_mbps=10, rtt_ms=100, **knob).throughput_mbps.sel(
            time=slice(1, None)
        )
        for knob in ({}, {"first_rtt_ms": 10})
    )
    assert good.mean() > 9
    assert bad.mean() < 5


@pytest.mark.guest
@pytest.mark.parametrize(("flows", "beta"), [(1, 0.7), (2, 0.85)])
def test_emulated_flows_show_in_the_window_after_a_loss(flows: int, beta: float) -> None:
    run = alone("qbkit:cubic", 10, rate_mbps=10, emulated_flows=flows)
    window = run.sample_cwnd_bytes.values
    cuts = window[1:] / window[:-1]
    cuts = cuts[cuts < 0.95]
    assert len(cuts) >= 1
    assert np.median(cuts) == pytest.approx(beta, abs=0.02)


@pytest.mark.guest
def test_acks_become_fewer() -> None:
    for every in (2, 10):
        run = alone("qbkit:reno", 4, rate_mbps=10, ack_every_packets=every)
        assert run.sizes["ack"] / run.sizes["packet"] == pytest.approx(1 / every, rel=0.2)
