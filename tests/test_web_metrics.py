"""HTTP/3 against HTTP/2: numbers derived by hand, published tables, and the charts from them."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from chart_words import tables_of
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit.errors import MetricError, StoreError
from qbkit.metrics import (
    acked_table,
    client_consistency,
    median_difference,
    median_loads,
    summary,
    web_differences,
    web_table,
)
from qbkit.metrics.web.loads import first_lost_offset_bytes
from qbkit.spec.web import WebLoad


def load_run(seed: int = 1, protocol: str = "h3", time_s: float = 0.5, lost: int | None = 2):
    """A load of four frames of 1000 B, of which the third may be lost; RTT 20 ms."""
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=20)
    spec = WebLoad(
        bottleneck=link,
        server="envoy:cubic",
        client="go",
        protocol=protocol,
        object_bytes=3000,
        seed=seed,
    )
    fate = np.zeros(4, np.int8)
    departure_s = np.array([0.021, 0.022, 0.023, 0.024])
    if lost is not None:
        fate[lost], departure_s[lost] = 1, np.nan
    return xr.Dataset(
        {
            "packet_fate": ("packet", fate),
            "packet_departure_s": ("packet", departure_s),
            "packet_size_bytes": ("packet", np.full(4, 1000, np.uint16)),
            # the client sends at 0, 21.5 and 30 ms; half an RTT later it is captured
            "ack_time_s": ("ack", np.array([0.010, 0.0315, 0.040])),
            "handshake_s": ((), 0.02),
            "first_byte_s": ((), 0.04),
            "time_to_last_byte_s": ((), time_s),
        },
        attrs={"web_load": spec.to_json(), "rtt_ms": 20.0},
    )


def test_a_load_is_a_row_with_its_first_retransmission():
    (row,) = web_table([load_run(seed=7)]).to_dict("records")
    assert (row["server"], row["client"], row["protocol"]) == ("envoy:cubic", "go", "h3")
    assert (row["object_bytes"], row["rtt_ms"], row["loss_percent"]) == (3000, 20.0, 0.0)
    assert (row["seed"], row["lost_packets"]) == (7, 1)
    # two frames were sent before the lost one
    assert row["first_retransmission_offset_bytes"] == 2000
    assert math.isnan(first_lost_offset_bytes(load_run(lost=None)))


def test_the_summary_of_a_load_is_over_its_own_time():
    report = json.dumps({"bytes": 3000})
    ds = load_run(lost=None, time_s=0.15).assign(
        packet_time_s=("packet", np.array([0.001, 0.120, 0.130, 0.190])),
        packet_departure_s=("packet", np.array([0.002, 0.121, 0.131, 0.191])),
        packet_flow=("packet", np.zeros(4, np.int8)),
        base_rtt_ms=("flow", [20.0]),
        receiver_bytes=("flow", [np.nan]),
        start_s=("flow", [0.0]),
        stop_s=("flow", [0.2]),
    )
    words = {"label": "h3 envoy:cubic", "stack": "envoy", "controller": "cubic"}
    ds = ds.assign_coords({name: ("flow", [word]) for name, word in words.items()})
    ds = ds.assign_attrs(first_packet_s=0.01, client_report=report, duration_s=0.2, bin_s=0.1)
    row = summary(ds).iloc[0]
    # Before it another connection sent a frame, and after it the connection was closed with one.
    assert row["throughput_mbps"] == pytest.approx(2000 * 8 / 0.15 / 1e6)
    assert row["goodput_mbps"] == pytest.approx(3000 * 8 / 0.15 / 1e6)
    dead = ds.assign(time_to_last_byte_s=np.nan).assign_attrs(client_report="{}")
    row = summary(dead).iloc[0]
    assert row["throughput_mbps"] == pytest.approx(4000 * 8 / 0.2 / 1e6)
    assert math.isnan(row["goodput_mbps"])


def test_acknowledged_bytes_are_those_that_had_arrived():
    table = acked_table(load_run())
    assert table["time_s"].tolist() == pytest.approx([0.0, 0.0215, 0.030])
    assert table["bytes"].tolist() == [0, 1000, 3000]  # the lost frame never counts
    assert acked_table(load_run(), points=2)["bytes"].tolist() == [0, 3000]


def test_the_connection_before_early_data_is_no_part_of_a_load():
    run = load_run(lost=0)
    spec = {**json.loads(run.attrs["web_load"]), "zero_rtt": True}
    run = run.assign(packet_time_s=("packet", [0.005, 0.03, 0.03, 0.03]))
    run = run.assign_attrs(web_load=json.dumps(spec), first_packet_s=0.0215)
    (row,) = web_table([run]).to_dict("records")
    assert row["lost_packets"] == 0 and math.isnan(row["first_retransmission_offset_bytes"])
    assert acked_table(run)["time_s"].tolist() == pytest.approx([0.0, 0.0085])


def test_the_difference_is_relative_to_the_reference():
    low_high = np.array([1.0, 2.0, 3.0])
    difference, low, high = median_difference(low_high * 0.9, low_high)
    assert difference == pytest.approx(-10)
    assert low < -10 < high
    same = np.full(5, 2.0)
    assert median_difference(same, same) == (0.0, 0.0, 0.0)
    with pytest.raises(MetricError, match="two or more loads"):
        median_difference(same[:1], same)


@pytest.mark.slow
@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=20), st.floats(0.5, 2))
def test_scaling_all_times_scales_the_difference(times: list[float], factor: float):
    reference = np.array(times)
    difference, low, high = median_difference(reference * factor, reference)
    assert difference == pytest.approx(100 * (factor - 1), abs=1e-6)
    assert low <= difference + 1e-6 and high >= difference - 1e-6


def table_of(h2: list[float], h3: list[float]) -> pd.DataFrame:
    runs = [load_run(i, "h2", time_s) for i, time_s in enumerate(h2)]
    return web_table(runs + [load_run(i, "h3", time_s) for i, time_s in enumerate(h3)])


def test_each_setting_compares_its_two_protocols():
    (cell,) = web_differences(table_of([1.0, 2.0, 4.0], [1.0, 1.5, 9.0])).to_dict("records")
    assert (cell["h2_median_s"], cell["h3_median_s"]) == (2.0, 1.5)
    assert cell["difference_percent"] == pytest.approx(-25)
    assert (cell["h2_loads"], cell["h3_loads"]) == (3, 3)
    assert web_differences(table_of([1.0], [1.0, 2.0])).empty


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"link": "rate_mbps 50.0"}, "differ in their link .*; rate_mbps 50"),
        ({"client": "curl"}, r"differ in their client \(go; curl\); choose those of one value"),
        ({"zero_rtt": True}, "differ in their zero_rtt"),
        ({"tcp_initial_window_packets": 32}, r"tcp_initial_window_packets \(10; 32\)"),
    ],
)
def test_loads_that_are_no_repetitions_are_not_compared_as_such(values, words):
    table = table_of([1.0, 2.0], [1.0, 2.0])
    both = pd.concat([table, table.assign(**values)])
    with pytest.raises(MetricError, match=words):
        web_differences(both)
    if "client" not in values:
        with pytest.raises(MetricError, match=words):
            client_consistency(both)
        with pytest.raises(MetricError, match=words):
            median_loads(both)
    table["zero_rtt"] = table.protocol == "h3"  # may differ between the protocols
    assert len(web_differences(table)) == 1


def test_a_link_is_named_by_all_that_is_set():
    (text,) = web_table([load_run()]).link
    assert text == 'buffer_bdp 1.0, qdisc "fifo", rate_mbps 10.0'


def test_the_best_client_is_at_zero():
    table = table_of([1.0, 1.0], [2.0, 2.0])
    other = table.assign(client="curl", time_to_last_byte_s=table.time_to_last_byte_s * 1.2)
    found = client_consistency(pd.concat([table, other]))
    by_client = found.groupby("client")["difference_percent"].max()
    assert by_client["go"] == 0 and by_client["curl"] == pytest.approx(20)


def test_the_median_load_is_one_of_the_loads():
    chosen = median_loads(table_of([3.0, 1.0, 2.0], [5.0, 4.0]))
    assert chosen["time_to_last_byte_s"].tolist() == [2.0, 4.0]


def test_published_tables_come_back_and_a_change_is_noticed(tmp_path: Path):
    table = table_of([1.0, 2.0], [1.5, 2.5])
    qb.publish_tables({"loads": table}, tmp_path, facts={"what": "a test"})
    assert json.loads((tmp_path / "index.json").read_text())["what"] == "a test"
    pd.testing.assert_frame_equal(qb.load_tables(tmp_path)["loads"], table, check_dtype=False)
    (tmp_path / "loads.csv").write_text("server\n")
    with pytest.raises(StoreError, match="not the file that was published"):
        qb.load_tables(tmp_path)
    with pytest.raises(StoreError, match="no published tables"):
        qb.load_tables(tmp_path / "nowhere")


def test_the_heat_map_labels_what_differs_and_a_click_chooses_its_loads():
    table = table_of([1.0, 2.0, 4.0], [1.0, 1.5, 9.0])
    curves = table.iloc[:1].merge(acked_table(load_run()), how="cross")
    chart = qb.plots.web_objects_chart(table, curves, base_rtt_ms=20).to_dict()
    tables = tables_of(chart)
    (cell,) = next(rows for rows in tables if "percent" in rows[0])
    assert (cell["row"], cell["column"]) == ("envoy:cubic · 3 KB", "0 %, +0 ms")
    assert cell["label"] == "(−25)" and float(cell["low"]) <= -25 < 0 < float(cell["high"])
    sure = qb.plots.web_objects_chart(table_of([2.0, 2.1], [1.0, 1.05]), curves, base_rtt_ms=20)
    (cell,) = next(rows for rows in tables_of(sure.to_dict()) if "percent" in rows[0])
    assert cell["label"] == "−50", "without 0 in the interval there are no brackets"
    assert chart["params"][0]["select"]["fields"] == ["row", "column"]
    with pytest.raises(MetricError, match="run more seeds"):
        qb.plots.web_objects_chart(table_of([1.0], [1.0]), curves, base_rtt_ms=20)


def test_small_differences_have_no_label():
    table = table_of([2.0, 2.0], [2.05, 2.05])
    chart = qb.plots.web_objects_chart(
        table, table.iloc[:1].merge(acked_table(load_run()), how="cross"), base_rtt_ms=20
    ).to_dict()
    tables = tables_of(chart)
    assert next(rows for rows in tables if "percent" in rows[0])[0]["label"] == ""


def test_clients_are_compared_only_where_there_are_two():
    table = table_of([1.0, 1.0], [2.0, 2.0])
    with pytest.raises(MetricError, match="no setting has two clients"):
        qb.plots.client_consistency_chart(table, base_rtt_ms=20)
    other = table.assign(client="curl", time_to_last_byte_s=table.time_to_last_byte_s * 1.2)
    chart = qb.plots.client_consistency_chart(pd.concat([table, other]), base_rtt_ms=20)
    (text,) = chart.to_dict()["datasets"].values()
    rows = list(csv.DictReader(io.StringIO(text)))
    labels = {(row["row"].split(" · ")[-1], row["label"]) for row in rows}
    assert labels == {("go", ""), ("curl", "20")}
