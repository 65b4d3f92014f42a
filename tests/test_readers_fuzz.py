"""Structured fuzz of the readers of logs, and foreign files for each: errors are in words.

Values are replaced by other types, members are taken out or doubled. A reader returns tables or
raises one sentence that no Python is needed for.
"""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import pytest
import test_readers_capture as captures
import test_readers_netlog as netlogs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quic_pair import upload
from words import changed, check_words, read_or_say_why

import qbkit as qb
from qbkit.errors import QbkitError, StoreError
from qbkit.spec.spec_file import of_file, read_fields
from qbkit.stacks.web.pages.recorded import recorded_page

PATIENT = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
           "deadline": None}  # fmt: skip
OLD = {
    "qlog_version": "draft-00",
    "traces": [{
        "vantage_point": {"name": "a", "type": "SERVER"},
        "configuration": {"time_offset": "0", "time_units": "us"},
        "common_fields": {"group_id": "0a", "reference_time": "1600000000.5"},
        "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA"],
        "events": [
            ["12000", "TRANSPORT", "PACKET_SENT", "line", {
                "packet_type": "1RTT", "header": {"packet_number": "0", "packet_size": 1280},
                "frames": [{"frame_type": "STREAM", "id": "0", "offset": "0"}]}],
            ["62000", "TRANSPORT", "PACKET_RECEIVED", "line", {
                "packet_type": "1RTT", "header": {"packet_number": "0", "packet_size": 40},
                "frames": [{"frame_type": "ACK", "acked_ranges": [["0", "0"]]}]}],
            ["62000", "RECOVERY", "METRIC_UPDATE", "line", {"cwnd": 14000, "smoothed_rtt": 50}],
            ["90000", "RECOVERY", "PACKET_LOST", "line", {"packet_number": "2"}],
            ["91000", "RECOVERY", "STATE_UPDATE", "line", {"new": "recovery"}],
            ["92000", "HTTP", "FRAME_CREATED", "line", {
                "stream_id": "0", "frame": {"frame_type": "DATA"}, "byte_length": "9"}],
        ],
    }],
}  # fmt: skip
HAR = {"log": {"version": "1.2", "entries": [
    {"request": {"method": "GET", "url": "https://a.example/", "headers": []},
     "startedDateTime": "2024-01-01T00:00:00.000Z", "time": 5.5,
     "response": {"status": 200, "headers": [{"name": "content-type", "value": "text/html"}],
                  "content": {"size": 9, "mimeType": "text/html", "text": "<p>hello"},
                  "redirectURL": ""}},
    {"request": {"method": "GET", "url": "https://b.example/a.css", "headers": []},
     "startedDateTime": "2024-01-01T00:00:00.100Z", "time": 5,
     "response": {"status": 200, "headers": [], "content": {
         "size": 3, "mimeType": "text/css", "text": "YQ==", "encoding": "base64"}}},
]}}  # fmt: skip


@pytest.fixture(scope="module")
def new_qlog() -> dict:
    return json.loads(json.dumps(upload(8_000, frozenset({4})).client_qlog))


def quietly(read, path: Path):
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        found = read_or_say_why(lambda: read(path))
    told = [str(w.message) for w in raised]
    if hasattr(found, "attrs"):
        told += json.loads(found.attrs["warnings"])
    for text in told:
        check_words(text)
    return found


def records(document: dict, mark: str) -> str:
    (trace,) = document["traces"][:1] or [{}]
    events = trace.pop("events", []) if isinstance(trace, dict) else []
    head = {**{k: v for k, v in document.items() if k != "traces"}, "trace": trace}
    rows = [head, *(events if isinstance(events, list) else [events])]
    return "".join(f"{mark}{json.dumps(row)}\n" for row in rows)


@pytest.mark.slow
@settings(max_examples=150, **PATIENT)
@given(data=st.data(), old=st.booleans(), mark=st.sampled_from([None, "", "\x1e"]))
def test_qlogs_of_other_types(tmp_path, new_qlog, data, old, mark):
    document = changed(data, OLD if old else new_qlog)
    listed = isinstance(document.get("traces"), list)
    text = json.dumps(document) if mark is None or not listed else records(document, mark)
    (tmp_path / "a.qlog").write_text(text)
    quietly(qb.read_qlog, tmp_path / "a.qlog")


@pytest.mark.slow
@settings(max_examples=150, **PATIENT)
@given(data=st.data(), whole=st.booleans())
def test_net_logs_of_other_types(tmp_path, data, whole):
    types = {"constants": {"logEventTypes": netlogs.TYPES}}
    document = changed(data, {**types, "events": [*netlogs.EVENTS, *netlogs.OTHERS]})
    events = document.get("events")
    rows = events if isinstance(events, list) else [events]
    head = json.dumps(document.get("constants"), separators=(",", ":"))
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    text = json.dumps(document) if whole else f'{{"constants":{head},\n"events": [\n{lines}]}}\n'
    (tmp_path / "net.json").write_text(text)
    quietly(qb.read_netlog, tmp_path / "net.json")


@pytest.mark.slow
@settings(max_examples=150, **PATIENT)
@given(data=st.data())
def test_http_archives_of_other_types(tmp_path, data):
    (tmp_path / "page.har").write_text(json.dumps(changed(data, HAR)))
    page = quietly(recorded_page, tmp_path / "page.har")
    for text in page.warnings if page else ():
        check_words(text)


@pytest.mark.slow
@settings(max_examples=100, **PATIENT)
@given(data=st.data(), name=st.sampled_from(["a.pcap", "a.pcapng"]))
def test_captures_whose_fields_have_other_values(tmp_path, data, name):
    content = bytearray(captures.write(tmp_path, captures.TRANSFER, name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) // 4 - 1)) * 4
        value = data.draw(st.sampled_from([0, 1, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 12345]))
        content[place : place + 4] = value.to_bytes(
            4, data.draw(st.sampled_from(["little", "big"]))
        )
    (tmp_path / name).write_bytes(content)
    quietly(qb.read_capture, tmp_path / name)
    quietly(lambda path: qb.read_pcaps(path, path, flows={4001: "a"}),
            tmp_path / name)  # fmt: skip


def test_a_packet_of_a_later_year_than_can_be_counted(tmp_path):
    """Found by the test above: its time is beyond 63 bits of ns."""
    content = bytearray(captures.write(tmp_path, captures.TRANSFER, "a.pcapng").read_bytes())
    content[42 * 4 : 43 * 4] = (1).to_bytes(4, "big")
    (tmp_path / "a.pcapng").write_bytes(content)
    quietly(qb.read_capture, tmp_path / "a.pcapng")
    one_capture = pytest.raises(StoreError, match="both are one capture")
    with pytest.warns(UserWarning, match="after 2261"), one_capture:
        qb.read_pcaps(*[tmp_path / "a.pcapng"] * 2, flows={4001: "a"})


FOREIGN = {
    "nothing": b"",
    "a newline": b"\n",
    "text": b"hello, world\n",
    "null": b"null",
    "a number": b"1e400",
    "a list": b"[1, 2, 3]",
    "an object": b"{}",
    "an open object": b'{"a": [',
    "traces that are a number": b'{"traces": 7}',
    "an entry that is a text": b'{"log": {"entries": ["x"]}}',
    "constants that are a list": b'{"constants": [], "events": [{}]}',
    "zeros": bytes(4096),
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "many digits": b'{"qlog_version": "0.3", "traces": [{"events": [1' + b"0" * 5000 + b"]}]}",
    "compressed": gzip.compress(b"hello"),
    "a cut gzip": gzip.compress(b"hello" * 1000)[:30],
    "a pcap header alone": bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"),
    "half of a pcap header": bytes.fromhex("d4c3b2a102000400"),
    "a pcapng magic alone": bytes.fromhex("0a0d0d0a"),
    "a web page": b"<!doctype html><title>404</title>",
    "a netCDF's magic": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "YAML": b"flows: [tcp:cubic]\nduration_s: 5\n",
    "a byte order mark": b"\xef\xbb\xbf{}",
}


def load(path: Path) -> qb.WebLoad:
    fields = read_fields(path, "a load")
    with of_file(path):
        return qb.WebLoad(**fields)


READERS = {
    "qlog": (qb.read_qlog, ".qlog"),
    "netlog": (qb.read_netlog, ".json"),
    "capture": (qb.read_capture, ".pcap"),
    "any": (qb.read_log, ".log"),
    "two captures": (lambda path: qb.read_pcaps(path, path, flows={1: "a"}), ".pcap"),
    "recording": (recorded_page, ".har"),
    "replay": (recorded_page, ".wprgo"),
    "run": (qb.load_run, ".nc"),
    "results": (qb.open_results, ".nc"),
    "experiment": (qb.Experiment.from_file, ".yaml"),
    "experiment in JSON": (qb.Experiment.from_file, ".json"),
    "sweep": (qb.Sweep.from_file, ".yaml"),
    "load": (load, ".yaml"),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", FOREIGN)
def test_every_reader_says_in_words_what_is_wrong_with_a_foreign_file(tmp_path, reader, kind):
    read, ending = READERS[reader]
    path = tmp_path / f"file{ending}"
    path.write_bytes(FOREIGN[kind])
    if (reader, kind) in {("experiment", "YAML"), ("experiment in JSON", "YAML")}:
        return
    with pytest.raises(QbkitError) as raised, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read(path)
    check_words(raised.value)
    assert path.name in str(raised.value) or str(path.stem) in str(raised.value)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_says_in_words_that_a_file_is_a_folder_or_is_missing(tmp_path, reader):
    read, ending = READERS[reader]
    (tmp_path / f"folder{ending}").mkdir()
    for name in ("folder", "missing"):
        with pytest.raises(QbkitError) as raised:
            read(tmp_path / f"{name}{ending}")
        check_words(raised.value)
