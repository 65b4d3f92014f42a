"""Fairness and summary tables, and the synthetic runs that other tests build on."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run
from test_metrics_points import without_packets

from qbkit.errors import MetricError
from qbkit.metrics import flow_summaries, jain_index, link_share, summary, throughput_ratio
from qbkit.metrics.flows.summary import without_zeros
from qbkit.plots import run_html
from qbkit.studies.race import Race


def two_flows() -> xr.Dataset:
    """Flow a: 4 packets of 1000 B in 0..10 s, one dropped; flow b: 2 of 500 B in 4..8 s."""
    return xr.Dataset(
        {
            "packet_time_s": ("packet", [0.5, 4.5, 5.0, 5.5, 7.0, 9.0]),
            "packet_departure_s": ("packet", [0.51, 4.52, 5.03, np.nan, 7.01, 9.03]),
            "packet_flow": ("packet", np.array([0, 1, 0, 0, 1, 0], "uint8")),
            "packet_size_bytes": ("packet", np.array([1000, 500, 1000, 1000, 500, 1000], "uint16")),
            "start_s": ("flow", [0.0, 4.0]),
            "stop_s": ("flow", [10.0, 8.0]),
            "base_rtt_ms": ("flow", [50.0, 70.0]),
            "receiver_bytes": ("flow", [2500.0, np.nan]),
        },
        coords={
            "flow": [0, 1],
            "label": ("flow", ["a", "b"]),
            "stack": ("flow", ["tcp", "quinn"]),
            "controller": ("flow", ["cubic", "bbr"]),
        },
        attrs={"duration_s": 10.0, "bin_s": 0.1},
    )


def test_summary_by_hand() -> None:
    table = summary(two_flows())
    a, b = table.iloc[0], table.iloc[1]
    assert (a["label"], a["stack"], a["controller"]) == ("a", "tcp", "cubic")
    assert a["goodput_mbps"] == pytest.approx(2500 * 8 / 10 / 1e6)
    assert a["throughput_mbps"] == pytest.approx(3000 * 8 / 10 / 1e6)
    assert a["loss_percent"] == pytest.approx(25.0)  # 1 of 4
    # Delays 10, 30 and 30 ms: mean 70 / 3, variance 3200 / 36.
    assert a["queue_delay_mean_ms"] == pytest.approx(70 / 3)
    assert a["rtt_mean_ms"] == pytest.approx(50 + 70 / 3)
    assert a["rtt_std_ms"] == pytest.approx((3200 / 36) ** 0.5)
    assert np.isnan(b["goodput_mbps"])
    assert b["throughput_mbps"] == pytest.approx(1000 * 8 / 4 / 1e6)  # over its own 4 s
    assert b["rtt_mean_ms"] == pytest.approx(70 + 15)


def with_reverse_traffic() -> xr.Dataset:
    """Both flows of `two_flows`, whose ACKs wait 0, 4 and 8 ms; one ACK is dropped."""
    ds = two_flows().assign_coords(direction=("flow", ["forward", "reverse"]))
    # Half of 50 ms after 0.51, 5.03 and 9.03 s at the earliest; b's after 4.52 and 7.01 s.
    return ds.assign(
        ack_time_s=("ack", [0.53, 0.54, 4.56, 5.06, 5.07, 9.06]),
        ack_departure_s=("ack", [0.53, 0.544, 4.56, np.nan, 5.078, 9.06]),
        ack_flow=("ack", np.array([0, 0, 1, 0, 0, 0], "uint8")),
    )


def test_the_queueing_delay_of_acks_is_part_of_the_rtt() -> None:
    a, b = (row for _, row in summary(with_reverse_traffic()).iterrows())
    # Packets waited 10, 30 and 30 ms, and their ACKs, the first that came through, 4, 8 and 0.
    assert a["queue_delay_mean_ms"] == pytest.approx(70 / 3)
    assert a["rtt_mean_ms"] == pytest.approx(50 + (14 + 38 + 30) / 3)
    assert a["rtt_std_ms"] == pytest.approx(np.std([14, 38, 30]))
    # The second packet of b has no ACK after it, so nothing is known of its RTT.
    assert b["rtt_mean_ms"] == pytest.approx(70 + 20)


def test_flows_in_opposite_directions_share_no_bottleneck() -> None:
    run = with_reverse_traffic()
    with pytest.raises(MetricError, match="go in opposite directions, so they share no bottleneck"):
        throughput_ratio(run, "a", "b")
    # From 4 to 8 s, a got 1000 bytes and b now 250: of both, 1250² / (2 (1000² + 250²)).
    run["packet_size_bytes"][[1, 4]] = 125
    assert jain_index(run) == 1  # of the one forward flow
    assert jain_index(run.drop_vars("direction")) == pytest.approx(25 / 34)


def test_a_race_has_shares_of_one_link_only() -> None:
    race = Race(with_reverse_traffic())
    assert race.frame().share_percent.isna().all()
    assert "Mbit/s; not of one link at one time>" in repr(race)


def parking_lot() -> xr.Dataset:
    """Flow a crosses two links, b the first and c the second; 8, 4 and 2 packets of 1000 B."""
    flow = np.repeat([0, 1, 2], [8, 4, 2])
    time_s = np.linspace(1, 9, len(flow))
    return xr.Dataset(
        {
            "packet_time_s": ("packet", time_s),
            "packet_departure_s": ("packet", time_s + 0.01),
            "packet_flow": ("packet", flow),
            "packet_size_bytes": ("packet", np.full(len(flow), 1000)),
            "balance_in_packets": (("flow", "bottleneck"), [[8, 8], [4, 0], [0, 2]]),
        },
        coords={"flow": [0, 1, 2], "label": ("flow", ["a", "b", "c"])},
        attrs={"duration_s": 10.0, "bin_s": 0.1},
    )


def test_flows_of_different_links_share_no_bottleneck() -> None:
    run = parking_lot()
    assert throughput_ratio(run, "a", "b") == pytest.approx(8 / 12)
    assert throughput_ratio(run, "c", "a") == pytest.approx(2 / 10)
    assert link_share(run, ["b"]) == pytest.approx(4 / 12)  # of the first link
    assert link_share(run, ["c"]) == pytest.approx(2 / 10)  # of the second
    assert link_share(run, ["a", "c"]) == 1
    words = "'b' and 'c' do not all cross one link, so they share no bottleneck"
    with pytest.raises(MetricError, match=words):
        throughput_ratio(run, "b", "c")
    with pytest.raises(MetricError, match=words):
        link_share(run, ["b", "c"])
    with pytest.raises(MetricError, match="'a' and 'b' and 'c' do not all cross one link"):
        jain_index(run)
    with pytest.raises(MetricError, match="'a' crosses 2 links, and has a share of each; compare"):
        link_share(run, ["a"])


def test_flow_summaries_are_json() -> None:
    first, second = flow_summaries(two_flows())
    assert list(first) == [
        "label",
        "goodput_mbps",
        "throughput_mbps",
        "loss_percent",
        "queue_loss_percent",
        "random_loss_percent",
        "rtt_mean_ms",
        "rtt_std_ms",
        "queue_delay_mean_ms",
        "mean_frame_bytes",
    ]
    assert second["goodput_mbps"] is None
    json.dumps([first, second], allow_nan=False)


@pytest.mark.parametrize(("percent", "of_tcp"), [(0, 7), (5, math.nan)])
def test_duplicate_sacks_of_duplicated_packets_are_no_spurious_losses(percent, of_tcp) -> None:
    ds = synthetic_run(flows=["quic-go:cubic", "tcp:cubic"])
    ds = ds.assign(sample_spurious_losses=xr.full_like(ds.sample_srtt_ms, 7.0))
    spec = json.loads(ds.attrs["spec"])
    spec["bottleneck"]["duplicate_percent"] = percent
    found = summary(ds.assign_attrs(spec=json.dumps(spec)))["spurious_losses"]
    assert found.tolist() == pytest.approx([7, of_tcp], nan_ok=True)


def test_a_column_of_zeros_is_known_and_not_printed() -> None:
    runs = [synthetic_run(flows=["quic-go:cubic"], seed=seed) for seed in (1, 2)]
    runs[1] = runs[1].assign(sample_spurious_losses=runs[1].sample_spurious_losses + 4)
    tables = [summary(run) for run in runs]
    assert pd.concat(tables).spurious_losses.mean() == 2
    assert "spurious_losses" not in without_zeros(tables[0])
    assert "spurious_losses" in without_zeros(tables[1])
    assert "Spurious losses" not in run_html(runs[0])
    assert "Spurious losses" in run_html(runs[1])
    lossless = tables[0].assign(queue_loss_percent=0.0)
    assert "queue_loss_percent" in without_zeros(lossless)  # a column of every run


def test_summary_without_packets_uses_bins() -> None:
    ds = synthetic_run()
    packets, bins = summary(ds), summary(without_packets(ds))
    same = ["label", "goodput_mbps", "throughput_mbps", "rtt_mean_ms", "queue_delay_mean_ms"]
    for name in same[1:]:
        assert bins[name].to_numpy() == pytest.approx(packets[name].to_numpy(), rel=1e-3)
    assert bins[["loss_percent", "rtt_std_ms"]].isna().all(axis=None)


def test_throughput_ratio_by_hand() -> None:
    # Both are active from 4 to 8 s: a gets 1000 B through there, b 1000 B.
    assert throughput_ratio(two_flows(), "a", "b") == pytest.approx(0.5)
    ds = synthetic_run(shares=(0.6, 0.2))  # below the link's rate: what is asked is what leaves
    assert throughput_ratio(ds, 0, 1) == pytest.approx(0.75, abs=0.01)
    assert throughput_ratio(without_packets(ds), 0, 1) == pytest.approx(0.75, abs=0.01)


@given(st.floats(0.05, 0.9), st.floats(0.05, 0.9))
@settings(deadline=None, max_examples=15)
def test_ratios_of_a_pair_add_up_to_one(x: float, y: float) -> None:
    ds = synthetic_run(shares=(x, y), duration_s=2.0, rate_mbps=2.0)
    assert throughput_ratio(ds, 0, 1) + throughput_ratio(ds, 1, 0) == pytest.approx(1.0)


def test_jain_by_hand() -> None:
    # (1 + 2 + 3)^2 / (3 x (1 + 4 + 9)) = 36 / 42.
    assert jain_index([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain_index([5, 0, 0, 0]) == pytest.approx(1 / 4)
    assert jain_index(two_flows()) == pytest.approx(1.0)


@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=50).filter(lambda v: max(v) > 1e-300),
    st.floats(1e-3, 1e3),
)
def test_jain_bounds_order_and_scale(values: list[float], factor: float) -> None:
    index = jain_index(values)
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index(values[::-1]) == pytest.approx(index)
    assert jain_index([v * factor for v in values]) == pytest.approx(index)
    assert jain_index([7.0] * len(values)) == pytest.approx(1.0)


def test_fairness_refusals() -> None:
    ds = two_flows()
    with pytest.raises(MetricError, match="needs two flows"):
        throughput_ratio(ds, "a", 0)
    with pytest.raises(MetricError, match="no flow 'c'"):
        throughput_ratio(ds, "a", "c")
    ds["start_s"] = ("flow", [0.0, 4.0])
    ds["stop_s"] = ("flow", [3.0, 8.0])
    with pytest.raises(MetricError, match="never active at the same time"):
        throughput_ratio(ds, "a", "b")
    for wrong in ([], [0, 0], [-1, 2], [np.nan, 1]):
        with pytest.raises(MetricError, match="Jain's index needs"):
            jain_index(wrong)
    for wrong in ([[1, 2], [3, 4]], synthetic_run().throughput_mbps, 5):  # flows and times together
        with pytest.raises(MetricError, match="an array of one dimension"):
            jain_index(wrong)
    with pytest.raises(MetricError, match="values must be a number or an array of numbers"):
        jain_index(["1", "2"])


def test_synthetic_runs_follow_the_schema() -> None:
    ds = synthetic_run(seed=3)
    assert ds.identical(synthetic_run(seed=3))
    assert not ds.identical(synthetic_run(seed=4))
    for name in ds.data_vars:
        assert {"units", "long_name"} <= set(ds[name].attrs), name
    assert ds["packet_time_s"].to_index().is_monotonic_increasing or bool(
        (np.diff(ds["packet_time_s"]) >= 0).all()
    )
    left = np.isfinite(ds["packet_departure_s"].values)
    bits = ds["packet_size_bytes"].values[left].astype(float).sum() * 8
    binned = ds["throughput_mbps"].values.sum() * 0.1 * 1e6
    assert binned == pytest.approx(bits, rel=1e-2)
    assert ds["dropped_packets"].values.sum() == (~left).sum() > 0
    waited_ms = (ds["packet_departure_s"] - ds["packet_time_s"]).values[left] * 1e3
    assert waited_ms.min() >= 0
    assert waited_ms.max() <= ds.attrs["queue_bytes"] * 8 / ds.attrs["rate_mbps"] / 1e3
