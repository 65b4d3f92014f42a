"""qlog files: those that real stacks write, and those that nobody should."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qbkit as qb
from qbkit import stacks
from qbkit.errors import QbkitError, TraceError

HEAD = {
    "qlog_version": "0.3",
    "qlog_format": "JSON-SEQ",
    "trace": {"vantage_point": {"type": "client"}},
}
EVENTS = [
    {"time": 0, "name": "transport:packet_sent",
     "data": {"header": {"packet_type": "initial", "packet_number": 0}, "raw": {"length": 1200}}},
    {"time": 40.5, "name": "quic:packet_received",
     "data": {"header": {"packet_type": "initial", "packet_number": 0},
              "frames": [{"frame_type": "ack", "acked_ranges": [[0]]}, {"frame_type": "padding"}]}},
    *({"time": 50 + n, "name": "packet_sent",
       "data": {"header": {"packet_type": "1RTT", "packet_number": n}, "raw": {"length": 1000}}}
      for n in range(10)),
    {"time": 70, "name": "recovery:metrics_updated",
     "data": {"congestion_window": 12000, "smoothed_rtt": 40, "ssthresh": (1 << 64) - 1}},
    {"time": 80, "name": "recovery:packet_lost",
     "data": {"header": {"packet_number": 3}, "trigger": "reordering_threshold"}},
    {"time": 81, "name": "recovery:packet_lost", "data": {"type": "1RTT", "packet_number": 4}},
    {"time": 90, "name": "quic:recovery_metrics_updated",
     "data": {"cwnd": 6000, "pacing_rate": 2e6}},
    {"time": 91, "name": "recovery:congestion_state_updated", "data": {"new": "recovery"}},
    {"time": 95, "name": "transport:packet_received",
     "data": {"header": {"packet_type": "1RTT", "packet_number": 1},
              "frames": [{"frame_type": "ack", "acked_ranges": [[0, 2], [4, 9]]}]}},
    {"time": 96, "name": "http:frame_created", "data": {"frames": 7, "header": "something else"}},
]  # fmt: skip


def sequence(events=EVENTS, mark: str = "\x1e") -> bytes:
    return "".join(f"{mark}{json.dumps(e)}\n" for e in [HEAD, *events]).encode()


def document(events=EVENTS) -> bytes:
    trace = {"title": "t", "vantage_point": {"type": "client"}, "events": events}
    return json.dumps({"qlog_version": "0.3", "qlog_format": "JSON", "traces": [trace]}).encode()


def read(folder: Path, content: bytes):
    path = folder / "some.qlog"
    path.write_bytes(content)
    return qb.read_qlog(path)


@pytest.mark.parametrize(
    "content", [sequence(), sequence(mark=""), document()], ids=["seq", "nd", "doc"]
)
def test_every_serialisation_gives_the_same_tables(tmp_path, content):
    ds = read(tmp_path, content)
    assert ds.attrs["vantage_point"] == "client"
    assert json.loads(ds.attrs["warnings"]) == ["some.qlog: HTTP frames of no stream, left out: 1"]
    assert ds.sent_number.values.tolist() == [0, *range(10)]
    assert ds.sent_space.values.tolist() == [0] + [2] * 10
    assert ds.sent_size_bytes.values.sum() == 11200
    # 0 of the initial space, then 0-2 and 5-9; 4 was lost, and acknowledged after all.
    assert ds.acked_number.values.tolist() == [0, 0, 1, 2, 5, 6, 7, 8, 9]
    assert ds.acked_time_s.values[1:] == pytest.approx(0.095)
    assert ds.lost_number.values.tolist() == [3, 4]
    assert ds.lost_spurious.values.tolist() == [False, True]
    assert ds.lost_trigger.values.tolist() == ["reordering_threshold", ""]
    assert ds.cwnd_bytes.values.tolist() == [12000, 6000]
    assert ds.srtt_ms.values.tolist() == [40, 40]  # logged once, and unchanged since
    assert ds.ssthresh_bytes.values.tolist() == [np.inf, np.inf]
    assert ds.pacing_rate_mbps.values[1] == 2
    assert ds.state_name.values.tolist() == ["recovery"]


def test_wall_clock_and_delta_times(tmp_path):
    late = [{**e, "time": e["time"] + 1_767_225_601_000} for e in EVENTS]
    assert read(tmp_path, sequence(late)).state_time_s.values == pytest.approx(0.091, abs=1e-4)
    head = {**HEAD, "trace": {"common_fields": {"time_format": "delta"}}}
    steps = [{**EVENTS[2], "time": 5, "data": {"header": {"packet_number": n}}} for n in range(3)]
    content = "".join(f"\x1e{json.dumps(e)}\n" for e in [head, *steps]).encode()
    assert read(tmp_path, content).sent_time_s.values == pytest.approx([0.005, 0.01, 0.015])


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_cut_off_anywhere_gives_what_was_before(tmp_path, data):
    content = sequence()
    lines = content.splitlines(keepends=True)
    ends = np.cumsum([len(line) for line in lines]) - 1  # without their newline
    cut = data.draw(st.integers(int(ends[1]), len(content)))
    ds = read(tmp_path, content[:cut])
    whole = int((ends <= cut).sum())
    counted = sum(ds.sizes[d] for d in ("sent", "received", "lost", "metric", "state"))
    assert counted == min(whole, len(EVENTS)) - 1  # less the head; the last event has no table
    rest = content[int(ends[whole - 1]) : cut].strip(b"\x1e\n")
    assert ("cut off" in ds.attrs["warnings"]) == bool(rest)


def test_a_damaged_record_in_the_middle_is_named_and_the_rest_is_read(tmp_path):
    lines = sequence().splitlines(keepends=True)
    broken = b"".join([*lines[:4], b'\x1e{"time": 51, "na\n', *lines[5:]])
    ds = read(tmp_path, broken)
    place = sum(len(line) for line in lines[:4])
    assert f"damaged or cut off at byte {place}; the rest was read" in ds.attrs["warnings"]
    assert ds.sizes["sent"] == 10
    cut = read(tmp_path, document()[:-200])
    assert "damaged or cut off before byte" in cut.attrs["warnings"]
    assert cut.sizes["sent"] == 11


SENT = '{"time": 1, "name": "packet_sent", "data": %s}'
ACKED = '{"time": 1, "name": "packet_received", "data": %s}'


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            SENT % '{"header": {"packet_number": "x"}}',
            "header.packet_number is a text, not a whole number",
        ),
        (SENT % '{"header": {"packet_number": -1}}', "a packet number of -1"),
        (SENT % '{"header": {"packet_number": 1e30}}', "at byte"),
        (SENT % '{"header": {"packet_number": 1}, "raw": {"length": -5}}', "-5 bytes"),
        (
            ACKED % '{"header": {"packet_number": 1}, "frames": [{"acked_ranges": [[5, 1]]}]}',
            "range from 5 to 1",
        ),
        ('{"time": "soon", "name": "packet_sent"}', "time is a text, not a number"),
        (SENT % ('{"raw": ' + "[" * 5000 + "]" * 5000 + "}"), "at byte"),
    ],
)
def test_hostile_records_are_errors_of_one_sentence(tmp_path, record, words):
    with pytest.raises(TraceError, match=re.escape(words)) as raised:
        read(tmp_path, sequence() + b"\x1e" + record.encode() + b"\n")
    assert "\n" not in str(raised.value)


def test_a_huge_acknowledged_range_costs_nothing(tmp_path):
    frame = {"acked_ranges": [[0, (1 << 62) - 1]]}
    event = {
        "time": 99,
        "name": "packet_received",
        "data": {"header": {"packet_number": 2}, "frames": [frame]},
    }
    ds = read(tmp_path, sequence([*EVENTS[:12], event]))
    assert ds.sizes["acked"] == 11


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_bytes_crash_the_reader(tmp_path, data):
    content = bytearray(data.draw(st.sampled_from([sequence(), document(), b""])))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(content)))
        content[place : place + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=20))
    try:
        read(tmp_path, bytes(content))
    except QbkitError as error:
        assert "\n" not in str(error)


def test_files_that_are_no_qlog_or_do_not_exist(tmp_path):
    for content in (b"", b"hello\n", b"[1, 2]", b"\x00" * 100):
        with pytest.raises(TraceError, match="no qlog file"):
            read(tmp_path, content)
    with pytest.raises(TraceError, match=r"cannot read .*nowhere: No such file"):
        qb.read_qlog(tmp_path / "nowhere")


WRITERS = ("aioquic:cubic", "neqo:cubic", "ngtcp2:cubic", "quic-go:cubic", "quiche:cubic",
           "quinn:cubic", "picoquic:cubic", "tquic:cubic", "x-net-quic:reno")  # fmt: skip


@pytest.mark.guest
@pytest.mark.parametrize("name", WRITERS)
def test_what_a_real_stack_writes_is_what_the_wire_saw(name, tmp_path):
    stack, _, controller = name.partition(":")
    if not stacks.get(stack).status().ready:
        pytest.skip(stacks.get(stack).status().reason)
    flow = qb.Flow(stack, controller, options={"qlog": True})
    link = qb.Bottleneck(rate_mbps=5, rtt_ms=40)
    run = qb.Experiment(bottleneck=link, flows=[flow], duration_s=3, seed=1).run(
        out=tmp_path / "run.nc", keep=("qlog",)
    )
    logs = [qb.read_qlog(p) for p in (tmp_path / "run.kept/flows/0").glob("*qlog")]
    sender = max(logs, key=lambda ds: int(ds.sent_size_bytes.sum()) if ds.sent_size_bytes.any()
                 else int(ds.cwnd_bytes.size))  # fmt: skip
    data = sender.sent_number.values[sender.sent_space.values == 2]
    assert np.all(np.diff(data) > 0)
    # A datagram may carry several packets only during the handshake.
    captured = run.sizes["packet"]
    assert len(data) == pytest.approx(captured, rel=0.04)
    # Whatever the format of times in the log, they pass as fast as on the wire.
    sent_s = sender.sent_time_s.values[sender.sent_space.values == 2]
    wire_s = run.packet_time_s.values[run.packet_size_bytes.values > 300]
    assert np.ptp(sent_s) == pytest.approx(np.ptp(wire_s), abs=0.06)
    assert "unknown" not in sender.attrs["warnings"]
    assert sender.sizes["metric"] > 100
    # The window that the stack logs is the one that its driver reports.
    if "cwnd_bytes" in run:
        reported = run.cwnd_bytes.isel(flow=0).sel(time=slice(1, 2.5)).mean()
        at = (sender.metric_time_s > 1) & (sender.metric_time_s < 2.5)
        assert float(sender.cwnd_bytes[at].mean()) == pytest.approx(float(reported), rel=0.1)
