"""Notebook 05 with logs of one's own: one of each kind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import test_readers_capture as captures
import test_readers_netlog as netlogs
from chart_words import said
from notebook_cells import shown
from quic_pair import Seen, upload

import qbkit as qb
from qbkit import plots
from qbkit.errors import MetricError, TraceError

HTTP2 = [e for e in netlogs.OTHERS if e["source"]["id"] == 11]
OLD = ["relative_time", "category", "event", "data"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> dict[str, Path]:
    """A log of each kind, whose names say nothing."""
    folder = tmp_path_factory.mktemp("logs")
    seen: Seen = upload(60_000, frozenset({8}))
    quic, _ = seen.write(folder)
    head = {"qlog_version": "0.3", "trace": {"vantage_point": {"type": "client"}}}
    events = seen.client_qlog["traces"][0]["events"]
    old = [[e["time"], *e["name"].split(":"), e["data"]] for e in events]
    trace = {"vantage_point": {"type": "client"}, "event_fields": OLD, "events": old}
    texts = {
        "qlog": json.dumps(seen.client_qlog),
        "qlog of lines": "\n".join(map(json.dumps, [head, *events])),
        "qlog draft-01": json.dumps({"qlog_version": "draft-01", "traces": [trace]}),
        "netlog": netlogs.lines(netlogs.EVENTS),
        "netlog of HTTP/2": netlogs.document(HTTP2),
    }
    found = {}
    for number, (kind, text) in enumerate(texts.items()):
        found[kind] = folder / f"log{number}"
        found[kind].write_text(text)
    found["pcap"] = captures.write(folder, captures.TRANSFER, "a.pcap")
    found["pcapng"] = captures.write(folder, captures.TRANSFER, "b.pcapng")
    found["quic"] = quic
    return found


def test_the_first_bytes_say_which_reader_takes_a_file(logs):
    for kind, path in logs.items():
        if kind == "quic" and not shutil.which("tshark"):
            continue
        source = qb.read_log(path).attrs["source"]
        assert source == {"pcapng": "pcap", "quic": "pcap"}.get(kind, kind.split()[0])


def test_read_log_takes_the_choices_of_the_reader_that_its_message_names(tmp_path):
    path, case = tmp_path / "two.qlog", {"event_fields": OLD, "events": [[1, "a", "b", {}]]}
    event = [1, "transport", "packet_sent", {"packet_type": "1RTT", "header": {"packet_number": 7}}]
    traces = [{**case, "vantage_point": {"type": t}} for t in ("client", "server")]
    traces[1]["events"] = [event]
    path.write_text(json.dumps({"qlog_version": "draft-01", "traces": traces}))
    with pytest.raises(TraceError, match="as trace=0"):
        qb.read_log(path)
    assert qb.read_log(path, trace="server").sent_number.values.tolist() == [7]
    with pytest.raises(TraceError, match=r"is a qlog, where port chooses nothing; trace, group"):
        qb.read_log(path, port=443)


def test_a_draft_01_of_the_same_events_is_the_same_log(logs):
    assert (
        qb.read_log(logs["qlog"])
        .drop_attrs()
        .identical(qb.read_log(logs["qlog draft-01"]).drop_attrs())
    )


@pytest.mark.slow
def test_a_chart_names_those_that_do_not_report_what_it_shows(logs):
    mixed = {kind: qb.read_log(logs[kind]) for kind in ("qlog", "pcap", "netlog of HTTP/2")}

    window = plots.cwnd_chart(mixed)
    assert "Not reported: congestion window of pcap." in said(window)
    assert "Not reported: congestion window of netlog of HTTP/2." in said(window)
    assert "bytes in flight" in str(window.to_dict())
    growth = "Not reported: growth of the congestion window of pcap"
    assert growth in said(plots.cwnd_chart({"pcap": mixed["pcap"]}))
    for chart in (plots.bytes_acked_chart, plots.bandwidth_chart, plots.root_cause_chart):
        assert "of netlog of HTTP/2." in said(chart(mixed))
    for chart in (plots.cwnd_chart, plots.bytes_acked_chart, plots.bandwidth_chart):
        with pytest.raises(MetricError, match="the log of x reports no "):
            chart({"x": mixed["netlog of HTTP/2"]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "reference"),
    [
        ("qlog draft-01", "netlog"),
        ("pcap", "pcapng"),
        ("netlog of HTTP/2", "qlog of lines"),
        ("quic", "qlog"),
        ("netlog of HTTP/2", "netlog of HTTP/2"),
    ],
)
def test_notebook_05_takes_a_log_of_each_kind(logs, test, reference):
    if "quic" in (test, reference) and not shutil.which("tshark"):
        pytest.skip("apt-get install tshark")
    parameters = {
        **{"test": f"A: {test}", "reference": f"B: {reference}", "study_seeds": 0},
        **{"test_log": str(logs[test]), "reference_log": str(logs[reference])},
    }
    found = shown("05", parameters)
    empty = found.count("nothing to show here: ")
    charts = found.count("qbkit-chart") > 0
    if test == reference == "netlog of HTTP/2":
        assert empty == 6  # window, bytes, bandwidth, handshake, losses, all at once
    else:
        assert charts
        assert empty < 6
    assert "Not reported: congestion window of A: pcap" in found or test != "pcap"


@pytest.mark.slow
def test_notebook_05_opens_the_chosen_trace_of_two(tmp_path, logs):
    log = json.loads(logs["qlog draft-01"].read_text())
    other = {
        "vantage_point": {"type": "server"},
        "event_fields": OLD,
        "events": [[1, "a", "b", {}]],
    }
    log["traces"].append(other)
    parameters = {
        **{"study_seeds": 0, "reference_log": str(logs["qlog"])},
        **{"test_log": str(tmp_path / "two.qlog"), "test_choice": {"trace": "client"}},
    }
    (tmp_path / "two.qlog").write_text(json.dumps(log))
    assert "qbkit-chart" in shown("05", parameters)
