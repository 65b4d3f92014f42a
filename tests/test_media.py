"""Video over RTP: its frames, freezes and options, and what is not asked of a stack like it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from conservation import conserved_run
from loopback import Bench, succeed
from synthetic import synthetic_run

import qbkit as qb
from qbkit import stacks
from qbkit.errors import MetricError, SpecError
from qbkit.metrics.flows.frames import Frames, flow_frames, freezes
from qbkit.stacks.about.listing import list_implementations
from qbkit.studies.conformance import conformance_study
from qbkit.studies.results import figure, kinds_of
from qbkit.traces.run.objects import object_variables

BOTH = ("media:gcc", "media:scream")
FRAME_S = 1 / 30


def shown(gaps_s: list[float], end_s: float | None = None) -> Frames:
    """Frames with these gaps between their arrivals, the first at 0."""
    at_s = np.concatenate([[0.0], np.cumsum(gaps_s)])
    return Frames(at_s, at_s, at_s[-1] if end_s is None else end_s)


@pytest.mark.parametrize(
    ("mean_s", "gap_s", "is_freeze"),
    [  # max(3 * 33.3, 33.3 + 150) = 183.3 ms; max(3 * 100, 100 + 150) = 300 ms
        (FRAME_S, 0.1834, True),
        (FRAME_S, 0.1832, False),
        (0.1, 0.301, True),
        (0.1, 0.299, False),
    ],
)
def test_a_freeze_is_a_gap_that_webrtc_counts(mean_s: float, gap_s: float, is_freeze: bool):
    found = freezes(shown([mean_s] * 40 + [gap_s] + [mean_s] * 10))
    assert found.tolist() == (
        [[pytest.approx(40 * mean_s), pytest.approx(40 * mean_s + gap_s)]] if is_freeze else []
    )


def test_the_mean_is_that_of_the_last_thirty_gaps():
    slow, fast = [0.1] * 10, [FRAME_S] * 30
    assert len(freezes(shown([*slow, *fast, 0.19]))) == 1  # the mean is 33.3 ms
    assert len(freezes(shown([*slow, *fast[:15], 0.19]))) == 0  # 60 ms: a freeze from 210 ms on


def test_the_first_gaps_are_no_freeze_and_the_last_one_is():
    assert len(freezes(shown([0.5] + [FRAME_S] * 40))) == 0
    steady = [FRAME_S] * 40
    assert freezes(shown(steady, end_s=10)).tolist() == [[pytest.approx(40 * FRAME_S), 10]]
    assert len(freezes(Frames(np.arange(9.0), np.full(9, np.nan), 9.0))) == 0  # never began


def test_late_frames_are_those_that_had_the_time():
    release_s = np.arange(10) * 0.1
    shown_s = release_s + 0.05
    shown_s[3] += 0.1  # 150 ms
    shown_s[5] = np.nan
    frames = Frames(release_s, shown_s, 1.0)  # the last one was released 100 ms before the end
    assert frames.late_percent(100) == pytest.approx(2 / 9 * 100)
    assert frames.late_percent(250) == pytest.approx(1 / 8 * 100)


def with_objects(release_s: np.ndarray, arrived_s: np.ndarray) -> xr.Dataset:
    of = np.ones(len(release_s), dtype=int)
    columns = {"object_flow": of, "object_release_s": release_s, "object_arrived_s": arrived_s}
    return synthetic_run().assign({name: ("object", v) for name, v in columns.items()})


def test_the_summary_counts_freezes_of_frames_alone():
    release_s = np.arange(300) * FRAME_S
    arrived_s = release_s + 0.03
    arrived_s[100:110] = arrived_s[110]  # ten frames come at once
    arrived_s[200] = np.nan
    run = with_objects(release_s, arrived_s)
    other, mine = (run.qb.summary().iloc[i] for i in range(2))
    assert (mine.objects, mine.objects_missing) == (300, 1)
    assert mine.freezes == 2  # and from the last frame, at 10 s, to the end at 20 s
    assert mine.frozen_s == pytest.approx(11 * FRAME_S + 20 - arrived_s[-1])
    assert mine.late_100ms_percent == pytest.approx(9 / 300 * 100)
    assert np.isnan(other.freezes)
    assert flow_frames(with_objects(release_s**2, arrived_s), 1) is None


def test_what_an_onoff_sender_releases_is_no_frame():
    release_s = np.arange(10) * 2.0
    run = with_objects(release_s, release_s + 1.0)
    flows = ["quic-go:cubic", "tcp:cubic?app=onoff on_s=1 off_s=1"]
    paused = qb.Experiment(bottleneck=run.qb.experiment.bottleneck, flows=flows, duration_s=20)
    assert flow_frames(run, 1) is not None  # of an unknown application
    assert flow_frames(run.assign_attrs(spec=paused.to_json()), 1) is None


def test_the_chart_has_a_band_for_each_freeze(tmp_path: Path):
    release_s = np.arange(300) * FRAME_S
    arrived_s = release_s + 0.03
    arrived_s[100:110] = arrived_s[110]
    run = with_objects(release_s, arrived_s)
    chart = run.qb.plot.frames().to_dict()
    assert "tcp:cubic: 300 frames, 0 never shown, 2 freezes of 10.4 s." in chart["description"]
    text = next(t for t in chart["datasets"].values() if t.startswith('"begin_s"'))
    assert len(text.splitlines()) == 3
    with pytest.raises(MetricError, match="no flow of this run has frames; run one of media"):
        synthetic_run().qb.plot.frames()
    assert "frames" in kinds_of(run) and "frames" not in kinds_of(synthetic_run())
    assert figure(run, "frames").to_dict() == chart
    page = qb.save_report(run, tmp_path / "r.html").read_text()
    assert "<h2>Frames</h2>" in page


def test_frames_are_read_by_their_number(tmp_path: Path):
    (tmp_path / "objects.csv").write_text("time_ns,bytes\n1000,10\n2000,20\n3000,30\n")
    (tmp_path / "frames.csv").write_text("time_ns,frame\n1500,0\n3500,2\n3600,3\n")
    found = object_variables([tmp_path], 0, 1.0)
    assert found["object_size_bytes"][1].tolist() == [10, 20, 30]
    np.testing.assert_allclose(found["object_arrived_s"][1], [1.5e-6, np.nan, 3.5e-6])


def test_surveys_of_bulk_transfers_leave_it_out():
    assert not [name for name in list_implementations(ready=False) if name.startswith("media")]
    assert list_implementations(["media"]) == list(BOTH)


@pytest.mark.parametrize("sides", [("media:gcc", "tcp:cubic"), ("quinn:bbr", "media:scream")])
def test_it_is_not_compared_with_bulk_transfers(sides: tuple[str, str]):
    with pytest.raises(SpecError, match=r"media:\w+ sends frames at a rate of its own"):
        conformance_study(*sides)


@pytest.mark.slow
@pytest.mark.parametrize("controller", ["gcc", "scream"])
def test_bytes_arrive_in_whole_frames(bench: Bench, controller: str):
    stack = stacks.get("media")
    if not stack.status().ready and not (shutil.which("go") and shutil.which("g++")):
        pytest.skip(stack.status().reason)
    stack.build()
    with bench.receiver(stack) as (address, _):
        succeed(bench.send(stack, address, controller, size_bytes=100_000))
    frames = [int(row["frame"]) for row in bench.rows("frames.csv")]
    sizes = [int(row["bytes"]) for row in bench.rows("objects.csv")]
    assert frames == list(range(len(sizes)))
    assert sum(sizes) == 100_000
    padding = int(bench.rows("receiver.csv")[-1]["bytes"]) - 100_000
    assert 0 <= padding <= 8 * len(sizes)  # the last packet of a frame has 9 bytes at least
    assert sizes[0] == pytest.approx(13_264, abs=1)  # RFC 8593: 13.5/4.17 of the mean at 1 Mbit/s
    assert sum(sizes[:8]) == pytest.approx(8 * 1e6 / 8 / 30 * 1180 / 1200, rel=0.1)


@pytest.mark.slow
def test_its_driver_names_what_is_wrong(bench: Bench):
    stack = stacks.get("media")
    if not stack.status().ready:
        pytest.skip(stack.status().reason)
    for controller, options, sentence in (
        ("cubic", {}, "media has no controller cubic; it has gcc, scream"),
        ("gcc", {"x": 1}, "unknown option x; supported: fps, max_mbps, min_kbps, start_kbps"),
        ("gcc", {"fps": 0}, "give --option fps=NUMBER, above 0"),
    ):
        bench.refuse(stack, controller, sentence, options)


def run_of(*flows: str, **fields: float) -> xr.Dataset:
    if not stacks.get("media").status().ready:
        pytest.skip(stacks.get("media").status().reason)
    still = {"rate_mbps": 5, "rtt_ms": 50, "start_window_s": 0, "jitter_ms": 0}
    return conserved_run(*flows, **{**still, **fields})


@pytest.mark.guest
@pytest.mark.parametrize("flow", BOTH)
def test_frames_leave_at_their_rate_and_come_after_the_path(flow: str):
    run = run_of(flow)
    release_s, arrived_s = run.object_release_s.values, run.object_arrived_s.values
    assert np.diff(release_s) == pytest.approx(FRAME_S, abs=1e-6)
    took_ms = (arrived_s - release_s)[10:-3] * 1e3
    assert took_ms.min() > 25  # half an RTT, and the frame on the link
    assert np.median(took_ms) < 60
    row = run.qb.summary().iloc[0]
    assert row.objects == pytest.approx(120, abs=1)
    assert row.objects_missing <= 2
    assert (run.object_size_bytes.values[0] / run.object_size_bytes.values[1:8]).min() > 3


@pytest.mark.guest
@pytest.mark.parametrize("flow", BOTH)
def test_lost_packets_are_sent_again_and_their_frames_come_later(flow: str):
    run = run_of(flow, duration_s=6, loss_percent=3)
    row = run.qb.summary().iloc[0]
    assert row.loss_percent > 1
    assert float(run.sample_lost_packets.max()) > 5
    assert row.objects_missing <= 6  # of about 180: those under way at the end
    assert row.object_p95_ms > row.object_median_ms + 40  # most of an RTT


@pytest.mark.guest
@pytest.mark.parametrize("flow", BOTH)
def test_the_rate_falls_to_that_of_a_slower_link(flow: str):
    run = run_of(flow, duration_s=10, rate_mbps=0.6, buffer_bdp=4)
    target_mbps = run.pacing_rate_mbps.values[0]
    assert target_mbps[0] == pytest.approx(1, abs=0.01)
    assert 0.3 < target_mbps[-30:].mean() < 0.65


@pytest.mark.guest
@pytest.mark.parametrize("flow", BOTH)
def test_each_option_does_what_it_says(flow: str):
    slow = {"rate_mbps": 0.6, "buffer_bdp": 40, "duration_s": 6}  # without losses
    least = run_of(f"{flow}?min_kbps=800", **slow).pacing_rate_mbps.values[0]
    assert np.nanmin(least) >= 0.8 * 0.8 - 0.001  # SCReAM scales its target by 0.8 to 1.1
    largest = run_of(f"{flow}?max_mbps=1.05", rate_mbps=20).pacing_rate_mbps.values[0]
    assert np.nanmax(largest) <= 1.05 * 1.1 + 0.001
    first = run_of(f"{flow}?start_kbps=3000", rate_mbps=20)
    assert first.pacing_rate_mbps.values[0][:3].mean() == pytest.approx(3, abs=0.1)
    assert np.diff(run_of(f"{flow}?fps=15").object_release_s) == pytest.approx(1 / 15, abs=1e-6)
