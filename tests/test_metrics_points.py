"""Operating points: windows whose content is known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic import synthetic_run

import qbkit as qb
from qbkit.errors import MetricError, SpecError
from qbkit.metrics import operating_points
from qbkit.metrics.envelopes.envelope import require_hull


def without_packets(ds: xr.Dataset) -> xr.Dataset:
    return ds.drop_vars([str(v) for v in ds if str(v).startswith("packet_")])


def steady_run(
    *, duration_s: float = 20.0, rtt_ms: float = 50.0, gap_s: float = 0.01, delay_ms: float = 3.0
) -> xr.Dataset:
    """One flow: a 1250-byte packet leaves every ``gap_s`` (first at gap_s / 2), each delayed."""
    left_s = np.arange(gap_s / 2, duration_s, gap_s)
    return xr.Dataset(
        {
            "packet_time_s": ("packet", left_s - delay_ms / 1e3),
            "packet_departure_s": ("packet", left_s),
            "packet_flow": ("packet", np.zeros(len(left_s), "uint8")),
            "packet_size_bytes": ("packet", np.full(len(left_s), 1250, "uint16")),
            "start_s": ("flow", [0.0]),
            "stop_s": ("flow", [duration_s]),
            "base_rtt_ms": ("flow", [rtt_ms]),
        },
        coords={"flow": [0], "label": ("flow", ["a"])},
        attrs={"duration_s": duration_s, "rtt_ms": rtt_ms, "bin_s": 0.1},
    )


def test_steady_flow_by_hand() -> None:
    # 1250 B = 10 kbit every 10 ms = 1 Mbit/s. Windows of 10 x 50 ms = 0.5 s. Cut: max(5 s,
    # 10 % of 20 s) = 5 s at the start, one window at the end: 14.5 s = 29 windows from 5 s on.
    points = operating_points(steady_run(), "a")
    assert len(points) == 29
    assert points.throughput_mbps == pytest.approx(np.ones(29))
    assert points.delay_ms == pytest.approx(np.full(29, 3.0))
    assert points.time_s == pytest.approx(5 + 0.5 * np.arange(29))
    assert (points.interval_s, points.skip_start_s, points.skip_end_s) == (0.5, 5.0, 0.5)
    assert points.xy.shape == (29, 2)
    assert points.xy[0] == pytest.approx([3.0, 1.0])


def test_long_runs_cut_a_tenth() -> None:
    points = operating_points(steady_run(duration_s=80.0, gap_s=0.05), 0)
    assert points.skip_start_s == pytest.approx(8.0)
    assert points.time_s[0] == pytest.approx(8.0)


def test_cuts_count_from_the_flows_own_start() -> None:
    ds = steady_run()
    ds["start_s"] = ("flow", [4.0])
    ds["stop_s"] = ("flow", [16.0])
    points = operating_points(ds, 0, skip_start_s=2.0, skip_end_s=1.0)
    # 4 + 2 = 6 s to 16 - 1 = 15 s: 18 windows of 0.5 s.
    assert len(points) == 18
    assert points.time_s[[0, -1]] == pytest.approx([6.0, 14.5])


def test_a_window_averages_over_its_packets_only() -> None:
    ds = steady_run()
    late = ds["packet_departure_s"].values >= 10.0
    size = np.where(late, 625, 1250).astype("uint16")
    waited_ms = np.where(late, 9.0, 3.0)
    waited_ms[::2] += 2.0  # mean of 3 and 5, then of 9 and 11
    ds["packet_size_bytes"] = ("packet", size)
    ds["packet_time_s"] = ("packet", ds["packet_departure_s"].values - waited_ms / 1e3)
    points = operating_points(ds, 0)
    early = points.time_s < 9.9
    assert points.throughput_mbps[early] == pytest.approx(np.full(10, 1.0))
    assert points.throughput_mbps[~early] == pytest.approx(np.full(19, 0.5))
    assert points.delay_ms[early] == pytest.approx(np.full(10, 4.0))
    assert points.delay_ms[~early] == pytest.approx(np.full(19, 10.0))


def test_silent_windows_and_dropped_packets_give_no_point() -> None:
    ds = steady_run()
    departure_s = ds["packet_departure_s"].values.copy()
    departure_s[(departure_s > 7) & (departure_s < 8)] = np.nan
    ds["packet_departure_s"] = ("packet", departure_s)
    points = operating_points(ds, 0)
    assert len(points) == 27
    assert not ((points.time_s > 6.9) & (points.time_s < 7.9)).any()


def test_bins_agree_with_packets() -> None:
    ds = synthetic_run()  # 10 RTTs of 20 ms are two bins of 0.1 s
    packets = operating_points(ds, 1)
    bins = operating_points(without_packets(ds), 1)
    assert bins.xy == pytest.approx(packets.xy, rel=1e-9)


def test_bins_that_do_not_tile_the_windows_still_agree_on_a_steady_flow() -> None:
    ds = without_packets(steady_run(rtt_ms=25.0))  # windows of 0.25 s over bins of 0.1 s
    bins = np.arange(200) * 0.1
    ds = ds.assign_coords(time=bins)
    ds["throughput_mbps"] = (("flow", "time"), np.ones((1, 200)))
    ds["queue_delay_ms"] = (("flow", "time"), np.full((1, 200), 3.0))
    points = operating_points(ds, 0)
    assert points.throughput_mbps == pytest.approx(np.ones(len(points)))
    assert points.delay_ms == pytest.approx(np.full(len(points), 3.0))


def test_flows_too_short_for_a_hull_are_refused_before_they_run() -> None:
    # At 50 ms: 5 s of the start, 3 windows of 0.5 s, one at the end, and a start 0.5 s late.
    require_hull("imc22", 7.5, 50.0)
    require_hull("quicbench", 4.0, 50.0)  # which skips no start
    with pytest.raises(
        SpecError, match=r"less than 3\.45 s for ended early; give at least 3\.95 s"
    ):
        require_hull("quicbench", 3.8, 50.0)
    with pytest.raises(SpecError, match=r"3 windows of 10 RTTs.*at least 7.5 s for RTTs of 50 ms"):
        require_hull("refined", 7.4, 50.0)
    # At 600 ms four windows are 24 s, and with them a tenth of the time is skipped: 29 s, and 6 s.
    with pytest.raises(SpecError, match="at least 35 s for RTTs of 600 ms"):
        require_hull("imc22", 31.0, 600.0)
    with pytest.raises(SpecError, match="duration_s = 6"):
        qb.explain("tcp:reno", duration_s=6)
    spec = qb.Experiment(flows=["tcp:reno", "tcp:cubic"], duration_s=6)
    run = synthetic_run().assign_attrs(spec=spec.to_json())
    with pytest.raises(SpecError, match="duration_s = 6"):
        qb.what_if(qb.Study("tcp:reno", "tcp:cubic", [run], [run]), {"pacing": True})


def test_errors_say_what_to_do() -> None:
    ds = synthetic_run()
    with pytest.raises(MetricError, match=r"no flow 'x'; its flows are: 0 'quic-go:cubic', 1"):
        operating_points(ds, "x")
    with pytest.raises(MetricError, match="no flow 2"):
        operating_points(ds, 2)
    with pytest.raises(MetricError, match="0 operating points, but a hull needs 3"):
        operating_points(ds, 0, skip_start_s=19.9)
    with pytest.raises(MetricError, match="2 operating points"):
        operating_points(ds, 0, interval_rtts=300.0, skip_start_s=2.0)
    with pytest.raises(MetricError, match="0 or more"):
        operating_points(ds, 0, skip_end_s=-1.0)
    with pytest.raises(MetricError, match="impossible"):
        operating_points(ds, 0, interval_rtts=0.0)
    with pytest.raises(MetricError, match="shorter than the bins"):
        operating_points(without_packets(ds), 0, interval_rtts=1.0)


def test_a_run_without_a_hull_says_how_long_it_must_be() -> None:
    # 5 s of the start, 3 windows of 0.5 s, and one at the end; at 600 ms a tenth of the start.
    with pytest.raises(MetricError, match=r"a hull needs 3; the flow must last 7 s or more$"):
        qb.metrics.envelope(steady_run(duration_s=6.9))
    assert len(qb.metrics.envelope(steady_run(duration_s=7.0)).points) == 3
    with pytest.raises(MetricError, match="must last 29 s or more"):
        qb.metrics.envelope(steady_run(duration_s=20.0, rtt_ms=600.0))
    silent = steady_run()
    silent["packet_departure_s"] = silent["packet_departure_s"].where(silent.packet_time_s < 6)
    with pytest.raises(MetricError, match="nothing left the queue in 27 windows, so run longer"):
        qb.metrics.envelope(silent)
    with pytest.raises(MetricError, match=r"choose another definition or a flow of 3.45 s$"):
        qb.metrics.envelope(steady_run(duration_s=1.0), definition="quicbench")
