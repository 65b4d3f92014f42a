"""Senders that do not always send: what they send, and when its objects arrive."""

from __future__ import annotations

import numpy as np
import pytest
from conservation import assert_conserved

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.spec.app import App

LINK = {"rate_mbps": 20, "rtt_ms": 40}


def run_of(*flows: str, duration_s: float = 5, **link):
    spec = qb.Experiment(
        bottleneck={**LINK, **link}, flows=flows, duration_s=duration_s, start_window_s=0
    )
    run = spec.run()
    assert_conserved(run)
    return run


@pytest.mark.parametrize(
    "text",
    [
        "rate mbps=5 fps=24",
        "onoff on_s=1 off_s=0.25 seed=7",
        "requests kb=100 think_s=0",
        "objects 0:20 0.123456789:100",
    ],
)
def test_an_application_is_its_text(text: str):
    assert str(App.of(text)) == text
    flow = qb.Flow(f"tcp:cubic?app={text}&start_s=1")
    assert qb.Flow(flow.text) == flow
    spec = qb.Experiment(flows=[flow])
    assert qb.Experiment.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("video", "there is no app 'video'; write rate mbps=5 fps=30"),
        ("rate fps=30", "app rate has no mbps"),
        ("rate mbps=5 off_s=1", "app rate does not use off_s"),
        ("rate mbps=fast", "has 'fast' where a number must be"),
        ("requests kb=10", "app requests has no think_s"),
        ("objects 1:10 0:5", "the object at 0 s follows one at 1 s"),
        ("objects 1", "'1' is no time with its size"),
        ("objects 1:0", "a size above 0"),
    ],
)
def test_mistakes_get_one_sentence(text: str, sentence: str):
    with pytest.raises(SpecError) as raised:
        qb.Flow(f"tcp:cubic?app={text}")
    assert sentence in str(raised.value)


def test_an_app_decides_how_much_is_sent():
    with pytest.raises(SpecError, match="leave out bytes"):
        qb.Flow("tcp:cubic?app=rate mbps=5&bytes=10000")


def test_stacks_without_applications_refuse_them():
    for stack in stacks.all_stacks():
        if stack.name != "tcp":
            with pytest.raises(SpecError, match=r"an app works with tcp, so leave it out"):
                stack.for_app()


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
