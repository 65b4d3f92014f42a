"""What a reported window says of a cause: every figure here is derived by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from simulated import BDP_PACKETS, PACKET_BYTES, RTT_S, simulate

import qbkit as qb
from qbkit.metrics.parameters import Connection, Difference, Estimate
from qbkit.metrics.parameters.connection import Load, connection_of
from qbkit.studies.probing import probing
from qbkit.studies.witness import AGREES, FRAME_BYTES, VALUES, witness

SAMPLE_S = 0.005
LINK = qb.Bottleneck(rate_mbps=12, rtt_ms=50, buffer_bdp=1)
LOSSES_S = [5.0, 10.0, 15.0, 20.0]


@pytest.fixture(scope="module")
def connection() -> Connection:
    """A window of 30 packets that loses one of them every 5 s."""
    return simulate(lose_each_s=5.0, most_packets=30, duration_s=24)


def cause(name: str, value: float) -> Difference:
    nan = math.nan
    return Difference(name, Estimate(name, value), Estimate(name, nan), nan, nan, nan, nan)


def run_of(steps: dict[float, float], end_s: float = 24.0, **spec: object) -> xr.Dataset:
    """A flow that reports a window (packets) from each time on, beside one that reports 999."""
    time_s = np.arange(0.0, end_s, SAMPLE_S)
    at = np.searchsorted([*steps], time_s + SAMPLE_S / 2) - 1
    packets = np.array([*steps.values()])[at]
    cwnd_bytes = np.ravel([packets, np.full(len(packets), 999.0)], "F") * (PACKET_BYTES - 42)
    samples = {
        "sample_flow": np.tile([0, 1], len(packets)),
        "sample_time_s": np.repeat(time_s, 2),
        "sample_cwnd_bytes": cwnd_bytes,
    }
    columns = {name: ("sample", values) for name, values in samples.items()}
    return xr.Dataset(columns, attrs={"spec": json.dumps(spec)})


def sawtooth(c: Connection, kept: list[float], for_s: float = 1.0) -> xr.Dataset:
    """A window of 100 packets, of which each detected loss leaves a part for so long."""
    steps = {0.0: 100.0}
    for at_s, part in zip(c.loss_detected_s, kept, strict=True):
        steps |= {float(at_s): 100.0 * part, float(at_s) + for_s: 100.0}
    return run_of(steps)


def test_the_first_window_and_the_limit_of_agreement(connection):
    # A window counts datagrams: 20 of them are 20 frames without 42 bytes of headers each.
    said = [
        witness(cause("initial_window_packets", packets), run_of({0.0: 20.0}), connection)
        for packets in (20.0, 20 * math.exp(0.99 * AGREES), 20 * math.exp(1.01 * AGREES))
    ]
    assert FRAME_BYTES == 14 + 20 + 8
    assert said[:2] == ["The window that it reports agrees: 20 packets."] * 2
    assert said[2] == "The window that it reports says 20 packets, not 24.5."


def test_what_losses_leave(connection):
    assert np.round(connection.loss_detected_s) == pytest.approx(LOSSES_S)
    run = sawtooth(connection, [0.5, 0.6, 0.6, 0.9])
    agrees, other = (
        witness(cause("decrease_factor", beta), run, connection) for beta in (0.7, 0.85)
    )
    assert agrees == "The window that it reports agrees: 0.6."  # ln(0.7 / 0.6) = 0.15
    assert other == "The window that it reports says 0.6, not 0.85."  # ln(0.85 / 0.6) = 0.35
    nearer = replace(cause("decrease_factor", 0.7), reference=Estimate("decrease_factor", 0.55))
    assert "says 0.6, not 0.7" in witness(nearer, run, connection)  # it is like the reference


def test_a_window_that_dips_until_a_loss_is_repaired(connection):
    """Westwood's falls to half, and then is the BDP: RFC 6937 reduces it by what was delivered."""
    steps = {0.0: 100.0}
    for at_s in map(float, connection.loss_detected_s):
        steps |= {at_s: 50.0, at_s + 0.9 * RTT_S: 80.0, at_s + 1.0: 100.0}
    said = witness(cause("decrease_factor", 0.8), run_of(steps), connection)
    assert said == "The window that it reports agrees: 0.8."


def test_reductions_that_are_reverted(connection):
    # Back after 1.5 RTTs is reverted; a loss that leaves half for 10 RTTs is not.
    for for_s, percent in ((1.5 * RTT_S, "agrees: 100 %"), (10 * RTT_S, "says 0 %, not 100")):
        run = sawtooth(connection, [0.5] * 4, for_s)
        said = witness(cause("reverted_reductions_percent", 100.0), run, connection)
        assert said == f"The window that it reports {percent}."


def test_a_cap_and_a_window_that_is_out_of_date(connection):
    run = run_of({0.0: 10.0, 2.0: 30.0})
    said = witness(cause("window_cap_packets", 30.0), run, connection)
    assert said == "The window that it reports agrees: 30 packets."
    held = witness(cause("window_cap_packets", 20.0), run, connection)
    assert held == "The window that it reports is 30 packets, so something else is the limit."
    # The path slows down at 15 s; a BDP is 50 packets, and the rate is taken for the old one 2 s.
    (experiment,) = probing("tcp:bbr", LINK, seeds=1)
    steps = {0.0: 3 * BDP_PACKETS, 14.5: 2.5 * BDP_PACKETS, 17.5: 4 * BDP_PACKETS}
    run = run_of(steps, **json.loads(experiment.to_json()))
    said = witness(cause("window_gain", 2.0), run, connection)
    assert said == "The window that it reports says 2.5 BDP, not 2."
    assert witness(cause("window_gain", 2.5), run_of(steps), connection) == ""  # another path


def test_a_pause_and_an_outage():
    sent_s = np.concatenate([np.arange(0.0, 2.0, 0.01), np.arange(4.0, 6.0, 0.01)])
    sizes = np.full(len(sent_s), float(PACKET_BYTES))
    load = Load(sent_s, sent_s + RTT_S, sent_s + RTT_S / 2, sizes)
    c = connection_of("paused", load, sent_s + RTT_S, RTT_S)
    run = run_of({0.0: 40.0, 4.0: 10.0, 4.2: 40.0}, 6.0)
    said = witness(cause("kept_after_pause", 0.25), run, c)
    assert said == "The window that it reports agrees: 0.25."
    outage = {"bottleneck": {"outages": {"times": [[2.0, 2.0]]}}}
    run = run_of({0.0: 40.0, 2.5: 2.0, 5.0: 40.0}, 6.0, **outage)
    said = witness(cause("kept_after_outage", 0.5), run, c)
    assert said == "The window that it reports says 0.05, not 0.5."


def test_the_pacing_rate_of_each_phase(connection):
    # A cycle of eight parts on a link of 12 Mbit/s: 15, 9, then six times 12; faster at its start.
    run = run_of({0.0: 20.0})
    time_s = run["sample_time_s"].values
    cycle_mbps = np.array([15.0, 9.0, *[12.0] * 6])
    rates_mbps = np.where(time_s < 1, 100.0, cycle_mbps[(time_s / RTT_S).astype(int) % 8])
    run = run.assign(sample_pacing_rate_mbps=("sample", rates_mbps))
    values = {"probe_rate": 1.25, "drain_rate": 0.75, "probe_up_gain": 1.25}
    for name, value in values.items():
        said = witness(cause(name, value), run, connection)
        assert said == f"The pacing rate that it reports agrees: {value:.3g}."
    said = witness(cause("probe_down_gain", 0.5), run, connection)
    assert said == "The pacing rate that it reports says 0.75, not 0.5."
    assert witness(cause("probe_rate", 1.25), run_of({0.0: 20.0}), connection) == ""


def test_how_often_it_is_in_probe_rtt(connection):
    # Entered at 6, 12 and 18 s of the 21.95 s between the first 40 RTTs and the last packet.
    run = run_of({0.0: 20.0})
    time_s = run["sample_time_s"].values
    state = ("sample", np.where((time_s > 1) & (time_s % 6 < 0.2), 7, 6))
    names = {"flag_values": [6, 7], "flag_meanings": "probe_bw probe_rtt"}
    run = run.assign(sample_state=(*state, names))
    said = witness(cause("probe_rtt_every_s", 10.0), run, connection)
    assert said == "The state that it reports says 7.32 s, not 10."


def test_what_it_says_nothing_of(connection):
    run = run_of({0.0: 20.0})
    assert "pacing_gain" not in VALUES
    assert witness(cause("pacing_gain", 1.0), run, connection) == ""
    assert witness(cause("kept_after_pause", 1.0), run, connection) == ""  # it never paused
    assert witness(cause("window_cap_packets", 20.0), xr.Dataset(), connection) == ""
    silent = run.assign(sample_flow=("sample", np.ones(run.sizes["sample"], int)))
    assert witness(cause("window_cap_packets", 20.0), silent, connection) == ""
