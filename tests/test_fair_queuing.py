"""Detection of fair queuing: counts by hand, two flows over a simulated queue, and real ones."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from pathlib import Path

import pytest
import xarray as xr

import qbkit as qb
from qbkit.cca import Packet, Settings
from qbkit.cca.builtin.fq_detect import FqDetect
from qbkit.cca.fair_queuing import FairQueuingProbe, Tally, Verdict, loss_ratio
from qbkit.cca.flight import Flight, InFlight, RttEstimate
from qbkit.errors import MetricError, SpecError

PACKET_BYTES = 1500


# By hand


@pytest.mark.parametrize(
    ("one", "two", "ratio", "is_fair"),
    [
        # 10 Mbit/s offered 8 and 16: a fair queue gives 5 to each, a shared one 5/12 of either.
        (Tally(80, 50, 30), Tally(160, 50, 110), 2.0, True),
        (Tally(48, 20, 28), Tally(96, 40, 56), 1.0, False),
        (Tally(10, 0, 10), Tally(20, 10, 10), 0.0, False),
        (Tally(10, 5, 5), Tally(20, 0, 20), math.inf, True),
        (Tally(10, 0, 10), Tally(20, 0, 20), 1.0, False),
    ],
)
def test_loss_ratio_by_hand(one: Tally, two: Tally, ratio: float, is_fair: bool) -> None:
    assert loss_ratio(one, two) == pytest.approx(ratio)
    assert Verdict((loss_ratio(one, two),), (1, 2), (1, 1)).is_fair == is_fair


class Rounds:
    """A probe whose packets are acknowledged or lost by hand, a second after they are sent."""

    def __init__(self) -> None:
        self.probe = FairQueuingProbe()
        self.probe.start(rtt_s=1.0, window_bytes=3 * PACKET_BYTES)
        self.now_s = 0.0
        self.number = 0

    def round_trip(
        self, *, lost: tuple[int, int] = (0, 0), timeout_of: int | None = None
    ) -> tuple[float, float]:
        """Send 10 and 20 packets, of which ``lost`` are lost; return the rates of sending."""
        packets: list[list[Packet]] = [[], []]
        rates = []
        for flow, count in ((0, 10), (1, 20)):
            for _ in range(count):
                packet = Packet(self.number, PACKET_BYTES, self.now_s)
                self.number += 1
                self.probe.on_sent(flow, packet)
                packets[flow].append(packet)
            rates.append(self.probe.rate_bytes_per_s(flow))
        self.now_s += 1.0
        if timeout_of is not None:
            self.probe.on_timeout(timeout_of)
        for flow in (0, 1):
            self.probe.on_lost(flow, packets[flow][: lost[flow]])
            self.probe.on_acked(flow, packets[flow][lost[flow] :])
        return rates[0], rates[1]


def test_rates_double_every_round_trip_and_flow_two_is_twice_as_fast() -> None:
    rounds = Rounds()
    assert [rounds.round_trip() for _ in range(4)] == [
        (PACKET_BYTES * 2**k, PACKET_BYTES * 2 ** (k + 1)) for k in range(4)
    ]


def test_the_rate_rests_while_the_third_lossy_round_trip_is_awaited() -> None:
    rounds = Rounds()
    rates = [rounds.round_trip(lost=lost)[0] for lost in 3 * [(1, 1)] + [(0, 0)]]
    assert rates == [PACKET_BYTES * k for k in (1, 2, 4, 4)]


def test_the_rate_doubles_again_after_an_accidental_loss() -> None:
    rounds = Rounds()
    lost = [(1, 1), (0, 0), (1, 1), (0, 0), (0, 0), (0, 0)]
    rates = [rounds.round_trip(lost=one)[0] for one in lost]
    assert rates == [PACKET_BYTES * k for k in (1, 2, 4, 8, 8, 16)]  # it rests once


def test_the_third_round_trip_in_which_both_lose_decides() -> None:
    rounds = Rounds()
    rounds.round_trip(lost=(0, 9))  # flow 1 lost nothing
    rounds.round_trip(lost=(1, 1))
    rounds.round_trip(lost=(1, 9))
    rounds.round_trip(lost=(4, 14))  # 6/10 over 6/20
    assert rounds.probe.verdict is None  # that round trip is not over
    rounds.round_trip()
    ratios = pytest.approx(((9 / 10) / (19 / 20), (9 / 10) / (11 / 20), 2.0))
    assert rounds.probe.verdict == Verdict(ratios, (10, 20), (4, 14))
    assert rounds.probe.verdict.is_fair


def test_a_packet_sent_at_the_time_a_round_trip_begins_may_belong_to_the_one_before() -> None:
    rounds = Rounds()
    for lost in ((1, 1), (1, 1), (4, 14)):
        rounds.round_trip(lost=lost)
        rounds.now_s -= 1.0  # the clock stands still
    rounds.round_trip()
    assert rounds.probe.verdict
    assert rounds.probe.verdict.sent_packets == (10, 20)


def test_a_flow_that_hears_nothing_has_lost_everything() -> None:
    rounds = Rounds()
    rounds.round_trip(lost=(1, 1))
    rounds.round_trip(lost=(1, 1))
    rounds.round_trip(lost=(10, 10))
    rounds.probe.on_timeout(0)
    rounds.round_trip()
    verdict = rounds.probe.verdict
    assert verdict == Verdict(pytest.approx((18 / 19, 18 / 19, 0.0)), (10, 20), (10, 10))


def test_packets_that_a_timeout_takes_for_lost_count_once() -> None:
    rounds = Rounds()
    rounds.round_trip(lost=(1, 1))
    rounds.round_trip(lost=(1, 1))
    rounds.round_trip(lost=(4, 14), timeout_of=1)  # 14 are lost indeed, 6 acknowledged late
    rounds.round_trip()
    assert rounds.probe.verdict
    assert rounds.probe.verdict.lost_packets == (4, 14)
    assert rounds.probe.verdict.loss_ratio == pytest.approx(2.0)


# Two flows over a simulated queue


class Network:
    """The detector's two flows over one queue, drop-tail in packets, shared or one a flow."""

    def __init__(self, mbps: float, rtt_s: float, buffer: int, *, fair: bool, randomised: bool):
        main = FqDetect(Settings(PACKET_BYTES, {"randomised": randomised}))
        self.probe, self.controllers = main.probe, (main, main.companion())
        self.flights = [Flight(one) for one in self.controllers]
        self.rtts_s, self.rtt_s = [rtt_s, rtt_s], rtt_s
        self.packet_s = PACKET_BYTES * 8e-6 / mbps
        self.buffer, self.fair = buffer, fair
        self.queues: list[deque[tuple[int, InFlight]]] = [deque(), deque()]
        self.turns: deque[int] = deque()
        self.is_serving = False
        self.outstanding: list[dict[int, InFlight]] = [{}, {}]
        self.is_blocked = [False, False]
        self.events: list[tuple[float, int, str, int, InFlight | None]] = []
        self.order = itertools.count()
        for flight in self.flights:
            sent = flight.on_sent(PACKET_BYTES, -rtt_s, is_handshake=True)
            flight.on_acked(sent, 0.0)
            flight.end_ack(0.0, RttEstimate(rtt_s, rtt_s, rtt_s))
        main.start(0.0)
        self.later(0.0, "send", 0)
        self.later(0.0, "send", 1)

    def later(self, at_s: float, what: str, flow: int, sent: InFlight | None = None) -> None:
        heapq.heappush(self.events, (at_s, next(self.order), what, flow, sent))

    def verdict(self, until_s: float = 20.0) -> Verdict | None:
        while self.probe.verdict is None:
            now_s, _, what, flow, sent = heapq.heappop(self.events)
            if now_s > until_s:
                break
            getattr(self, what)(now_s, flow, sent)
        return self.probe.verdict

    def send(self, now_s: float, flow: int, _: None) -> None:
        flight, controller = self.flights[flow], self.controllers[flow]
        if flight.bytes_in_flight + PACKET_BYTES > controller.window_bytes:
            self.is_blocked[flow] = True
            self.later(now_s + 2 * self.rtts_s[flow] + 0.1, "time_out", flow)
            return
        sent = flight.on_sent(PACKET_BYTES, now_s)
        self.outstanding[flow][sent.packet.number] = sent
        assert controller.pacing_rate_bytes_per_s
        self.later(now_s + PACKET_BYTES / controller.pacing_rate_bytes_per_s, "send", flow)
        index = flow if self.fair else 0
        queue = self.queues[index]
        if len(queue) < self.buffer:
            if not queue:
                self.turns.append(index)
            queue.append((flow, sent))
            if not self.is_serving:
                self.serve(now_s, 0, None)

    def serve(self, now_s: float, _flow: int, _sent: None) -> None:
        """The link sends the next packet, of the queues in turn."""
        self.is_serving = bool(self.turns)
        if not self.turns:
            return
        index = self.turns.popleft()
        flow, sent = self.queues[index].popleft()
        if self.queues[index]:
            self.turns.append(index)
        self.later(now_s + self.packet_s, "serve", 0)
        self.later(now_s + self.packet_s + self.rtt_s, "acknowledge", flow, sent)

    def time_out(self, now_s: float, flow: int, _: None) -> None:
        if self.is_blocked[flow]:
            self.flights[flow].on_timeout(now_s, 1)

    def acknowledge(self, now_s: float, flow: int, sent: InFlight) -> None:
        flight, outstanding = self.flights[flow], self.outstanding[flow]
        number = sent.packet.number
        if outstanding.pop(number, None) is None:
            return
        flight.on_acked(sent, now_s)
        for lost in [n for n in outstanding if n <= number - 3]:
            flight.on_lost(outstanding.pop(lost), now_s)
        rtt_s = now_s - sent.packet.sent_s
        self.rtts_s[flow] += (rtt_s - self.rtts_s[flow]) / 8
        flight.end_ack(now_s, RttEstimate(rtt_s, self.rtts_s[flow], self.rtt_s))
        if self.is_blocked[flow]:
            self.is_blocked[flow] = False
            self.later(now_s, "send", flow)


NETWORKS = [(m, r, b) for m in (5, 50) for r in (0.01, 0.1) for b in (1, 26, 100)]


@pytest.mark.slow
@pytest.mark.parametrize("fair", [True, False])
@pytest.mark.parametrize(("mbps", "rtt_s", "buffer"), NETWORKS)
def test_simulated_queues_are_distinguished(
    mbps: float, rtt_s: float, buffer: int, fair: bool
) -> None:
    random.seed(1)
    verdict = Network(mbps, rtt_s, buffer, fair=fair, randomised=True).verdict()
    assert verdict
    assert verdict.is_fair == fair


@pytest.mark.slow
def test_regular_pacing_takes_from_one_flow_what_it_gives_to_the_other() -> None:
    # Section VII: every packet of the one flow comes just after one of the other.
    verdicts = [
        Network(mbps, rtt_s, buffer, fair=False, randomised=False).verdict()
        for mbps, rtt_s, buffer in NETWORKS
    ]
    skewed = [v for v in verdicts if v is None or not 0.5 < v.loss_ratio < 1.5]
    assert len(skewed) >= len(NETWORKS) / 3


# Real queues


def link(qdisc: str) -> qb.Bottleneck:
    rate = {"rate_mbps": 8, "rtt_ms": 20, "qdisc": qdisc}
    if qdisc == "fifo":
        return qb.Bottleneck(**rate, buffer_packets=20)
    return qb.Bottleneck(**rate, buffer_packets=10_000, qdisc_options={"flow_limit": 20})


@pytest.mark.guest
@pytest.mark.parametrize(("qdisc", "is_fair"), [("fq", True), ("fifo", False)])
def test_a_real_queue(qdisc: str, is_fair: bool) -> None:
    found = qb.detect_fair_queuing(link(qdisc))
    assert found.is_fair is is_fair
    assert found.loss_ratio == pytest.approx(2 if is_fair else 1, abs=0.45)
    assert found.sent_packets[1] == pytest.approx(2 * found.sent_packets[0], rel=0.2)
    assert repr(found).startswith(f"FairQueuing({'' if is_fair else 'no '}fair queuing: loss ratio")
    assert not found.run.qb.warnings  # packets of either connection are conserved
    if is_fair:
        guide = Path(__file__).parents[1] / "docs/howto/fair-queuing.md"
        assert f"# {found!r}\n" in guide.read_text()


@pytest.mark.guest
def test_after_the_verdict_one_connection_goes_on_with_the_controller_for_the_queue() -> None:
    run = qb.Experiment(bottleneck=link("fq"), flows=["qbkit:fq-detect"], duration_s=5).run()
    assert qb.fair_queuing_of(run).is_fair
    later = run.isel(time=run.time > 3)
    assert float(later.throughput_mbps[0].mean()) > 6.5
    assert float(later.queue_delay_ms[0].mean()) < 10


def test_another_flow_has_no_verdict() -> None:
    ds = xr.Dataset({"controller": ("flow", ["cubic"]), "label": ("flow", ["tcp:cubic"])})
    with pytest.raises(SpecError, match="flow 0 is tcp:cubic; it must be qbkit:fq-detect"):
        qb.fair_queuing_of(ds)
    for unknown in (-1, 1):
        with pytest.raises(MetricError, match=f"no flow {unknown}; its flows are: 0 'tcp:cubic'"):
            qb.fair_queuing_of(ds, flow=unknown)


def test_a_run_without_a_verdict_says_why() -> None:
    ds = xr.Dataset({"controller": ("flow", ["fq-detect"]), "label": ("flow", ["qbkit:fq-detect"])})
    found = qb.fair_queuing_of(ds)
    assert found.is_fair is None
    assert "before both flows had lost packets in 3 round trips" in repr(found)
