"""A flow of a run as a connection's events."""

from __future__ import annotations

import json

import numpy as np
import pytest
from synthetic import synthetic_run

import qbkit as qb
from qbkit.errors import TraceError


@pytest.fixture(scope="module")
def run():
    return synthetic_run(flows=("quic-go:cubic", "tcp:cubic"), duration_s=5, seed=1)


def test_what_the_queue_saw_of_a_flow(run):
    ds = qb.flow_events(run, 1)
    mine = run.packet_flow.values == 1
    dropped = mine & np.isnan(run.packet_departure_s.values)
    assert ds.sizes["sent"] == mine.sum()
    assert ds.sizes["lost"] == dropped.sum()
    assert ds.sizes["sent"] == ds.sizes["acked"] + ds.sizes["lost"]
    assert ds.sent_number.values.tolist() == list(range(int(mine.sum())))
    both = np.concatenate([ds.acked_number.values, ds.lost_number.values])
    assert sorted(both) == ds.sent_number.values.tolist()
    first = float(run.packet_departure_s.values[mine & ~dropped].min())
    assert float(ds.acked_time_s[0]) == pytest.approx(first + run.base_rtt_ms.values[1] / 1e3)
    assert np.all(np.diff(ds.acked_time_s) >= 0)
    assert set(ds.lost_trigger.values) <= {"queue"}
    assert (ds.sent_offset_bytes.values == -1).all()
    assert int(ds.sent_size_bytes.sum()) == int(run.packet_size_bytes.values[mine].sum())
    assert ds.sizes["received"] == (run.ack_flow.values == 1).sum()
    assert ds.attrs["source"] == "run"
    assert ds.attrs["vantage_point"] == "network"
    assert ds.attrs["title"] == run.label.values[1]


def test_the_telemetry_s_samples(run):
    ds = qb.flow_events(run, str(run.label.values[0]))
    mine = run.sample_flow.values == 0
    assert np.array_equal(ds.metric_time_s, run.sample_time_s.values[mine])
    assert np.array_equal(ds.cwnd_bytes, run.sample_cwnd_bytes.values[mine], equal_nan=True)
    assert ds.cwnd_bytes.attrs["units"] == "B"
    assert ds.delivery_rate_mbps.attrs["units"] == "Mbit/s"
    names = ds.state_name.values
    assert set(names) <= {"slow_start", "congestion_avoidance", "recovery"}
    assert (names[1:] != names[:-1]).all()


HEAD_OF_QLOG = {"qlog_version", "event_schemas", "reference_time"}


def test_the_same_names_as_a_log_s(run, tmp_path):
    sent = {"header": {"packet_type": "1RTT", "packet_number": 0}, "raw": {"length": 1200}}
    events = [{"time": 1.0, "name": "transport:packet_sent", "data": sent}]
    log_of_one = {"qlog_version": "0.3", "traces": [{"events": events}]}
    (tmp_path / "x.qlog").write_text(json.dumps(log_of_one))
    log, flow = qb.read_qlog(tmp_path / "x.qlog"), qb.flow_events(run, 0)
    assert set(log.variables) <= set(flow.variables)
    assert set(log.attrs) - HEAD_OF_QLOG == set(flow.attrs)
    for name in log.variables:
        assert log[name].dims == flow[name].dims
        assert log[name].dtype.kind == flow[name].dtype.kind


def test_a_flow_that_is_not_there(run):
    with pytest.raises(TraceError, match="no flow 2; it has 2, from 0 on"):
        qb.flow_events(run, 2)
    with pytest.raises(TraceError, match="no flow 'x'; it has quic-go:cubic, tcp:cubic"):
        qb.flow_events(run, "x")
    with pytest.raises(TraceError, match="no packets"):
        qb.flow_events(run.drop_vars("packet_flow"), 0)
