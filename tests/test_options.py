"""Options of the stacks, in the guest: each must show in the packets of every stack that has it.

A flow runs alone for a few seconds on 20 Mbit/s and 50 ms. Packets reach the queue half an RTT
after they were sent. A client's first data follow its first packet by one RTT.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError

RTT_S = 0.050


def first_seconds(
    name: str, duration_s: float = 4.0, buffer_bdp: float = 1, **options: object
) -> xr.Dataset:
    stack, _, controller = name.partition(":")
    if not stacks.get(stack).status().ready:
        pytest.skip(stacks.get(stack).status().reason)
    link = qb.Bottleneck(rate_mbps=20, rtt_ms=1000 * RTT_S, buffer_bdp=buffer_bdp)
    flow = qb.Flow(stack, controller, options=options)
    return qb.Experiment(bottleneck=link, flows=[flow], duration_s=duration_s, seed=1).run()


def offering(option: str) -> list[str]:
    """One implementation of each stack that has the option, except external programs."""
    return [
        f"{stack.name}:{stack.surveyed()[0]}"
        for stack in stacks.all_stacks()
        if option in stack.options and not stack.source.startswith("external")
    ]


def first_flight(run: xr.Dataset) -> int:
    """Large packets in the RTT that begins with the first data."""
    time_s = run.packet_time_s.values
    large = time_s[run.packet_size_bytes.values > 600]
    begin_s = time_s[0] + 0.9 * RTT_S
    return int(((large >= begin_s) & (large < begin_s + 0.9 * RTT_S)).sum())


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("initial_window_packets"))
def test_initial_window(name: str):
    few, many = (
        first_flight(first_seconds(name, 1.0, initial_window_packets=packets))
        for packets in (10, 50)
    )
    # Paced stacks spread their window over the RTT, and ACKs of the handshake open it a little.
    assert 7 <= few <= 16
    assert 20 <= many <= 60


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("ack_every_packets"))
def test_ack_frequency(name: str):
    def acks_a_packet(every: int) -> float:
        run = first_seconds(name, ack_every_packets=every)
        return run.sizes["ack"] / run.sizes["packet"]

    assert acks_a_packet(2) == pytest.approx(1 / 2, rel=0.25)
    assert acks_a_packet(8) == pytest.approx(1 / 8, rel=0.5)


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("pmtud"))
def test_path_mtu_discovery(name: str):
    found, small = (
        int(first_seconds(name, 2.0, pmtud=on).packet_size_bytes.max()) for on in (True, False)
    )
    assert small < 1300 < 1400 < found


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("ack_frequency"))
def test_fewer_acks_on_request(name: str):
    def acks_a_packet(on: bool) -> float:
        run = first_seconds(name, ack_frequency=on)
        return run.sizes["ack"] / run.sizes["packet"]

    assert acks_a_packet(True) < 0.8 * acks_a_packet(False)


def largest_burst(run: xr.Dataset) -> int:
    """Most large packets within 10 ms, in the first 200 ms: the first round trips of slow start."""
    time_s = run.packet_time_s.values
    large = time_s[(run.packet_size_bytes.values > 600) & (time_s < 0.2)]
    return int((np.searchsorted(large, large + 0.01) - np.arange(len(large))).max())


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("pacing"))
def test_pacing(name: str):
    # quiche paces BBR only. s2n-quic sends ten packets at once, as many as an ACK acknowledges, so
    # pacing does not show with CUBIC.
    name = {"quiche:cubic": "quiche:bbr2", "s2n-quic:cubic": "s2n-quic:bbr"}.get(name, name)
    paced, bursts = (first_seconds(name, 3.0, pacing=on) for on in (True, False))
    assert largest_burst(paced) < 0.8 * largest_burst(bursts)


@pytest.mark.guest
def test_a_finer_clock_paces_in_shorter_trains():
    """lsquic's pacer acts each millisecond by default: nine full frames at 100 Mbit/s."""
    if not stacks.get("lsquic").status().ready:
        pytest.skip(stacks.get("lsquic").status().reason)
    link = qb.Bottleneck(rate_mbps=100, rtt_ms=10, buffer_bdp=1)
    usual, finer = (
        qb.Experiment(bottleneck=link, flows=[flow], duration_s=4, seed=1, jitter_ms=0).run()
        for flow in ("lsquic:bbr", "lsquic:bbr?clock_granularity_us=100")
    )
    typical = [
        qb.metrics.packet_trains(run, train_gap_ms=0.04).train_quantile(0.5)
        for run in (usual, finer)
    ]
    assert typical[0] > 6
    assert typical[1] < 3


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("hystart"))
def test_hystart_loses_less_in_slow_start(name: str):
    with_it, without = (
        int(first_seconds(name, 3.0, buffer_bdp=4, hystart=on).dropped_packets.sum())
        for on in (True, False)
    )
    assert with_it < 0.5 * without


def test_an_unknown_option_names_the_known_ones():
    flow = qb.Flow("tcp", "cubic", options={"nagle": True})
    with pytest.raises(SpecError, match="tcp has no option nagle; supported: hystart, initial_win"):
        qb.Experiment(flows=[flow], duration_s=1).run()
