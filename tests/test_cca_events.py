"""What controllers receive and log: order and numbers of events, reports of arrivals, values."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from aioquic.buffer import Buffer, BufferReadError
from aioquic.quic.rangeset import RangeSet
from hypothesis import given
from hypothesis import strategies as st
from simulated_path import PACKET_BYTES, SimulatedPath, make

from qbkit.cca import Controller, WindowController
from qbkit.cca.events import Ack
from qbkit.cca.flight import Flight, RttEstimate
from qbkit.stacks.drivers.cca_flow import arrivals
from qbkit.traces.run.telemetry import columns_of, meaning, read_sender, states_of

RTT = RttEstimate(0.1, 0.1, 0.1)


class Recorder(WindowController):
    """Keeps the events that it receives."""

    uses_one_way_delay = True
    uses_ecn = True

    def __init__(self, settings) -> None:
        super().__init__(settings)
        self.heard: list[object] = []

    def on_sent(self, event) -> None:
        self.heard.append(event)

    on_ack = on_loss = on_spurious_loss = on_timeout = on_idle = on_app_limited = on_sent


def flight_of(controller: Controller) -> Flight:
    return Flight(controller)


def kinds(recorder: Recorder) -> list[str]:
    return [type(event).__name__ for event in recorder.heard]


def test_one_ack_reports_spurious_losses_then_losses_then_what_it_acknowledges() -> None:
    recorder = make(Recorder)
    flight = flight_of(recorder)
    sent = [flight.on_sent(PACKET_BYTES, 0.001 * i) for i in range(6)]
    flight.on_lost(sent[0], 0.1)
    flight.end_losses(0.1)
    recorder.heard.clear()
    for one in (sent[5], sent[4]):
        flight.on_acked(one, 0.2)
    flight.on_lost(sent[1], 0.2)
    flight.end_ack(0.2, RTT, spurious=[sent[0].packet], ecn_ce_packets=3)
    assert kinds(recorder) == ["SpuriousLoss", "Loss", "Ack"]
    spurious, loss, ack = recorder.heard
    assert [p.number for p in spurious.packets] == [0]
    assert (loss.lost_bytes, loss.bytes_in_flight) == (PACKET_BYTES, 2 * PACKET_BYTES)
    assert [p.number for p in ack.packets] == [4, 5]
    assert (ack.acked_bytes, ack.ecn_ce_packets, ack.newest_sent_s) == (2000, 3, 0.005)
    assert (ack.prior_bytes_in_flight, ack.bytes_in_flight) == (5000, 2000)


def test_idle_is_reported_before_the_next_packet() -> None:
    recorder = make(Recorder)
    flight = flight_of(recorder)
    one = flight.on_sent(PACKET_BYTES, 0.0)
    flight.on_acked(one, 0.1)
    flight.end_ack(0.1, RTT)
    flight.on_app_limited(0.1)
    flight.on_sent(PACKET_BYTES, 0.6)
    assert kinds(recorder) == ["Sent", "Ack", "AppLimited", "Idle", "Sent"]
    assert recorder.heard[3].idle_s == pytest.approx(0.5)


def test_an_ack_says_whether_there_was_nothing_to_send_since() -> None:
    recorder = make(Recorder)
    flight = flight_of(recorder)
    handshake = flight.on_sent(PACKET_BYTES, 0.0, is_handshake=True)
    before = flight.on_sent(PACKET_BYTES, 0.1)
    flight.on_app_limited(0.1)
    after = flight.on_sent(PACKET_BYTES, 0.1)
    for sent in (handshake, before, after):
        flight.on_acked(sent, 0.2)
        flight.end_ack(0.2, RTT)
    limited = [event.is_app_limited for event in recorder.heard if isinstance(event, Ack)]
    assert limited == [False, True, False]


def test_the_delivery_rate_of_a_paced_path_is_its_rate() -> None:
    recorder = make(Recorder, initial_window_packets=250)  # two bandwidth-delay products
    SimulatedPath(recorder, rate_mbps=10, rtt_s=0.1).finish(2)
    acks = [event for event in recorder.heard if isinstance(event, Ack) and event.delivery]
    assert acks[-1].delivery.rate_bytes_per_s == pytest.approx(10e6 / 8, rel=0.01)
    assert acks[-1].delivery.is_app_limited is False
    # 250 packets in flight, 125 of them in the queue: its delay is one base RTT
    assert acks[-1].rtt_s == pytest.approx(0.2, rel=0.02)
    assert acks[-1].one_way_delay_variation_s == pytest.approx(0.1, rel=0.02)


def test_a_queue_on_the_reverse_path_is_in_the_rtt_and_not_in_the_one_way_delay() -> None:
    recorder = make(Recorder, initial_window_packets=50)
    path = SimulatedPath(recorder, reverse_delay_s=lambda now_s: 0.05 if now_s > 2 else 0.0)
    path.finish(3)
    acks = [event for event in recorder.heard if isinstance(event, Ack)]
    assert acks[-1].rtt_s == pytest.approx(0.15, rel=0.02)
    assert acks[-1].one_way_delay_variation_s == pytest.approx(0.0, abs=0.001)


@given(
    st.integers(0, 2**30),
    st.lists(st.tuples(st.integers(0, 2**30), st.integers(0, 10**6)), max_size=64),
)
def test_a_report_of_arrivals_is_read_as_it_was_written(
    ce_count: int, steps: list[tuple[int, int]]
) -> None:
    at_us, arrived = 10**12, []
    for number, step_us in steps:
        at_us += step_us
        arrived.append((number, at_us))
    written = arrivals.write(arrivals.Report(ce_count, arrived))
    read = arrivals.read(Buffer(data=written))
    assert (read.ce_count, list(read.arrivals)) == (ce_count, arrived)
    with pytest.raises(BufferReadError):
        arrivals.read(Buffer(data=written[:-1]))


@pytest.mark.parametrize(("delay", "ecn", "wants"), [(0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 3)])
def test_the_transport_parameter_asks_for_what_a_controller_uses(delay, ecn, wants) -> None:
    kind = type("Kind", (Controller,), {"uses_one_way_delay": bool(delay), "uses_ecn": bool(ecn)})
    other = bytes([0x04, 0x01, 0x05])  # initial_max_data = 5
    assert arrivals.wanted(other + arrivals.parameter(kind)) == wants
    assert bool(arrivals.parameter(kind)) == bool(wants)


def test_arrivals_are_reported_once_each_and_duplicates_not_at_all() -> None:
    times = arrivals.ArrivalTimes()
    times.now_s = 1.5
    times.add(3)
    assert times.take() == [(3, 1_500_000)]
    assert times.take() == []
    assert 3 in times


def test_a_late_ack_reveals_spurious_losses() -> None:
    from qbkit.stacks.drivers.cca_flow.spurious import LostPackets

    class Sent:
        in_flight = True

        def __init__(self, number: int) -> None:
            flight = Flight(make(Recorder))
            self.packet_number, self.in_flight_record = number, flight.on_sent(number, 0.0)

    lost = LostPackets()
    lost.add([Sent(n) for n in (4, 5, 9)])
    assert lost.found_in(RangeSet([range(0, 4), range(6, 9)])) == []
    assert [p.size_bytes for p in lost.found_in(RangeSet([range(5, 10)]))] == [5, 9]
    assert lost.found_in(RangeSet([range(0, 10)])) and not lost.found_in(RangeSet([range(0, 10)]))


def test_logged_values_become_columns_with_units(tmp_path: Path) -> None:
    (tmp_path / "sender.csv").write_text("time_ns,cwnd_bytes,state\n10,1,probe\n20,2,\n30,3,up\n")
    (tmp_path / "controller.csv").write_text("time_ns,name,value\n20,bwe_mbps,7.5\n30,bwe_mbps,8\n")
    table = read_sender(tmp_path)
    assert columns_of([table]) == ["cwnd_bytes", "bwe_mbps"]
    np.testing.assert_equal(table.bwe_mbps.to_numpy(), [np.nan, 7.5, 8])
    assert meaning("bwe_mbps")[0] == "Mbit/s"
    assert [meaning(n)[0] for n in ("a_ms", "b_s", "c_bytes", "d_packets")] == ["ms", "s", "B", "1"]
    assert states_of([table])[-2:] == ["probe", "up"]


def test_true_and_false_are_logged_as_one_and_zero(tmp_path: Path) -> None:
    (tmp_path / "sender.csv").write_text("time_ns,cwnd_bytes\n10,1\n20,2\n")
    rows = "10,is_slow,True\n10,queue_ms,1.5\n20,is_slow,False\n20,queue_ms,inf\n"
    (tmp_path / "controller.csv").write_text(f"time_ns,name,value\n{rows}")
    table = read_sender(tmp_path)
    np.testing.assert_equal(table.is_slow.to_numpy(), [1, 0])
    np.testing.assert_equal(table.queue_ms.to_numpy(), [1.5, np.inf])


def test_logged_numbers_may_be_numpy_s_or_of_an_enumeration(tmp_path: Path) -> None:
    class Phase(IntEnum):
        UP = 3

    (tmp_path / "sender.csv").write_text("time_ns,cwnd_bytes\n10,1\n20,2\n")
    values = {
        "gain": np.float64(1.25),
        "low": np.float64(-1e-9),
        "phase": Phase.UP,
        "count": np.int64(7),
    }
    values |= {"is_slow": np.bool_(True)}
    rows = [f"{at},{name},{value!r}\n" for at in (10, 20) for name, value in values.items()]
    (tmp_path / "controller.csv").write_text("".join(["time_ns,name,value\n", *rows]))
    table = read_sender(tmp_path)
    for name, value in values.items():
        np.testing.assert_equal(table[name].to_numpy(), [float(value)] * 2)
