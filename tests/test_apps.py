"""Senders that do not always send: what they send, and when its objects arrive."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from conservation import conserved_run

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError

PACED = ("quiche:bbr2", "tquic:bbr", "noq:bbr3")
"""Their pacers, and not their windows, hold back what an application gives them."""
LINK = {"rate_mbps": 20, "rtt_ms": 40}


run_of = partial(conserved_run, **LINK, duration_s=5, start_window_s=0)


def test_an_application_is_part_of_the_text_of_its_flow():
    flow = qb.Flow("tcp:cubic?app=objects 0:20 0.123456789:100&start_s=1")
    assert qb.Flow(flow.text) == flow
    spec = qb.Experiment(flows=[flow])
    assert qb.Experiment.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("app", "sentence"),
    [
        ("objects 5:100", "the object at 5 s comes after the flow's end, 2 s after its start"),
        ("rate mbps=9 fps=1000", None),
    ],
)
def test_an_app_fits_its_flow(app: str, sentence: str | None):
    text = f"tcp:cubic?app={app}&start_s=1&stop_s=3"
    if sentence is None:
        qb.Experiment(flows=[text], duration_s=60)
        text, sentence = f"tcp:cubic?app={app}", "has 60000 objects in 60 s, too many to list"
    with pytest.raises(qb.SpecError, match=sentence):
        qb.Experiment(flows=[text], duration_s=60)


def test_bulk_is_the_default():
    assert qb.Flow("tcp:cubic?app=bulk") == qb.Flow("tcp:cubic") == qb.Flow("tcp:cubic", app="bulk")


def test_a_file_lists_objects(tmp_path: Path):
    (tmp_path / "page.csv").write_text("time_s,kb\n0,20\n0.5,100\n0.5,3.5\n")
    flow = qb.Flow(f"tcp:cubic?app=objects {tmp_path}/page.csv")
    assert flow == qb.Flow("tcp:cubic?app=objects 0:20 0.5:100 0.5:3.5")
    (tmp_path / "page.csv").write_text("0 20\n5\n")
    with pytest.raises(SpecError, match=r"line 2: '5'; it needs lines of seconds and a value$"):
        qb.Flow(f"tcp:cubic?app=objects {tmp_path}/page.csv")


def test_an_app_decides_how_much_is_sent():
    with pytest.raises(SpecError, match="leave out bytes"):
        qb.Flow("tcp:cubic?app=rate mbps=5&bytes=10000")


@pytest.mark.parametrize(
    ("flow", "sentence"),
    [
        ("ngtcp2:cubic?app=rate mbps=5", "ngtcp2 has no app rate. aioquic, "),
        ("s2n-quic:cubic?app=onoff on_s=1 off_s=1", "it has rate, requests, objects"),
        ("qbkit:fq-detect?app=rate mbps=2", "qbkit:fq-detect needs data without end; leave the"),
        ("picoquic:cubic?read_mbps=5", "picoquic's receiver reads at once; "),
        (
            "aioquic:cubic?receive_window_kb=50",
            "aioquic's receiver chooses its window; jdk, kwik, lsquic, msquic",
        ),
    ],
)
def test_what_a_stack_cannot_do_above_its_transport_names_who_can(flow: str, sentence: str):
    with pytest.raises(SpecError) as raised:
        run_of(flow)
    assert sentence in str(raised.value)


def stacks_with(kind: str) -> list[str]:
    """A flow of each stack that has a kind of application."""
    found = [stack for stack in stacks.all_stacks() if kind in stack.apps]
    return [f"{stack.name}:{stack.controllers()[0]}" for stack in found]


SLOWER_MS = {"bbr": 12, "x-net-quic": 3}
"""What the pacer of such a flow adds to half of the frames at most; 1.5 for others, with timers."""


@pytest.mark.guest
@pytest.mark.parametrize("flow", stacks_with("requests"))
def test_frames_objects_and_requests_of_every_stack_that_has_them(flow: str):
    apps = ("rate mbps=2 fps=25", "requests kb=50 think_s=0.2", "objects 0:20 0.5:60")
    run = run_of(*(f"{flow}?app={app}" for app in apps), rate_mbps=50, duration_s=3)
    of, size = run.object_flow.values, run.object_size_bytes.values
    release_s, arrived_s = run.object_release_s.values, run.object_arrived_s.values
    assert np.diff(release_s[of == 0]) == pytest.approx(1 / 25, abs=1e-6)
    assert size[of == 0] == pytest.approx(10_000)
    took_ms = 1e3 * (arrived_s - release_s)[of == 0][20:-3]
    path_ms = 20 + 10_000 * 8 / 50e3  # and timers of 1 ms, frames of others, a pacer
    assert took_ms.min() > path_ms - 0.5
    slower_ms = max([ms for name, ms in SLOWER_MS.items() if name in flow], default=1.5)
    assert np.median(took_ms) < path_ms + slower_ms
    # A QUIC stream ends with the receiver's answer, TCP's data with an ACK: an RTT, then thinking.
    assert release_s[of == 1][1:] - arrived_s[of == 1][:-1] == pytest.approx(0.02 + 0.2, abs=0.045)
    assert size[of == 2].tolist() == [20_000, 60_000]
    assert np.diff(release_s[of == 2]) == pytest.approx(0.5, abs=1e-6)
    assert np.isfinite(arrived_s[of == 2]).all()


@pytest.mark.guest
@pytest.mark.parametrize("flow", [*stacks_with("onoff"), *PACED])
def test_every_sender_is_silent_while_it_is_off(flow: str):
    run = run_of(f"{flow}?app=onoff on_s=1 off_s=1", duration_s=4)
    mbps = run.throughput_mbps.values[0]
    for start_s in run.object_release_s.values[:2]:
        silent = slice(round(start_s * 10) + 16, round(start_s * 10) + 19)
        assert mbps[silent].max() < 0.02  # idle ends of lsquic send each other 76 bytes at times
        busy = slice(round(start_s * 10) + 4, round(start_s * 10) + 9)
        assert mbps[busy].max() > 12


@pytest.mark.guest
@pytest.mark.parametrize(
    "stack", [stack for stack in stacks.all_stacks() if stack.offers_window], ids=lambda s: s.name
)
def test_a_receive_window_limits_a_sender_to_one_in_each_round_trip(stack):
    window_kb, rtt_s = 60, 0.04
    flow = f"{stack.name}:{stack.controllers()[0]}?receive_window_kb={window_kb}"
    run = run_of(flow, rate_mbps=50, duration_s=4)
    mbps = run.throughput_mbps.values[0][10:].mean()
    most = window_kb * 8e-3 / rtt_s * 1500 / 1350  # with headers
    assert 0.4 * most < mbps < most  # a receiver may wait until half of its window was read


@pytest.mark.guest
@pytest.mark.parametrize("stack", [s for s in stacks.all_stacks() if s.reads_slowly])
def test_a_slow_reader_closes_its_window(stack):
    flow = f"{stack.name}:{stack.controllers()[0]}?receive_window_kb=60&read_mbps=4"
    run = run_of(flow, duration_s=4)
    assert run.throughput_mbps.values[0][15:].mean() == pytest.approx(4.2, abs=0.3)


@pytest.mark.guest
def test_frames_leave_at_their_rate_and_arrive_after_the_path_and_themselves():
    run = run_of("tcp:cubic?app=rate mbps=5 fps=30")
    release_s = run.object_release_s.values
    assert np.diff(release_s) == pytest.approx(1 / 30, abs=1e-6)
    frame = 5e6 / 8 / 30
    assert run.object_size_bytes.values == pytest.approx(frame, abs=1)
    took_ms = (run.object_arrived_s.values - release_s)[30:-3] * 1e3
    packets = np.ceil(frame / 1448)
    on_link_ms = packets * 1514 * 8 / 20e3
    assert took_ms == pytest.approx(20 + on_link_ms, abs=1.5)
    row = run.qb.summary().iloc[0]
    assert row.objects == 149  # it begins after the handshake
    assert row.objects_missing <= 1
    assert row.object_median_ms == pytest.approx(np.median(took_ms), abs=1)


@pytest.mark.guest
def test_an_onoff_sender_is_silent_between():
    run = run_of("tcp:cubic?app=onoff on_s=1 off_s=1", duration_s=6)
    mbps = run.throughput_mbps.values[0]
    starts_s = run.object_release_s.values
    for start_s in starts_s[:2]:
        silent = slice(round(start_s * 10) + 13, round(start_s * 10) + 19)
        assert mbps[silent].max() == 0
        busy = slice(round(start_s * 10) + 5, round(start_s * 10) + 9)
        assert mbps[busy].min() > 18
    assert np.diff(starts_s) == pytest.approx(2, abs=0.01)


@pytest.mark.guest
def test_a_seed_draws_the_times_and_the_same_ones_again():
    texts = [f"tcp:cubic?app=onoff on_s=0.3 off_s=0.3 seed={seed}" for seed in (3, 3, 4)]
    one, again, other = (run_of(text).object_release_s.values for text in texts)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


SENDERS = (
    *("quinn:cubic", "quic-go:cubic", "picoquic:cubic", "lsquic:cubic"),
    *("aioquic:cubic", "kwik:newreno"),
)


@cache
def drawn_times_s(flow: str) -> np.ndarray:
    """When a sender that is on and off at random goes on."""
    return run_of(f"{flow}?app=onoff on_s=0.3 off_s=0.3 seed=3").object_release_s.values


@pytest.mark.guest
@pytest.mark.parametrize("flow", SENDERS)
def test_a_seed_draws_the_same_times_in_every_language(flow: str):
    ours, of_tcp = drawn_times_s(flow), drawn_times_s("tcp:cubic")
    assert len(ours) == len(of_tcp) > 3
    assert np.diff(ours) == pytest.approx(np.diff(of_tcp), abs=0.05)


@pytest.mark.guest
def test_a_request_waits_for_the_response_before_it():
    run = run_of("tcp:cubic?app=requests kb=200 think_s=0.2")
    release_s, arrived_s = run.object_release_s.values, run.object_arrived_s.values
    # Acknowledged half an RTT after its arrival, up to a millisecond later seen, then the thinking.
    assert release_s[1:] - arrived_s[:-1] == pytest.approx(0.02 + 0.2, abs=0.0425)
    assert (release_s[1:] - arrived_s[:-1] >= 0.22).all()


@pytest.mark.guest
def test_latency_of_frames_beside_a_bulk_flow_is_that_of_the_queue():
    flows = ["tcp:cubic?app=rate mbps=2 fps=25", "tcp:cubic"]
    fifo, fair = (run_of(*flows, duration_s=8, qdisc=q) for q in ("fifo", "fq_codel"))
    latency = [float(run.qb.summary()["object_median_ms"].iloc[0]) for run in (fifo, fair)]
    assert latency[1] < 30 < latency[0]
    assert "delivered nothing" not in fair.attrs["warnings"]
