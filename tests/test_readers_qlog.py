"""qlog beyond packets and metrics: streams, handshakes, HTTP, and the habits of some writers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import qbkit as qb
from qbkit import stacks
from qbkit.errors import TraceError
from qbkit.traces.logs import columns, jsonfile

HEAD = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {}}


def read(folder: Path, events: list[dict], trace: dict | None = None, version: str = "0.3"):
    head = {**HEAD, "qlog_version": version, "trace": trace or {}}
    text = "".join(f"\x1e{json.dumps(e)}\n" for e in [head, *events])
    (folder / "some.sqlog").write_text(text)
    return qb.read_qlog(folder / "some.sqlog")


def event(name: str, time_ms: float = 1.0, **data: object) -> dict:
    return {"time": time_ms, "name": name, "data": data}


def packet(verb: str, number: int, *frames: dict, kind: str = "1RTT", time_ms: float = 1.0) -> dict:
    header = {"packet_type": kind, "packet_number": number}
    return event(f"transport:packet_{verb}", time_ms, header=header, frames=list(frames),
                 raw={"length": 1200})  # fmt: skip


def stream(number: int, offset: int | None) -> dict:
    place = {} if offset is None else {"offset": offset}
    return {"frame_type": "stream", "stream_id": number, "length": 1000, **place}


def test_offsets_are_those_of_the_stream_that_most_packets_carry(tmp_path):
    frames = [[stream(2, 0)], [stream(0, None)], [stream(0, 1000), stream(2, 9)],
              [{"frame_type": "ping"}], [stream(0, 1000)]]  # fmt: skip
    ds = read(tmp_path, [packet("sent", n, *f) for n, f in enumerate(frames)])
    assert ds.sent_stream.values.tolist() == [2, 0, 0, -1, 0]
    # An offset that the log leaves out is 0; the last packet is a retransmission.
    assert ds.sent_offset_bytes.values.tolist() == [-1, 0, 1000, -1, 1000]


def test_the_handshake_and_the_first_ten_packets(tmp_path):
    ack = {"frame_type": "ack", "acked_ranges": [[5, 9], [3], [0, 1]]}
    crypto, padding = {"frame_type": "crypto"}, {"frame_type": "padding"}
    events = [
        packet("sent", 0, crypto, padding, kind="initial"),
        packet("received", 0, {"frame_type": "ack", "acked_ranges": [[0]]}, crypto, kind="initial"),
        packet("sent", 0, crypto, kind="handshake"),
        *(packet("sent", n, stream(0, 1000 * n)) for n in range(12)),
        packet("received", 4, ack),
    ]
    ds = read(tmp_path, events)
    assert ds.sizes["handshake"] == 3 + 10 + 1
    rows = [ds[f"handshake_{k}"].values for k in ("direction", "space", "number", "frames")]
    found = list(zip(*(r.tolist() for r in rows), strict=True))
    assert found[:4] == [("sent", 0, 0, "crypto, padding"), ("received", 0, 0, "ACK 0, crypto"),
                         ("sent", 1, 0, "crypto"), ("sent", 2, 0, "stream")]  # fmt: skip
    assert found[-1] == ("received", 2, 4, "ACK 5-9 3 0-1")
    assert set(ds.handshake_size_bytes.values) == {1200}


@pytest.mark.parametrize("prefix", ["http", "h3", "http3"])
def test_http_frames_of_every_draft(tmp_path, prefix):
    events = [
        event(f"{prefix}:frame_created", stream_id=0, length=30, frame={"frame_type": "headers"}),
        event(f"{prefix}:frame_created", 2, stream_id=0, raw={"length": 52, "payload_length": 50},
              frame={"frame_type": "data"}),
        event(f"{prefix}:frame_parsed", 3, stream_id=3, frame={"frame_type": "settings"}),
        event(f"{prefix}:frame_parsed", 4, frame={"frame_type": "data"}),  # of no stream
        event(f"{prefix}:stream_type_set", 4, stream_id=7),
    ]  # fmt: skip
    ds = read(tmp_path, events)
    assert ds.http_frame.values.tolist() == ["headers", "data", "settings"]
    assert ds.http_direction.values.tolist() == ["sent", "sent", "received"]
    assert ds.http_stream.values.tolist() == [0, 0, 3]
    assert ds.http_size_bytes.values.tolist() == [30, 50, 0]
    assert ds.http_time_s.values == pytest.approx([0.001, 0.002, 0.003])


def test_losses_that_the_stack_itself_calls_spurious_and_acks_without_frames(tmp_path):
    lost = [event("recovery:packet_lost", header={"packet_number": n}) for n in (1, 2)]
    events = [
        *(packet("sent", n) for n in range(5)),
        *lost,
        event("recovery:spurious_loss", packet_number_space="application_data", packet_number=2),
        event("transport:packets_acked", 9, packet_number_space="application_data",
              packet_numbers=[0, 4]),
    ]  # fmt: skip
    ds = read(tmp_path, events)
    assert ds.lost_spurious.values.tolist() == [False, True]
    assert ds.acked_number.values.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("ranges", "acked"),
    [
        ([[[0, 1]], [[0, 1], [3, 5]]], [0, 1, 3, 4, 5]),
        ([[[0, 1]], [[0, 1], [2, 5]]], [0, 2, 3, 4]),
        ([[[0, 1]], [[2, 5], [0, 1]]], [0, 2, 3, 4]),
        ([[[0, 0]], [[0, 1], [2, 5]]], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_ranges_that_end_before_their_last_number(tmp_path, ranges, acked):
    """noq's: ranges that touch would be one, and one of a single packet has two numbers."""
    events = [
        *(packet("sent", n) for n in range(8)),
        event("recovery:packet_lost", header={"packet_number": 1}),
        *(packet("received", i, {"frame_type": "ack", "acked_ranges": found})
          for i, found in enumerate(ranges)),
    ]  # fmt: skip
    ds = read(tmp_path, events)
    arrived = {*ds.acked_number.values.tolist(), *ds.lost_number.values[ds.lost_spurious.values]}
    assert sorted(arrived) == acked


def test_losses_that_are_only_counted_are_of_the_first_packets_in_flight(tmp_path):
    """quiche's: as RFC 9002 declares them."""

    def counted(total: int, delta: int) -> dict:
        lost = {"total": total, "delta": delta}
        return event("quic:recovery_metrics_updated", 5, cf_lost_packets=lost, bytes_in_flight=9)

    events = [
        *(packet("sent", n) for n in range(9)),
        packet("received", 0, {"frame_type": "ack", "acked_ranges": [[0, 1], [6, 6], [8, 8]]}),
        counted(0, 0),
        counted(3, 3),
    ]
    assert read(tmp_path, events).lost_number.values.tolist() == [2, 3, 4]
    named = event("quic:packet_lost", header={"packet_number": 5})
    assert read(tmp_path, [*events[:10], named, *events[10:]]).lost_number.values.tolist() == [5]


def test_rtts_in_seconds_and_rates_in_bytes_are_converted(tmp_path):
    quinn = [
        event("recovery:metrics_updated", smoothed_rtt=0.333, rtt_variance=0.1665, min_rtt=0.333),
        packet("received", 0),
        event("recovery:metrics_updated", smoothed_rtt=0.04, latest_rtt=0.05),
    ]
    assert read(tmp_path, quinn).srtt_ms.values == pytest.approx([333, 40])
    assert read(tmp_path, quinn).latest_rtt_ms.values[-1] == pytest.approx(50)
    assert read(tmp_path, quinn[1:]).srtt_ms.values == pytest.approx([0.04])  # of the loopback
    rate = [event("recovery:metrics_updated", pacing_rate=1e6)]
    neqo = {"vantage_point": {"name": "neqo-Client", "type": "client"}}
    assert read(tmp_path, rate, neqo).pacing_rate_mbps.values == pytest.approx([8])
    assert read(tmp_path, rate).pacing_rate_mbps.values == pytest.approx([1])


def test_a_document_whose_times_are_steps(tmp_path):
    events = [packet("sent", n, time_ms=5) for n in range(3)]
    trace = {"common_fields": {"time_format": "delta"}, "events": events}
    (tmp_path / "x.qlog").write_text(json.dumps({"qlog_version": "0.3", "traces": [trace]}))
    assert qb.read_qlog(tmp_path / "x.qlog").sent_time_s.values == pytest.approx(
        [5e-3, 1e-2, 15e-3]
    )


def test_a_log_without_acknowledgements_takes_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "REMEMBERED_IN_FLIGHT", 100)
    ack = {"frame_type": "ack", "acked_ranges": [[0, 999]]}
    ds = read(tmp_path, [*(packet("sent", n) for n in range(1000)), packet("received", 0, ack)])
    assert ds.sizes["sent"] == 1000
    assert 50 <= ds.sizes["acked"] <= 100
    (told,) = json.loads(ds.attrs["warnings"])
    assert int(told.rpartition(": ")[2]) == 1000 - ds.sizes["acked"]
    assert ds.acked_number.values[-1] == 999


@pytest.mark.slow
def test_texts_without_end_take_bounded_memory(tmp_path):
    events = [event("recovery:packet_lost", header={"packet_number": n}, trigger=f"{n}" * 5000)
              for n in range(2000)]  # fmt: skip
    ds = read(tmp_path, events)
    assert ds.lost_trigger.nbytes <= 2000 * 4 * columns.LONGEST_WORD
    assert len(set(ds.lost_trigger.values)) <= columns.MOST_WORDS


def test_a_text_among_the_traces_is_no_trace(tmp_path):
    trace = {"title": "whole", "events": [packet("sent", 0)]}
    (tmp_path / "x.qlog").write_text(json.dumps({"qlog_version": "0.3", "traces": [trace, "name"]}))
    assert qb.read_qlog(tmp_path / "x.qlog").sizes["sent"] == 1


EVENTS = '{"traces": [{"events": [%s]}]}'
HOSTILE = {
    "a long text": lambda: EVENTS % ('{"time": 1, "name": "' + "x" * (2 << 20) + '"}'),
    "a long list": lambda: EVENTS % ('{"time": 1, "data": [' + "0," * (1 << 20) + "0]}"),
    "deep": lambda: EVENTS % ("[" * 100_000 + "]" * 100_000),
    "a late time": lambda: EVENTS % '{"time": 1e400, "name": "packet_sent", "data": {}}',
    "many digits": lambda: EVENTS % ('{"time": 1' + "0" * 5000 + ', "name": "packet_sent"}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_documents(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(jsonfile, "LONGEST_RECORD", 1 << 20)  # a sixteenth: the same, sooner
    (tmp_path / "x.qlog").write_text(HOSTILE[kind]())
    with pytest.raises(TraceError) as raised:
        qb.read_qlog(tmp_path / "x.qlog")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.guest
@pytest.mark.parametrize("name", ["quic-go:cubic", "ngtcp2:cubic", "tquic:cubic"])
def test_real_stacks_retransmit_what_they_lost(name, tmp_path):
    stack, _, controller = name.partition(":")
    if not stacks.get(stack).status().ready:
        pytest.skip(stacks.get(stack).status().reason)
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40)
    flow = qb.Flow(stack, controller, options={"qlog": True})
    qb.Experiment(bottleneck=link, flows=[flow], duration_s=4, seed=1).run(
        out=tmp_path / "run.nc", keep=("qlog",)
    )
    logs = [qb.read_qlog(p) for p in (tmp_path / "run.kept/flows/0").glob("*qlog")]
    ds = max(logs, key=lambda log: int(log.sent_size_bytes.sum()))
    offsets = ds.sent_offset_bytes.values[ds.sent_offset_bytes.values >= 0]
    assert len(offsets) > 0.95 * ds.sizes["sent"]
    again = int((offsets[1:] < np.maximum.accumulate(offsets)[:-1]).sum())
    assert again == pytest.approx(ds.sizes["lost"], abs=12)
    assert ds.handshake_space.values[0] == 0
    assert ds.handshake_frames.values[0].startswith("crypto")
    assert set(ds.handshake_space.values) == {0, 1, 2}
