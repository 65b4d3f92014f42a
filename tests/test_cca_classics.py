"""Westwood+, Vegas, LEDBAT and Copa against theory on a simulated path, and in the guest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulated_path import PACKET_BYTES, SimulatedPath, make

import qbkit as qb
from qbkit.cca import WindowController
from qbkit.cca.builtin.copa import Copa
from qbkit.cca.builtin.ledbat import Ledbat
from qbkit.cca.builtin.reno import Reno
from qbkit.cca.builtin.vegas import Vegas
from qbkit.cca.builtin.westwood import Westwood
from qbkit.metrics import mathis_window_packets

PATH = {"rate_mbps": 4, "rtt_s": 0.05}
PACKETS_PER_S, BDP_PACKETS = 500, 25
LEAST_RTT_S = 0.052
"""With the 2 ms that a packet takes on the link."""


def steady(path: SimulatedPath, skip_s: float, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Window and queue in packets after every ACK that follows the first seconds."""
    rows = [
        (path.controller.window_bytes / PACKET_BYTES, path.queue_delay_s * PACKETS_PER_S)
        for now_s in path.run(duration_s)
        if now_s >= skip_s
    ]
    window, queue = np.array(rows).T
    return window, queue


def late_acks(now_s: float) -> float:
    """20 ms more on the way back, from the tenth second on."""
    return 0.02 if now_s > 10 else 0.0


def lose_one(path: SimulatedPath) -> None:
    """One packet more is sent, and declared lost."""
    path.flight.on_lost(path.flight.on_sent(PACKET_BYTES, path.now_s), path.now_s)
    path.flight.end_losses(path.now_s)


# Westwood+


@pytest.mark.parametrize("buffer_packets", [10, 25])
def test_westwood_keeps_what_the_path_holds(buffer_packets: int) -> None:
    path = SimulatedPath(make(Westwood), buffer_packets=buffer_packets, **PATH)
    window, _ = steady(path, 10, 20)
    assert path.dropped > 0
    # BWE · RTTmin, whatever the buffer, where Reno would fall to half: the link is never idle.
    assert window.min() == pytest.approx(BDP_PACKETS, rel=0.02)
    assert len(window) == pytest.approx(10 * PACKETS_PER_S, rel=0.02)


def test_westwood_filters_twice() -> None:
    controller = make(Westwood)
    assert isinstance(controller, Westwood)
    controller._filter(1000)
    assert controller.bandwidth_bytes_per_s == 1000
    controller._filter(1800)  # 1000 + 800/8, and 1000 + 100/8
    assert controller.bandwidth_bytes_per_s == pytest.approx(1012.5)
    controller._filter(1100)
    assert controller.bandwidth_bytes_per_s == pytest.approx(1012.5 + 87.5 / 8)


def test_random_losses_cost_westwood_less_than_reno() -> None:
    rates = {}
    for kind in (Westwood, Reno):
        # On the simulator's own path of 125 packets, which neither fills.
        window, _ = steady(SimulatedPath(make(kind), loss=0.005), 10, 40)
        rates[kind] = len(window)
        if kind is Reno:
            assert window.mean() == pytest.approx(mathis_window_packets(0.005), rel=0.2)
    assert rates[Westwood] > 2 * rates[Reno]


# Vegas


@pytest.mark.parametrize(("alpha", "beta"), [(2, 4), (20, 25)])
def test_vegas_keeps_alpha_to_beta_packets_in_the_queue(alpha: int, beta: int) -> None:
    path = SimulatedPath(make(Vegas, alpha_packets=alpha, beta_packets=beta), **PATH)
    window, queue = steady(path, 8, 11)
    assert path.dropped == 0
    # The RTT is floor(W) / 500 s, so W · (RTT − base) / base is W · (floor(W) / 25 − 1).
    assert alpha <= window.min() * (window.min() / BDP_PACKETS - 1)
    assert window.max() * (window.max() // 1 / BDP_PACKETS - 1) < beta + 1  # whole packets count
    assert queue.min() > 1  # the link is never idle


def test_vegas_halves_its_window_at_a_loss_and_comes_back() -> None:
    path = SimulatedPath(make(Vegas), **PATH)
    path.finish(8)
    before = path.controller.window_bytes
    lose_one(path)
    assert path.controller.window_bytes == pytest.approx(before / 2)
    # One packet a round trip: 14 packets in 0.73 s.
    path.finish(0.4)
    assert path.controller.window_bytes < 0.85 * before
    path.finish(0.6)
    assert path.controller.window_bytes == pytest.approx(before, abs=2 * PACKET_BYTES)


def test_vegas_waits_for_a_round_trip_after_recovery() -> None:
    path = SimulatedPath(make(Vegas), **PATH)
    path.finish(8)
    lose_one(path)
    halved, lost_s = path.controller.window_bytes, path.now_s
    changed_s = next(now_s for now_s in path.run(1) if path.controller.window_bytes != halved)
    # Recovery lasts a round trip of the full window, and the first adjustment follows another.
    assert 2 * LEAST_RTT_S <= changed_s + path.start_s - lost_s < 3 * LEAST_RTT_S


def test_vegas_takes_late_acks_for_a_queue() -> None:
    path = SimulatedPath(make(Vegas), reverse_delay_s=late_acks, **PATH)
    path.finish(20)
    # diff = W · 20/52 is kept between 2 and 4 whole packets, and the link two thirds idle.
    assert 2 <= path.controller.window_bytes / PACKET_BYTES * 0.02 / LEAST_RTT_S < 5


# LEDBAT


@pytest.mark.parametrize("target_ms", [20, 50])
@pytest.mark.parametrize("reverse_delay_s", [lambda _: 0.0, late_acks])
def test_ledbat_keeps_its_target_whatever_the_reverse_delay(
    target_ms: int, reverse_delay_s: Callable[[float], float]
) -> None:
    path = SimulatedPath(make(Ledbat, target_ms=target_ms), reverse_delay_s=reverse_delay_s, **PATH)
    _, queue = steady(path, 15, 20)
    # In packets of 2 ms each, of which the one that is on its way is no queue.
    assert 2 * (queue.mean() - 1) == pytest.approx(target_ms, abs=2)
    assert path.dropped == 0


def test_ledbat_grows_no_faster_than_reno() -> None:
    path = SimulatedPath(make(Ledbat))
    for now_s in path.run(3):
        assert path.controller.window_bytes / PACKET_BYTES <= 2 + now_s / 0.1 + 1


def test_ledbat_halves_once_a_round_trip() -> None:
    path = SimulatedPath(make(Ledbat, initial_window_packets=64))
    for count, left in ((3, 32), (3, 32), (1, 16)):
        for _ in range(count):
            lose_one(path)
        assert path.controller.window_bytes == pytest.approx(left * PACKET_BYTES, rel=0.02)
        path.now_s += 0.06


# Copa


@pytest.mark.parametrize("delta", [0.5, 0.25])
def test_copa_moves_between_an_empty_queue_and_two_and_a_half_over_delta(delta: float) -> None:
    path = SimulatedPath(make(Copa, delta=delta), **PATH)
    window, queue = steady(path, 10, 20)
    # NSDI '18, section 3: a triangle wave from 0 to 2.5/δ; the packet on its way comes on top.
    assert queue.min() == pytest.approx(1)
    assert 2 / delta <= queue.max() <= 2.5 / delta + 1
    assert window.mean() == pytest.approx(PACKETS_PER_S * LEAST_RTT_S + 1.4 / delta, rel=0.02)
    assert len(window) / 10 == pytest.approx(PACKETS_PER_S, rel=0.002)


def test_random_losses_do_not_matter_to_copa() -> None:
    path = SimulatedPath(make(Copa), loss=0.005, **PATH)
    window, _ = steady(path, 10, 20)
    assert window.mean() == pytest.approx(PACKETS_PER_S * LEAST_RTT_S + 2.8, rel=0.02)


@pytest.mark.parametrize(("rate_mbps", "rtt_s"), [(2, 0.02), (4, 0.02), (20, 0.05)])
def test_copa_alone_does_not_take_its_own_queue_for_anothers(rate_mbps: int, rtt_s: float) -> None:
    copa = make(Copa)
    assert isinstance(copa, Copa)
    path = SimulatedPath(copa, rate_mbps=rate_mbps, rtt_s=rtt_s)
    assert not any(copa.is_competing for now_s in path.run(15) if now_s > 3)


def test_copa_competes_while_the_queue_is_never_empty() -> None:
    path = SimulatedPath(make(Copa), reverse_delay_s=lambda s: 0.02 if 10 < s < 15 else 0.0)
    copa = path.controller
    assert isinstance(copa, Copa)
    path.finish(8)
    assert not copa.is_competing
    path.finish(5)  # since 10 s, RTTs have stayed 20 ms above the least of the last 10 s
    assert copa.is_competing
    before, rounds = copa.logged["target_packets"], copa._rounds.count
    path.finish(1)  # 1/δ grows by 1 in each round trip
    assert copa.logged["target_packets"] - before == copa._rounds.count - rounds > 5
    grown = copa.logged["target_packets"]
    lose_one(path)
    path.finish(0.15)  # and is halved once
    assert copa.logged["target_packets"] <= grown / 2 + 2
    path.finish(2)  # and then there is no queue but its own
    assert not copa.is_competing
    assert copa.logged["target_packets"] == 2


# In the guest


@pytest.mark.guest
@pytest.mark.parametrize(
    ("name", "least_ms", "most_ms"),
    # A frame takes 3 ms. Vegas keeps 2 to 4 of them, Copa up to 5, LEDBAT 50 ms.
    [("vegas", 1, 15), ("copa", 1, 18), ("ledbat", 40, 55), ("westwood", 10, 170)],
)
def test_it_fills_a_real_link_with_its_queue(name: str, least_ms: float, most_ms: float) -> None:
    link = qb.Bottleneck(rate_mbps=4, rtt_ms=40, buffer_bdp=4)
    options: dict[str, str | int | float | bool] = {"target_ms": 50} if name == "ledbat" else {}
    flow = qb.Flow("qbkit", name, options=options)
    run = qb.Experiment(bottleneck=link, flows=[flow], duration_s=10).run()
    late = run.sel(time=slice(6, 9.9))
    assert float(late.throughput_mbps[0].mean()) > 3.6
    assert least_ms < float(late.queue_delay_ms[0].mean()) < most_ms


def test_each_is_a_window_controller() -> None:
    for kind in (Westwood, Vegas, Ledbat, Copa):
        controller = make(kind)
        assert isinstance(controller, WindowController)
        assert controller.window_bytes > 0
