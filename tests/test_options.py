"""Options of the stacks, in the guest: each must show in the packets of every stack that has it.

A flow runs alone for a few seconds on 20 Mbit/s and 50 ms. Packets reach the queue half an RTT
after they were sent. A client's first data follow its first packet by one RTT.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import xarray as xr

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError

RTT_S = 0.050


def first_seconds(
    name: str, duration_s: float = 2.0, buffer_bdp: float = 1, **options: object
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


def acks_a_packet(name: str, **options: object) -> float:
    run = first_seconds(name, **options)
    return run.sizes["ack"] / run.sizes["packet"]


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("ack_every_packets"))
def test_ack_frequency(name: str):
    assert acks_a_packet(name, ack_every_packets=2) == pytest.approx(1 / 2, rel=0.25)
    assert acks_a_packet(name, ack_every_packets=8) == pytest.approx(1 / 8, rel=0.5)


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("pmtud"))
def test_path_mtu_discovery(name: str):
    found, small = (
        int(first_seconds(name, 1.0, pmtud=on).packet_size_bytes.max()) for on in (True, False)
    )
    assert small < 1300 < 1400 < found


@pytest.mark.guest
@pytest.mark.parametrize("name", offering("ack_frequency"))
def test_fewer_acks_on_request(name: str):
    asked, not_asked = (acks_a_packet(name, ack_frequency=on) for on in (True, False))
    assert asked < 0.8 * not_asked


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
    paced, bursts = (first_seconds(name, 0.5, pacing=on) for on in (True, False))
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
        int(first_seconds(name, 1.5, buffer_bdp=4, hystart=on).dropped_packets.sum())
        for on in (True, False)
    )
    assert with_it < 0.5 * without


def test_an_unknown_option_names_the_known_ones():
    flow = qb.Flow("tcp", "cubic", options={"nagle": True})
    with pytest.raises(SpecError, match=r"receiver is a field .* as tcp:cubic\?receiver=…"):
        stacks.get("tcp").check("cubic", {"receiver": "quinn"}, None)
    with pytest.raises(SpecError, match="tcp has no option nagle; supported: ecn, hystart, init"):
        qb.Experiment(flows=[flow], duration_s=1).run()


QUIET, DEEP, LOSSY, MARKING = "quiet", "deep", "lossy", "marking"
LINKS = {
    QUIET: {"buffer_bdp": 1},
    DEEP: {"buffer_bdp": 4},
    LOSSY: {"buffer_bdp": 1, "loss_percent": 2},
    MARKING: {
        "buffer_packets": 100,
        "qdisc": "red",
        "qdisc_options": {"min": 15000, "max": 60000, "probability": 1, "ecn": True},
    },
}
CHANGES = {
    "bbr_cwnd_gain_percent": 120,
    "bbr_drain_pacing_gain": 0.9,
    "bbr_loss_threshold_percent": 10,
    "bbr_min_rtt_window_ms": 2000,
    "bbr_probe_bw_cwnd_gain": 1.2,
    "bbr_probe_down_pacing_gain": 0.5,
    "bbr_probe_rtt_cwnd_gain": 0.9,
    "bbr_probe_rtt_ms": 1000,
    "bbr_probe_up_gain_percent": 200,
    "bbr_probe_up_pacing_gain": 2.0,
    "bbr_startup_pacing_gain": 1.5,
    "clock_granularity_us": 50_000,
    "connection_options": "1RTT",
    "copa_slow_start_delta": 0.1,
    "copa_steady_delta": 0.1,
    "copa_use_standing_rtt": False,
    "ecn": True,
    "hystart_plus_plus": True,
    "initial_rtt_ms": 1000,
    "initial_ssthresh_packets": 10,
    "max_ack_delay_ms": 1,
    "max_pacing_rate_mbps": 5,
    "min_window_packets": 20,
    "mtu_discovery": True,
    "packet_threshold": 30,
    "pacing_granularity_ms": 50,
    "search": True,
    "segmentation": False,
}
"""Option → a value that changes a run."""
LINK_OF = {
    "bbr_loss_threshold_percent": LOSSY,
    "ecn": MARKING,
    "hystart_plus_plus": DEEP,
    "initial_rtt_ms": LOSSY,
    "min_window_packets": LOSSY,
    "search": DEEP,
}
"""Option → the link on which that shows, if not `QUIET`."""
SECONDS = {
    "bbr_loss_threshold_percent": 8,
    "bbr_min_rtt_window_ms": 4,
    "bbr_probe_down_pacing_gain": 4,
    "bbr_probe_rtt_cwnd_gain": 12,
    "bbr_probe_rtt_ms": 12,
    "bbr_probe_up_gain_percent": 4,
    "bbr_probe_up_pacing_gain": 4,
    "initial_rtt_ms": 4,
}
"""Option → the time in which it does (s), if not 2."""
OF_BBR = {"connection_options": "bbr"}
"""What that value of `CHANGES` concerns."""
SHOWN_ABOVE = {
    *("initial_window_packets", "ack_every_packets", "pmtud", "ack_frequency", "pacing", "hystart"),
    "qlog",  # tests/test_qlog.py; ECN of picoquic: tests/test_ecn.py
    *stacks.get("media").options,  # tests/test_media.py
}
OWN = [s for s in stacks.all_stacks() if not s.source.startswith("external") and s.name != "qbkit"]
"""Stacks of registries; controllers in Python check their own options (tests/test_cca.py)."""
SHOWN_HERE = [
    (stack.name, option)
    for stack in OWN
    for option in stack.options
    if option not in SHOWN_ABOVE and (stack.name, option) != ("picoquic", "ecn")
]


def test_each_option_has_a_test_of_what_it_changes():
    assert {option for _, option in SHOWN_HERE} <= CHANGES.keys()


@pytest.mark.guest
@pytest.mark.parametrize(("name", "option"), SHOWN_HERE)
def test_an_option_changes_the_packets(name: str, option: str):
    stack = stacks.get(name)
    if not stack.status().ready:
        pytest.skip(stack.status().reason)
    value = CHANGES[option]
    link, duration_s = LINK_OF.get(option, QUIET), SECONDS.get(option, 2)
    flow = f"{name}:{OF_BBR.get(option) or stack.controllers_of(option)[0]}"
    seen = usual_packets(flow, link, duration_s), packets(flow, link, duration_s, {option: value})
    assert any(changed(one, other) for one, other in zip(*seen, strict=True))


def changed(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two runs differ, and not by what a longer command line shifts alone: microseconds."""
    both = min(len(one), len(other))
    return bool((np.abs(one[:both] - other[:both]) > 1e-4).any())


@cache
def usual_packets(flow: str, link: str, duration_s: float) -> tuple[np.ndarray, ...]:
    """What `packets` gives without options; several options are compared with it."""
    return packets(flow, link, duration_s, {})


def packets(flow: str, link: str, duration_s: float, options: dict) -> tuple[np.ndarray, ...]:
    """Times and sizes of the packets of a flow alone, and times of the ACKs."""
    stack, _, controller = flow.partition(":")
    experiment = qb.Experiment(
        bottleneck=qb.Bottleneck(rate_mbps=20, rtt_ms=1000 * RTT_S, **LINKS[link]),
        flows=[qb.Flow(stack, controller, options=options)],
        duration_s=duration_s,
    )
    run = experiment.run()
    return run.packet_time_s.values, run.packet_size_bytes.values, run.ack_time_s.values


@pytest.mark.parametrize(
    ("name", "option", "controller"),
    [
        (stack.name, option, controller)
        for stack in OWN
        for option in stack.options
        for controller in stack.controllers()
        if controller not in stack.controllers_of(option)
    ],
)
def test_an_option_that_changes_nothing_is_refused(name: str, option: str, controller: str):
    stack = stacks.get(name)
    with pytest.raises(SpecError, match=f"{name}'s option {option} changes nothing for") as error:
        stack.check(controller, {option: 1}, None)
    assert f"it counts for {stack.controllers_of(option)[0]}" in str(error.value)


@pytest.mark.parametrize(
    "flow",
    [
        "quiche:cubic?pacing=false",
        "quiche:reno?bbr_startup_pacing_gain=2",
        "quiche:bbr2?hystart=false",
        "tcp:bbr?pacing=true",
        "tcp:reno?hystart=false",
        "s2n-quic:cubic?bbr_cwnd_gain_percent=200",
        "tquic:bbr?copa_steady_delta=0.5",
    ],
)
def test_such_options_are_refused_before_a_run(flow: str):
    with pytest.raises(SpecError, match="changes nothing for"):
        qb.Experiment(flows=[flow], duration_s=1).run()


@pytest.mark.parametrize(
    ("flow", "sentence"),
    [
        ("tcp:cubic?ecn=false", "tcp's option ecn is False; write true or accurate"),
        ("tcp:cubic?ecn=l4s", "tcp's option ecn is 'l4s'; write true or accurate"),
        ("tcp:dctcp?ecn=true", "tcp:dctcp asks for ECN by itself; write ecn=accurate"),
    ],
)
def test_ecn_is_asked_for_or_left_out(flow: str, sentence: str):
    with pytest.raises(SpecError, match=sentence):
        qb.Experiment(flows=[flow], duration_s=1).run()
