"""qlog of the drafts before 0.3: the same connection in every old form gives the same tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qlogs import read

import qbkit as qb
from qbkit.errors import TraceError

# Sent at 12 and 13 ms; both acknowledged at 62 ms: RTTs of 50 and 49 ms.
PACKETS = (
    (12, "transport", "packet_sent", (0, 0)),
    (13, "transport", "packet_sent", (1, 1200)),
    (62, "transport", "packet_received", [0, 1]),
    (62, "recovery", "metrics_updated", {"cwnd": 14000, "bytes_in_flight": 0, "latest_rtt": 49,
                                         "smoothed_rtt": 50, "min_rtt": 49, "pacing_rate": 2.5e6}),
    (90, "recovery", "packet_lost", {"packet_type": "1RTT", "packet_number": "2"}),
)  # fmt: skip
RTTS = ("latest_rtt", "smoothed_rtt", "min_rtt")


def data_of(verb: str, what, *, texts: bool, upper: bool, per_ms: float, apart: bool) -> dict:
    number = str if texts else int
    kind = {"packet_type": "1RTT"}

    def packet(n: int, size: int, **frame: object) -> dict:
        name = frame.pop("name")
        frame = {"frame_type": name.upper() if upper else name, **frame}
        header = {"packet_number": number(n), "packet_size": size}
        return {**kind, "header": header, "frames": [frame]} if apart else {
            "header": {**kind, **header}, "frames": [frame]}  # fmt: skip

    if verb == "packet_sent":
        n, offset = what
        stream = "id" if apart else "stream_id"
        return packet(n, 1280, name="stream", offset=number(offset), **{stream: number(4)})
    if verb == "packet_received":
        return packet(0, 40, name="ack", acked_ranges=[[number(n) for n in what]])
    return {key: value * per_ms if key in RTTS else value for key, value in what.items()}


def written(draw) -> str:
    """The connection in one of the old forms."""
    unit = draw(st.sampled_from(["ms", "us", None]))
    per_ms = 1000 if unit == "us" else 1
    form = draw(st.sampled_from(["lists", "objects", "lines", "sequence"]))
    upper, texts, apart = (draw(st.booleans()) for _ in range(3))
    clock = draw(st.sampled_from(["relative_time", "delta_time", "time"]))
    if form in ("lines", "sequence"):
        clock = "time"
    name_field = draw(st.sampled_from(["event", "event_type", "type"]))
    trigger = draw(st.sampled_from(["named", "unnamed", "missing", "none"]))
    last_ms, events = 0, []
    named = ["trigger"] if trigger in ("named", "missing") else []
    fields = [clock, "category", name_field, *named, "data"]
    for time_ms, category, verb, what in PACKETS:
        passed = (time_ms - last_ms if clock == "delta_time" else time_ms) * per_ms
        last_ms = time_ms
        data = data_of(verb, what, texts=texts, upper=upper, per_ms=per_ms, apart=apart)
        names = [category.upper(), verb.upper()] if upper else [category, verb]
        before = [str(passed) if texts else passed, *names]
        if form == "lists":
            events.append([*before, *(["line"] if trigger in ("named", "unnamed") else []), data])
        else:
            keys = [clock, "category", name_field]
            events.append({**dict(zip(keys, before, strict=True)), "data": data})
    if upper:
        fields = [clock, *(field.upper() for field in fields[1:])]
    trace = {
        "vantage_point": {"name": "a", "type": "SERVER" if upper else "server"},
        "common_fields": {"protocol_type": "QUIC", "reference_time": "0"},
        **({"configuration": {"time_units": unit, "time_offset": "0"}} if unit else {}),
        **({"event_fields": fields} if form == "lists" else {}),
    }
    head = {"qlog_version": "draft-00" if upper else "draft-01"}
    if form in ("lists", "objects"):
        return json.dumps({**head, "traces": [{**trace, "events": events}]})
    mark = "\x1e" if form == "sequence" else ""
    return "".join(f"{mark}{json.dumps(r)}\n" for r in [{**head, "trace": trace}, *events])


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_old_form_gives_the_same_tables(tmp_path, data):
    ds = read(tmp_path, written(data.draw))
    assert json.loads(ds.attrs["warnings"]) == []
    assert ds.attrs["vantage_point"] == "server"
    assert ds.sent_number.values.tolist() == [0, 1]
    assert ds.sent_time_s.values == pytest.approx([0.012, 0.013])
    assert ds.sent_size_bytes.values.tolist() == [1280, 1280]
    assert ds.sent_offset_bytes.values.tolist() == [0, 1200]
    assert ds.sent_stream.values.tolist() == [4, 4]
    assert ds.received_size_bytes.values.tolist() == [40]
    assert ds.acked_number.values.tolist() == [0, 1]
    assert ds.acked_time_s.values == pytest.approx([0.062, 0.062])
    assert (ds.lost_number.item(), ds.lost_time_s.item()) == (2, pytest.approx(0.09))
    assert ds.cwnd_bytes.values.tolist() == [14000]
    assert ds.srtt_ms.values == pytest.approx([50])
    assert ds.latest_rtt_ms.values == pytest.approx([49])
    assert ds.pacing_rate_mbps.values == pytest.approx([2.5])
    assert ds.handshake_frames.values.tolist() == ["stream", "stream", "ACK 0-1"]


def document(*traces: dict, version: str = "draft-01") -> str:
    return json.dumps({"qlog_version": version, "traces": list(traces)})


FIELDS = ["relative_time", "category", "event", "data"]


def trace(*events: list, **members: object) -> dict:
    return {"event_fields": FIELDS, "events": list(events), **members}


def sent(time: float, number: int = 0) -> list:
    header = {"packet_number": number, "packet_size": 1000}
    return [time, "transport", "packet_sent", {"packet_type": "1RTT", "header": header}]


def acked(time: float, *ranges: list[int]) -> list:
    frames = [{"frame_type": "ack", "acked_ranges": list(ranges)}]
    return [time, "transport", "packet_received", {"header": {"packet_number": 0},
                                                   "frames": frames}]  # fmt: skip


def metrics(time: float, **values: object) -> list:
    return [time, "recovery", "metrics_updated", values]


MICROSECONDS = {"configuration": {"time_units": "us"}}


@pytest.mark.parametrize("rtt_ms", [0.2, 5, 50, 600])
@pytest.mark.parametrize("per_ms", [1, 1000])
def test_rtts_beside_times_in_us_are_in_the_unit_that_fits_the_acknowledgements(
    tmp_path, rtt_ms, per_ms
):
    back_us = 10_000 + rtt_ms * 1000
    events = [sent(10_000), acked(back_us, [0]), metrics(back_us, smoothed_rtt=rtt_ms * per_ms)]
    path = tmp_path / "some.qlog"
    path.write_text(document(trace(*events, **MICROSECONDS)))
    if per_ms == 1:
        with pytest.warns(UserWarning, match="times in µs, but RTTs in ms"):
            ds = qb.read_qlog(path)
    else:
        ds = read(tmp_path, path.read_text())
    assert ds.srtt_ms.values == pytest.approx([rtt_ms])


@pytest.mark.parametrize(("assumed", "rtt_ms"), [(333, 333), (100_000, 100), (250_000, 250)])
def test_an_assumed_rtt_in_us_is_not_below_1_ms(tmp_path, assumed, rtt_ms):
    ds = read(tmp_path, document(trace(sent(0), metrics(1, smoothed_rtt=assumed), **MICROSECONDS)))
    assert ds.srtt_ms.values == pytest.approx([rtt_ms])


@pytest.mark.parametrize("most", [2**64 - 1, str(2**64 - 1), 2**63 - 1, 2**62 - 1, 2**53 - 1,
                                  2**32 - 1, 2**31 - 1])  # fmt: skip
def test_the_largest_number_of_a_type_is_no_limit(tmp_path, most):
    values = metrics(1, congestion_window=most, ssthresh=most, pacing_rate=most)
    ds = read(tmp_path, document(trace(values)))
    for name in ("cwnd_bytes", "ssthresh_bytes", "pacing_rate_mbps"):
        assert np.isposinf(ds[name].values).all()
    below = read(tmp_path, document(trace(metrics(1, congestion_window=10**12))))
    assert below.cwnd_bytes.item() == 1e12


def test_metrics_that_cannot_be_are_left_out_and_counted(tmp_path):
    bad = metrics(1, cwnd=-1, min_rtt=2**64 - 1, bytes_in_flight=2**64 - 1)
    ds = read(tmp_path, document(trace(bad, metrics(2, cwnd=9000))))
    assert np.isnan(ds.min_rtt_ms.values).all()
    assert ds.cwnd_bytes.values[1] == 9000
    assert json.loads(ds.attrs["warnings"]) == [
        "some.qlog: impossible values of metrics, left out: 3"
    ]


def test_packets_without_a_number_are_counted_but_not_those_that_have_none(tmp_path):
    def packet(kind: str) -> list:
        return [1, "transport", "packet_sent", {"packet_type": kind, "header": {}}]

    kinds = ("initial", "1RTT", "retry", "version_negotiation")
    ds = read(tmp_path, document(trace(sent(0), *map(packet, kinds))))
    assert ds.sizes["sent"] == 1
    assert json.loads(ds.attrs["warnings"]) == ["some.qlog: packets without a number, left out: 2"]


def test_the_names_of_mvfst(tmp_path):
    events = [
        *(sent(1000 + n, n) for n in range(6)),
        ["41000", "transport", "packet_ack", {"packet_num_space": "AppData", "packet_num": 5}],
        ["41000", "metric_update", "metric_update", {"latest_rtt": 40000, "min_rtt": 40000,
                                                     "smoothed_rtt": 40000, "ack_delay": 9}],
        ["41000", "metric_update", "congestion_metric_update", {"bytes_in_flight": 5000,
                                                                "current_cwnd": 12520}],
        ["42000", "loss", "packets_lost", {"largest_lost_packet_num": 2, "lost_bytes": 3000,
                                           "lost_packets": 3}],
    ]  # fmt: skip
    ds = read(tmp_path, document(trace(*events, **MICROSECONDS), version="draft-00"))
    assert ds.acked_number.values.tolist() == [5]
    assert ds.lost_number.values.tolist() == [0, 1, 2]
    assert ds.cwnd_bytes.values[-1] == 12520
    assert ds.srtt_ms.values[-1] == pytest.approx(40)


def test_one_of_several_traces_by_vantage_point_name_or_title(tmp_path):
    def of(kind: str, name: str, packets: int) -> dict:
        point = {"type": kind, "name": name}
        return trace(*(sent(n, n) for n in range(packets)), vantage_point=point, title=f"{kind} 1")

    text = document(of("client", "browser", 1), of("server", "edge", 2), of("network", "tap", 3))
    for wanted, packets in (("client", 1), ("server", 2), ("network", 3), ("edge", 2),
                            ("network 1", 3), (0, 1)):  # fmt: skip
        assert read(tmp_path, text, trace=wanted).sizes["sent"] == packets
    with pytest.raises(
        TraceError, match=r"3 traces; .*trace='client' \(0: client, browser, client 1"
    ):
        read(tmp_path, text)
    with pytest.raises(TraceError, match="no trace elsewhere; it has 0: client, browser"):
        read(tmp_path, text, trace="elsewhere")
    twice = document(of("client", "a", 1), of("client", "b", 2))
    with pytest.raises(
        TraceError, match="2 traces of client; choose one by its number, as trace=0 "
    ):
        read(tmp_path, twice, trace="client")
    assert read(tmp_path, twice, trace="b").sizes["sent"] == 2


@pytest.mark.parametrize(
    "members", [{"traces": []}, {"connections": [{"fields": [], "events": []}]}]
)
@pytest.mark.parametrize("indent", [None, 1])
def test_version_0_1_is_refused_by_name(tmp_path, members, indent):
    with pytest.raises(TraceError, match=r"is qlog 0\.1, .* draft-00 \(2019\) to the current one"):
        read(tmp_path, json.dumps({"qlog_version": "0.1", **members}, indent=indent))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (document(trace()), "it has no events"),
        (document(), "it has no events"),
        (document(trace([1, "connectivity", "connection_started", {}])),
         "none of its 1 events .* it has connectivity:connection_started"),
        (document(trace(sent(1)))[:-40], "damaged or cut off before byte"),
        (json.dumps({"qlog_version": "draft-02", "trace": {}}) + '\n{"time": 1, "na',
         "damaged or cut off at byte"),
    ],
)  # fmt: skip
def test_tables_that_would_all_be_empty_are_an_error_that_says_why(tmp_path, text, why):
    with pytest.raises(TraceError, match=f"some.qlog has nothing to show: .*{why}"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("told", "unit", "date"),
    [
        ("1600000000.5", "ms", "2020-09-13T12:26:40.5"),
        ("1553986553572", "ms", "2019-03-30T22:55:53.5"),
        ("1553986553572000", "us", "2019-03-30T22:55:53.5"),
        (1553986553572, "us", "2019-03-30T22:55:53.5"),
        *(("0", "us", ""), (-1, "ms", ""), ("nan", "ms", "")),
    ],
)
def test_the_date_of_the_beginning_in_any_unit(tmp_path, told, unit, date):
    members = {"configuration": {"time_units": unit}, "common_fields": {"reference_time": told}}
    found = read(tmp_path, document(trace(sent(1), **members))).attrs["reference_time"]
    assert found.startswith(date) if date else found == ""


def test_lists_need_the_names_of_their_values(tmp_path):
    with pytest.raises(TraceError, match="a list, but its trace has no event_fields"):
        read(tmp_path, json.dumps({"traces": [{"events": [sent(1)]}]}))


def test_an_offset_shifts_the_times_and_an_unknown_unit_is_warned_of(tmp_path):
    shifted = {"configuration": {"time_units": "us", "time_offset": "2000"}}
    assert read(tmp_path, document(trace(sent(1000), **shifted))).sent_time_s.item() == 0.003
    path = tmp_path / "some.qlog"
    path.write_text(document(trace(sent(1), configuration={"time_units": "fortnights"})))
    with pytest.warns(
        UserWarning, match="unknown unit 'fortnights', read as ms; known are ms and us"
    ):
        assert qb.read_qlog(path).sent_time_s.item() == 0.001


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ([], "has no time"),
        ("packet_sent", "neither an object nor a list"),
        ({"category": "transport", "type": "packet_sent"}, "has no time"),
        ({"time": 5, "category": "transport"}, "has no name"),
        (["soon", "transport", "packet_sent", {}], "time is a text, not a number"),
        ([1, "transport", "packet_sent", {"header": {"packet_number": [1]}}],
         "header.packet_number is a list, not a whole number"),
    ],
)  # fmt: skip
def test_what_is_no_event_is_named_in_words(tmp_path, event, why):
    with pytest.raises(TraceError, match=why):
        read(tmp_path, document(trace(sent(1), event)))
