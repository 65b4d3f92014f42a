"""The qlog that a stack kept of a flow, on the clock of its run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic import synthetic_run

from qbkit import Experiment, plots
from qbkit.execution.runner import kept_folder
from qbkit.traces.logs.kept import own_events
from qbkit.traces.logs.run_flow import flow_events

HEAD = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"common_fields": {}}}


def write_log(path: Path, side: str, size: int, states: list[str]) -> None:
    """A qlog whose side sends a packet at 0 and 100 ms, and has a window and states."""
    events = [
        (t, "transport:packet_sent", {"header": {"packet_type": "1RTT", "packet_number": n},
                                      "raw": {"length": size}})
        for n, t in enumerate((5.0, 105.0))
    ]  # fmt: skip
    events.append((55.0, "recovery:metrics_updated", {"congestion_window": 12345}))
    events += [(65.0 + i, "recovery:congestion_state_updated", {"new": s})
               for i, s in enumerate(states)]  # fmt: skip
    head = {**HEAD, "trace": {"vantage_point": {"type": side}, **HEAD["trace"]}}
    lines = [head, *({"time": t, "name": n, "data": d} for t, n, d in sorted(events, key=str))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\x1e" + json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def run():
    return synthetic_run(duration_s=3)


def test_the_window_is_of_the_senders_log_on_the_clock_of_the_run(run, tmp_path):
    write_log(tmp_path / "flows/0/a.sqlog", "client", 1200, ["slow_start"])
    write_log(tmp_path / "flows/0/b.sqlog", "server", 40, ["recovery"])
    events = own_events(run, tmp_path)
    assert events.attrs["own"] == "metric state"
    assert events.cwnd_bytes.values.tolist() == [12345]
    assert events.state_name.values.tolist() == ["slow_start"]
    first_s = flow_events(run).sent_time_s.values.min() - run.base_rtt_ms.values[0] / 2e3
    assert events.metric_time_s.values == pytest.approx([first_s + 0.05])
    assert events.state_time_s.values == pytest.approx([first_s + 0.06])
    assert events.sizes["sent"] == flow_events(run).sizes["sent"]


def test_what_the_log_lacks_is_of_the_telemetry(run, tmp_path):
    telemetry = flow_events(run)
    assert own_events(run, tmp_path).identical(telemetry.assign_attrs(own=""))
    write_log(tmp_path / "flows/0/a.qlog", "client", 1200, ["65538", "65541"])
    events = own_events(run, tmp_path)
    assert events.attrs["own"] == "metric"
    assert np.array_equal(events.state_name.values, telemetry.state_name.values)


@pytest.mark.guest
def test_the_telemetry_and_the_log_of_a_real_run_agree(tmp_path):
    run = Experiment(flows=["quic-go:cubic?qlog=true"], duration_s=4).run(
        out=tmp_path / "run.nc", keep=("pcap", "qlog")
    )
    telemetry, own = flow_events(run), own_events(run, kept_folder(tmp_path / "run.nc"))
    assert own.sizes["metric"] > 5 * telemetry.sizes["metric"]
    assert own.attrs["own"] == "metric state"
    changes = own.state_time_s.values
    assert len(changes) == telemetry.sizes["state"]
    assert telemetry.state_time_s.values[1:] == pytest.approx(changes[1:], abs=0.02)
    packets = run.qb.packets(around_s=2, count=50)
    chart = plots.sequence_chart(run, packets, (1.9, 2.1), kept=kept_folder(tmp_path / "run.nc"))
    assert "By its qlog: window and states of quic-go:cubic" in json.dumps(chart.to_dict())
