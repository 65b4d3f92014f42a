"""The controllers in Python: their formulas by hand, their filters, BBR on a simulated path, and
each of them, with its options, in the guest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from simulated_path import PACKET_BYTES, SimulatedPath, ack, make

import qbkit as qb
from qbkit import stacks
from qbkit.cca import LossBasedController, Settings
from qbkit.cca.builtin.bbr import HIGH_GAIN, Bbr
from qbkit.cca.builtin.cubic import Cubic, friendly_alpha
from qbkit.cca.builtin.reno import Reno
from qbkit.cca.emulated_flows import beta_of
from qbkit.cca.events import Packet
from qbkit.cca.filters import MinRtt, WindowedMax
from qbkit.cca.flight import Flight, InFlight, RttEstimate
from qbkit.cca.hystart import HyStart
from qbkit.cca.names import builtin
from qbkit.cca.options import COMMON, read_options
from qbkit.cca.pacing import CREDIT_S, Departures
from qbkit.errors import SpecError
from qbkit.stacks.base import Transfer
from qbkit.stacks.qbkit_cca import all_options

# Formulas


@pytest.mark.parametrize(
    ("flows", "beta", "alpha"),
    [(1, 0.7, 0.9 / 1.7), (2, 0.85, 1.8 / 1.85)],  # 3·1·0.3/1.7; 3·4·0.15/1.85
)
def test_cubic_of_n_flows(flows: int, beta: float, alpha: float) -> None:
    controller = make(Cubic, emulated_flows=flows)
    assert isinstance(controller, Cubic)
    assert controller.beta == pytest.approx(beta)
    assert controller.alpha == pytest.approx(alpha)
    assert friendly_alpha(flows, beta) == pytest.approx(alpha)


def test_beta_is_that_of_one_flow() -> None:
    assert beta_of({"emulated_flows": 2, "beta": None}, 0.5) == 0.75
    assert Reno(Settings(1000, {"beta": 0.7})).beta == 0.7
    assert Reno(Settings(1000, {"beta": 0.7, "emulated_flows": 3})).beta == 2.7 / 3


class Wire:
    """A controller whose packets are lost or acknowledged by hand."""

    def __init__(self, controller: LossBasedController) -> None:
        self.controller = controller
        self.flight = Flight(controller)

    @property
    def window_packets(self) -> float:
        return self.controller.window_bytes / PACKET_BYTES

    def send(self, at_s: float) -> InFlight:
        return self.flight.on_sent(PACKET_BYTES, at_s)

    def lose(self, now_s: float, *sent: InFlight) -> None:
        for one in sent or (self.send(now_s - 0.1),):
            self.flight.on_lost(one, now_s)
        self.flight.end_losses(now_s)

    def acknowledge(self, now_s: float, sent: Iterable[InFlight], rtt_s: float = 0.1) -> None:
        """Each by an ACK of its own."""
        for one in sent:
            self.flight.on_acked(one, now_s)
            self.flight.end_ack(now_s, RttEstimate(rtt_s, rtt_s, rtt_s))

    def round_trip(self, now_s: float) -> None:
        self.acknowledge(now_s, [self.send(now_s - 0.05) for _ in range(int(self.window_packets))])


def wire(kind: type[LossBasedController], **options: object) -> Wire:
    return Wire(kind(Settings(PACKET_BYTES, {"initial_window_packets": 100, **options})))


@pytest.mark.parametrize("flows", [1, 2, 5])
def test_reno_grows_by_n_packets_a_round(flows: int) -> None:
    path = wire(Reno, emulated_flows=flows)
    path.lose(1.0)
    before = path.window_packets
    path.round_trip(1.1)
    grown = path.window_packets - before
    assert grown == pytest.approx(flows, rel=0.06)  # the window grows meanwhile


def test_cubic_is_back_at_its_peak_after_k() -> None:
    # K = ((1 − 0.7)·100/0.4)^⅓ = 4.217 s; the Reno-friendly window has 70 + 0.53·42 by then.
    path = wire(Cubic)
    path.lose(1.0)
    assert path.window_packets == pytest.approx(70)
    assert path.controller.ssthresh_bytes == pytest.approx(70 * PACKET_BYTES)
    windows = {}
    for round_trip in range(1, 90):
        path.round_trip(1.0 + 0.1 * round_trip)
        windows[round_trip] = path.window_packets
    assert windows[42] == pytest.approx(100, abs=0.5)
    # As far beyond the peak as it was below: W(2K) = W_max + 0.3 W_max.
    assert windows[84] == pytest.approx(130, rel=0.03)


def test_cubic_converges_fast_below_its_last_peak() -> None:
    path = wire(Cubic)
    path.lose(1.0)
    assert path.controller._w_max == 100 * PACKET_BYTES
    path.lose(2.0)  # at 70 packets
    assert path.controller._w_max == pytest.approx(0.85 * 70 * PACKET_BYTES)


def use_little(path: Wire, from_s: float, to_s: float) -> None:
    """Five packets a round trip, and then nothing to send."""
    for at_s in np.arange(from_s, to_s, 0.1):
        sent = [path.send(at_s) for _ in range(5)]
        path.flight.on_app_limited(at_s)
        path.acknowledge(at_s + 0.05, sent)


@pytest.mark.parametrize("kind", [Cubic, Reno])
@pytest.mark.parametrize("in_slow_start", [True, False])
def test_a_window_without_use_stays(kind: type[LossBasedController], in_slow_start: bool) -> None:
    # RFC 9002, section 7.8.
    path = wire(kind)
    if not in_slow_start:
        path.lose(1.0)
    before = path.window_packets
    use_little(path, 1.1, 11)
    assert path.window_packets == before
    path.round_trip(12)
    assert path.window_packets > before


def test_cubic_does_not_count_the_time_of_a_window_without_use() -> None:
    # RFC 9438, section 5.8. Without that, K = 4.2 s would be over, and more.
    paused, steady = wire(Cubic), wire(Cubic)
    for path in (paused, steady):
        path.lose(1.0)
        path.round_trip(1.1)
    use_little(paused, 1.2, 21.1)
    for round_trip in range(10):
        paused.round_trip(21.1 + 0.1 * round_trip)
        steady.round_trip(1.2 + 0.1 * round_trip)
    assert paused.window_packets == pytest.approx(
        steady.window_packets, rel=0.03
    )  # 0.1 s of growth
    assert paused.window_packets < 90


@pytest.mark.parametrize("kind", [Cubic, Reno])
def test_one_reduction_per_round_trip(kind: type[LossBasedController]) -> None:
    path = wire(kind)
    first, second, third = (path.send(0.5) for _ in range(3))
    path.lose(1.0, first)
    reduced = path.controller.window_bytes
    path.lose(1.01, second)
    path.acknowledge(1.02, [third])
    assert (
        path.controller.window_bytes == reduced
    )  # no growth by what was sent before the reduction
    assert path.controller.state == "recovery"
    assert (path.flight.lost_packets, path.flight.bytes_in_flight) == (2, 0)
    path.acknowledge(1.2, [path.send(1.1)])
    assert path.controller.state == "congestion_avoidance"


def test_persistent_congestion_begins_slow_start_from_two_packets() -> None:
    path = wire(Reno)
    path.flight.on_persistent_congestion()
    path.lose(1.0)
    assert path.window_packets == 2
    path.acknowledge(1.2, [path.send(1.1)])
    assert (path.window_packets, path.controller.state) == (3, "slow_start")


def test_hystart_ends_slow_start_when_a_round_is_an_eighth_longer() -> None:
    hystart = HyStart()
    rounds = [(0.050, False), (0.056, False), (0.057, True)]
    for number, (rtt_s, over) in enumerate(rounds):
        sent_s = [number] + 7 * [number - 1]
        acks = [ack(number + 0.5, Packet(0, PACKET_BYTES, at_s), rtt_s) for at_s in sent_s]
        assert [hystart.is_over(one, window_packets=20) for one in acks] == [False] * 7 + [over]


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
def test_departures_keep_the_rate(rate_bytes_per_s: float, waits_s: list[float]) -> None:
    departures, now, sent = Departures(1000), 0.0, 0
    for wait_s in waits_s:
        now += wait_s
        for _ in range(100):
            if departures.next_s <= now:
                departures.on_sent(now, rate_bytes_per_s)
                sent += 1
    # one at the start, those of the time, and of the millisecond of lateness made good
    assert (sent - 1) * 1000 <= rate_bytes_per_s * (now + CREDIT_S) * (1 + 1e-9) + 1e-3


# BBR on a link of 10 Mbit/s and 100 ms with a queue without end

RATE_BYTES_PER_S = 10e6 / 8
RTT_S = 0.1
PRODUCT_BYTES = RATE_BYTES_PER_S * RTT_S


def path(controller: Bbr, duration_s: float) -> Iterator[tuple[float, Bbr]]:
    """The time and the controller after every ACK; every packet is acknowledged."""
    for at_s in SimulatedPath(controller, rate_mbps=10, rtt_s=RTT_S).run(duration_s):
        yield at_s, controller


def bbr(**options: float) -> Bbr:
    return Bbr(Settings(PACKET_BYTES, options))


def test_bbr_goes_through_its_states() -> None:
    states: list[str] = []
    gains, windows = set(), []
    for _, controller in path(bbr(), 8):
        if not states or states[-1] != controller.state:
            states.append(controller.state)
        if controller.state == "probe_bw":
            gains.add(controller.pacing_gain)
            windows.append(controller.window_bytes / PACKET_BYTES)
    assert states == ["startup", "drain", "probe_bw"]
    assert gains == {1.25, 0.75, 1.0}
    # 2 BDP, three bursts of two packets, and what comes aggregated
    assert np.median(windows) == pytest.approx(2 * PRODUCT_BYTES / PACKET_BYTES + 6, rel=0.1)
    assert controller.bandwidth.value == pytest.approx(RATE_BYTES_PER_S, rel=0.01)
    assert controller.min_rtt.value_s == pytest.approx(RTT_S, rel=0.01)


def test_startup_doubles_each_round_and_ends_three_rounds_after_the_last_growth() -> None:
    sent_at = {t: c.window_bytes for t, c in path(bbr(), 0.45) if c.state == "startup"}
    # 10 packets, then 20, 40, 80: each ACK lets one more go.
    for round_trip, packets in ((1, 20), (2, 40), (3, 80)):
        window = max(w for t, w in sent_at.items() if t < (round_trip + 1) * RTT_S)
        assert window / PACKET_BYTES == pytest.approx(packets, rel=0.15)


def test_startup_paces_by_two_over_log_two() -> None:
    assert pytest.approx(2.885, abs=1e-3) == HIGH_GAIN
    controller = bbr()
    SimulatedPath(controller, rtt_s=RTT_S)  # the handshake gives the first RTT
    first = 10 * PACKET_BYTES / RTT_S * HIGH_GAIN * 0.99
    assert controller.pacing_rate_bytes_per_s == pytest.approx(first)


@pytest.mark.parametrize("percent", [80, 100, 120])
def test_the_pacing_gain_scales_every_rate(percent: float) -> None:
    for now, controller in path(bbr(pacing_gain_percent=percent), 4):
        if now > 3:
            rate = controller.bandwidth.value * controller.pacing_gain * 0.99 * percent / 100
            assert controller.pacing_rate_bytes_per_s == pytest.approx(rate)


@pytest.mark.slow
def test_probe_rtt_lasts_200_ms_with_four_packets_and_comes_back() -> None:
    times = [t for t, c in path(bbr(), 24) if c.state == "probe_rtt"]
    gaps = np.flatnonzero(np.diff(times) > 1)
    episodes = np.split(np.array(times), gaps + 1)
    assert len(episodes) == 2
    for episode in episodes:
        assert 0.2 < episode[-1] - episode[0] < 0.2 + 3 * RTT_S
    # ten seconds from the end of the first, when the minimum's clock is reset
    assert episodes[1][0] - episodes[0][-1] == pytest.approx(10, abs=0.1)
    windows = [c.window_bytes for _, c in path(bbr(), 10.4) if c.state == "probe_rtt"]
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
    link = SimulatedPath(controller, rate_mbps=10, rtt_s=RTT_S).finish(3)
    before, now, flight = controller.window_bytes, 5.0, link.flight
    estimate = RttEstimate(RTT_S, RTT_S, RTT_S)
    lost, arrived, *_ = (flight.on_sent(PACKET_BYTES, now) for _ in range(20))
    flight.on_acked(arrived, now + 0.1)
    flight.on_lost(lost, now + 0.1)
    flight.end_ack(now + 0.1, estimate)
    assert controller.window_bytes == flight.bytes_in_flight + PACKET_BYTES
    again = flight.on_sent(PACKET_BYTES, now + 0.1)
    flight.on_acked(again, now + 0.2)
    flight.end_ack(now + 0.2, estimate)
    # ... less the two packets that a phase of probing has more.
    assert controller.window_bytes >= before - 2 * PACKET_BYTES


# Options


def test_options_are_read_and_named() -> None:
    words = ["emulated_flows=2", "beta=0.6", "pacing=false", "initial_window_packets=32"]
    read = read_options(words, builtin("cubic").all_options(), "qbkit:cubic")
    given = {"emulated_flows": 2, "beta": 0.6, "pacing": False, "initial_window_packets": 32}
    assert read == {**given, "hystart": True, "ack_every_packets": 2}
    assert set(COMMON) < set(all_options())
    assert set(all_options()) | {"qlog"} == set(stacks.get("qbkit").options)


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
        ("cubic", {"alpha": 1}, "qbkit:cubic has no option alpha; supported: "),
    ],
)
def test_bad_options_get_one_sentence(
    controller: str, options: dict[str, object], sentence: str
) -> None:
    flow = {"address": "10.2.0.1:4001", "out": "out", "duration_s": 1.0, "size_bytes": None}
    with pytest.raises(SpecError, match=sentence):
        stacks.get("qbkit").send_argv(Transfer(controller=controller, options=options, **flow))


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
        alone("qbkit:bbr", 4, rate_mbps=10, rtt_ms=100, **options).throughput_mbps.sel(
            time=slice(1, None)
        )
        for options in ({}, {"first_rtt_ms": 10})
    )
    assert good.mean() > 9
    assert bad.mean() < 5


@pytest.mark.guest
@pytest.mark.parametrize(("flows", "beta"), [(1, 0.7), (2, 0.85)])
def test_emulated_flows_show_in_the_window_after_a_loss(flows: int, beta: float) -> None:
    run = alone("qbkit:cubic", 10, rate_mbps=10, emulated_flows=flows)
    window = run.sample_cwnd_bytes.values
    factors = window[1:] / window[:-1]
    factors = factors[factors < 0.95]
    assert len(factors) >= 1
    assert np.median(factors) == pytest.approx(beta, abs=0.02)


@pytest.mark.guest
@pytest.mark.parametrize("name", ["cubic", "reno", "quic-dc", "copa", "delay"])
def test_a_window_that_video_does_not_use_stays(name: str) -> None:
    flow = qb.Flow("qbkit", name, app="rate mbps=2 fps=30")
    run = qb.Experiment(flows=[flow], duration_s=5, seed=1).run()
    # A frame has 8,000 bytes; windows had become megabytes. That of a rate holds two RTTs of it.
    assert np.nanmax(run.cwnd_bytes.values) < 80_000


@pytest.mark.guest
def test_acks_become_fewer() -> None:
    for every in (2, 10):
        run = alone("qbkit:reno", 4, rate_mbps=10, ack_every_packets=every)
        assert run.sizes["ack"] / run.sizes["packet"] == pytest.approx(1 / every, rel=0.2)
