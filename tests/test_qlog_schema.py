"""qlog by its main schema (draft-ietf-quic-qlog-main-schema): the current draft and older ones."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qlogs import read

import qbkit as qb
from qbkit.errors import TraceError

SEQUENTIAL = {
    "file_schema": "urn:ietf:params:qlog:file:sequential",
    "serialization_format": "application/qlog+json-seq",
}
CONTAINED = {
    "file_schema": "urn:ietf:params:qlog:file:contained",
    "serialization_format": "application/qlog+json",
}
STEPS = ("relative_to_previous_event", "delta")
FORMATS = (*STEPS, "relative_to_epoch", "absolute", "relative")


def sent(time_ms: float, number: int = 0, **members: object) -> dict:
    data = {"header": {"packet_type": "1RTT", "packet_number": number}, "raw": {"length": 1200}}
    return {"time": time_ms, "name": "quic:packet_sent", "data": data, **members}


def note(time_ms: float, **members: object) -> dict:
    """An event that no table shows."""
    return {"time": time_ms, "name": "loglevel:info", "data": {"message": "m"}, **members}


def sequence(trace: dict, events: list[dict], **head: object) -> str:
    records = [{**SEQUENTIAL, **head, "trace": trace}, *events]
    return "".join(f"\x1e{json.dumps(record)}\n" for record in records)


def lines(trace: dict, events: list[dict]) -> str:
    return sequence(trace, events).replace("\x1e", "")


def document(trace: dict, events: list[dict]) -> str:
    """The events first: no order of members is meant."""
    return json.dumps({"traces": [{"events": events, **trace}], **CONTAINED})


SERIALISATIONS = {"seq": sequence, "lines": lines, "document": document}


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_times_of_any_format_in_the_trace_or_in_an_event(tmp_path, data):
    usual = data.draw(st.sampled_from(FORMATS))
    written = data.draw(st.sampled_from(list(SERIALISATIONS.values())))
    steps_ms = data.draw(st.lists(st.integers(0, 5000), min_size=1, max_size=8))
    times_ms = list(itertools.accumulate(steps_ms))
    events = []
    for number, (time_ms, step_ms) in enumerate(zip(times_ms, steps_ms, strict=True)):
        own = data.draw(st.sampled_from([None, *FORMATS]))
        encoded = step_ms if (own or usual) in STEPS else time_ms
        stated = {} if own is None else {"time_format": own}
        shown = data.draw(st.booleans())  # steps add up over events that nobody reads
        events.append(sent(encoded, number, **stated) if shown else note(encoded, **stated))
    last = data.draw(st.sampled_from(STEPS))  # at least one event is shown
    events.append(sent(0, len(events), time_format=last))
    times_ms.append(times_ms[-1])
    text = written({"common_fields": {"time_format": usual}}, events)
    expected = [t / 1e3 for t, e in zip(times_ms, events, strict=True) if "packet" in e["name"]]
    assert read(tmp_path, text).sent_time_s.values.tolist() == pytest.approx(expected)


def test_times_without_a_format_count_from_the_epoch(tmp_path):
    assert read(tmp_path, sequence({}, [sent(5), sent(7, 1)])).sent_time_s.values[-1] == 0.007


def test_steps_from_a_wall_clock_are_the_drafts_example(tmp_path):
    reference = {"clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z"}
    common = {"time_format": "relative_to_previous_event", "reference_time": reference}
    steps_ms = (1553986553572, 5, 10, 10)
    events = [sent(step_ms, number) for number, step_ms in enumerate(steps_ms)]
    ds = read(tmp_path, sequence({"common_fields": common}, events))
    assert ds.sent_time_s.values.tolist() == [0, 0.005, 0.015, 0.025]
    assert ds.attrs["reference_time"].startswith("2019-03-30T22:55:53.572")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"clock_type": "system", "epoch": "2019-03-29T22:55:53.572Z"}, "2019-03-29T22:55:53.572"),
        (
            {
                "clock_type": "monotonic",
                "epoch": "unknown",
                "wall_clock_time": "2024-10-10T10:10:10.000Z",
            },
            "2024-10-10T10:10:10+00:00",
        ),
        ({"clock_type": "monotonic", "epoch": "unknown"}, ""),
        (1553986553572, "2019-03-30T22:55:53.572"),
        ("yesterday", ""),
        (None, ""),
    ],
)
def test_the_date_of_the_beginning(tmp_path, reference, expected):
    ds = read(tmp_path, sequence({"common_fields": {"reference_time": reference}}, [sent(2)]))
    assert ds.sent_time_s.values.tolist() == [0.002]
    assert ds.attrs["reference_time"][: len(expected) or 99] == expected


def test_an_unknown_time_format_is_warned_of_and_read_as_the_default(tmp_path):
    trace = {"common_fields": {"time_format": "since_lunch"}}
    path = tmp_path / "some.qlog"
    path.write_text(sequence(trace, [sent(5), sent(7, 1)]))
    with pytest.warns(UserWarning, match="unknown format 'since_lunch', read as relative_to_epoch"):
        ds = qb.read_qlog(path)
    assert ds.sent_time_s.values.tolist() == [0.005, 0.007]
    assert len(json.loads(ds.attrs["warnings"])) == 1


def test_an_unknown_file_schema_is_warned_of(tmp_path):
    path = tmp_path / "some.qlog"
    path.write_text(sequence({}, [sent(5)], file_schema="https://example.org/072026/mine"))
    with pytest.warns(UserWarning, match="unknown file schema 'https://example.org/072026/mine'"):
        qb.read_qlog(path)
    drafted = sequence({}, [sent(5)], file_schema=SEQUENTIAL["file_schema"] + "-15")
    assert read(tmp_path, drafted).sizes["sent"] == 1


def several() -> dict:
    client = {
        "title": "mine",
        "common_fields": {"time_format": "relative_to_previous_event"},
        "vantage_point": {"type": "client", "name": "neqo"},
        "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
        "events": [sent(10, n) for n in range(3)],
    }
    server = {"vantage_point": {"type": "server"}, "events": [sent(10 * n, n) for n in range(5)]}
    lacking = {"error_description": "File could not be found", "uri": "/srv/latest.qlog"}
    return {**CONTAINED, "traces": [client, lacking, server]}


def test_one_of_several_traces_by_its_number(tmp_path):
    path = tmp_path / "some.qlog"
    path.write_text(json.dumps(several()))
    with (
        pytest.warns(UserWarning, match="lacks trace 1: File could not be found"),
        pytest.raises(
            TraceError,
            match=r"2 traces; choose .* trace=0, or its vantage point, as trace='client' "
            r"\(0: client, neqo, mine, 3 events; ",
        ),
    ):
        qb.read_qlog(path)
    with pytest.warns(UserWarning, match="lacks trace 1"):
        client, server = (qb.read_qlog(path, trace=number) for number in (0, 2))
    assert client.sent_time_s.values.tolist() == [0.01, 0.02, 0.03]
    assert (client.attrs["vantage_point"], client.attrs["title"]) == ("client", "mine")
    assert json.loads(client.attrs["event_schemas"]) == ["urn:ietf:params:qlog:events:quic-12"]
    assert server.sent_time_s.values.tolist() == [0, 0.01, 0.02, 0.03, 0.04]
    assert server.attrs["vantage_point"] == "server"
    for number in (1, 7, -1):
        with pytest.warns(UserWarning), pytest.raises(TraceError, match=f"no trace {number}; it"):
            qb.read_qlog(path, trace=number)
    with pytest.raises(TraceError, match="no trace 1; it has 0: 1 events"):
        read(tmp_path, sequence({}, [sent(5)]), trace=1)


def test_a_trace_that_another_follows_may_be_cut_off(tmp_path):
    text = json.dumps({**CONTAINED, "traces": several()["traces"][::2]})
    ds = read(tmp_path, text[: text.rindex('{"time"') + 4], trace=1)
    assert ds.sizes["sent"] == 4
    assert "damaged or cut off" in ds.attrs["warnings"]


def test_events_of_several_connections_by_their_group(tmp_path):
    events = [sent(n, n, group_id="ab"[n % 2]) for n in range(5)]
    events.insert(1, note(0.5, group_id="qos=premium"))
    text = sequence({}, events)
    assert read(tmp_path, text, group="a").sent_number.values.tolist() == [0, 2, 4]
    with pytest.raises(TraceError, match="no events of group 'c'; it has 'a', 'b'"):
        read(tmp_path, text, group="c")
    with pytest.warns(
        UserWarning, match=r"2 groups, read as one connection; choose one .*'a', 'b'"
    ):
        ds = qb.read_qlog(tmp_path / "some.qlog")
    assert ds.sizes["sent"] == 5
    renamed = [sent(n, n, group_id=name) for n, name in enumerate(("odcid", "odcid", "new", "new"))]
    assert read(tmp_path, sequence({}, renamed)).sizes["sent"] == 4
    common = sequence({"common_fields": {"group_id": "a"}}, [sent(5)])
    assert read(tmp_path, common, group="a").sizes["sent"] == 1
    assert json.loads(read(tmp_path, common).attrs["warnings"]) == []


def test_records_of_several_lines_and_one_that_is_cut_off_within_a_line(tmp_path):
    records = [{**SEQUENTIAL, "trace": {}}, *(sent(n, n) for n in range(4))]
    text = "".join(f"\x1e{json.dumps(record, indent=2)}\n" for record in records)
    assert read(tmp_path, text).sent_number.values.tolist() == [0, 1, 2, 3]
    cut = text.replace('"packet_number": 1\n', '"packet_nu\x1e' + json.dumps(sent(9, 9)) + "\n\x1e")
    ds = read(tmp_path, cut)
    assert ds.sent_number.values.tolist() == [0, 9, 2, 3]
    place = text.index("\x1e", text.index('"packet_number": 0'))
    assert (
        f"damaged or cut off at byte {place} (2 places in all);"
        in json.loads(ds.attrs["warnings"])[0]
    )


def test_whole_numbers_as_texts_and_lengths_of_raw_data(tmp_path):
    # RFC 7493 has no whole numbers beyond 2^53; a full raw value needs no length beside it.
    header = {"packet_type": "1RTT", "packet_number": str(1 << 60)}
    ack = {"frame_type": "ack", "acked_ranges": [[str(1 << 60)]]}
    events = [
        {"time": 1, "name": "quic:packet_sent", "data": {"header": header,
                                                         "raw": {"data": "82dc"}}},
        {"time": 2, "name": "quic:recovery_metrics_updated", "data": {"congestion_window": "9000"}},
        {"time": 3, "name": "quic:packet_received", "data": {"frames": [ack],
                                                             "header": {"packet_number": "3"}}},
    ]  # fmt: skip
    for written in SERIALISATIONS.values():
        ds = read(tmp_path, written({}, events))
        assert ds.sent_number.values.tolist() == ds.acked_number.values.tolist() == [1 << 60]
        assert ds.sent_size_bytes.values.tolist() == [2]
        assert ds.cwnd_bytes.values.tolist() == [9000]


def test_losses_that_are_reported_as_totals_are_those_of_the_packets_in_flight(tmp_path):
    """As mvfst does: quic/logging/QLoggerTypes.cpp, QLogPacketsLostEvent."""
    ack = {"frame_type": "ack", "acked_ranges": [[0, 3], [8, 9]]}
    lost = {"largest_lost_packet_num": 6, "lost_bytes": 3000, "lost_packets": 3}
    events = [
        *(sent(n, n) for n in range(10)),
        {"time": 13, "name": "quic:frames_parsed", "data": {"frames": [ack]}},
        {"time": 13, "name": "quic:packet_lost", "data": lost},
        {"time": 14, "name": "quic:packet_lost", "data": {**lost, "lost_packets": 0}},
    ]
    ds = read(tmp_path, sequence({"event_schemas": ["urn:ietf:params:qlog:events:quic"]}, events))
    assert ds.lost_number.values.tolist() == [4, 5, 6]
    assert ds.lost_time_s.values.tolist() == pytest.approx([0.013] * 3)


def test_the_names_of_the_current_draft(tmp_path):
    ack = {"frame_type": "ack", "acked_ranges": [[0, 1]]}
    events = [
        *(sent(n, n, tuple="path 1") for n in range(6)),
        {"time": 10, "name": "quic:recovery_parameters_set", "data": {"timer_granularity": 1}},
        {"time": 11, "name": "quic:recovery_metrics_updated", "data": {"smoothed_rtt": 40.0}},
        {"time": 12, "name": "quic:congestion_state_updated", "data": {"new": "recovery"}},
        {"time": 13, "name": "quic:frames_parsed", "data": {"frames": [ack]}},
        {"time": 14, "name": "quic:packets_acked", "data": {"packet_numbers": [4]}},
        {"time": 15, "name": "quic:packet_lost", "data": {
            "header": {"packet_type": "1RTT", "packet_number": 2}, "trigger": "time_threshold"}},
        {"time": 16, "name": "quic:packet_lost", "data": {}},  # of a packet that is not logged
        {"time": 17, "name": "http3:frame_created", "data": {
            "stream_id": 0, "frame": {"frame_type": "data", "raw": {"length": 30}}}},
    ]  # fmt: skip
    ds = read(tmp_path, sequence({"event_schemas": ["urn:ietf:params:qlog:events:quic"]}, events))
    assert ds.srtt_ms.values.tolist() == [40]
    assert ds.state_name.values.tolist() == ["recovery"]
    assert ds.acked_number.values.tolist() == [0, 1, 4]
    assert ds.lost_number.values.tolist() == [2]
    assert ds.lost_trigger.values.tolist() == ["time_threshold"]
    assert ds.http_size_bytes.values.tolist() == [30]
