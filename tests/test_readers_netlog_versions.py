"""Net logs of older browsers, in other layouts, and with connections that failed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_readers_netlog import EVENTS, OTHERS, START_MS, event, lines, read, received, sent


def without_beginning(events: list[dict]) -> list[dict]:
    """ACKs as Chrome up to 98 logs them."""
    return [
        {**e, "params": {k: v for k, v in e["params"].items() if k != "smallest_observed"}}
        for e in events
    ]


def lost(time_ms: int, number: int) -> dict:
    detected_us = (START_MS + time_ms) * 1000
    return event(time_ms, "QUIC_SESSION_PACKET_LOST", packet_number=number,
                 detection_time_us=detected_us, transmission_type=2)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_acks_without_their_beginning_acknowledge_the_same_packets(tmp_path, data):
    fate = [True, *data.draw(st.lists(st.booleans(), max_size=30))]  # whether each arrives
    events = [event(0, "QUIC_SESSION", host="a.example", port=443)]
    arrived: set[int] = set()
    low = 1
    for number, arrives in enumerate(fate, 1):
        events += sent(1000 * number, number, 1200 * number)
        arrived |= {number} if arrives else set()
        if arrives and data.draw(st.booleans()):
            missing = sorted(set(range(low, number)) - arrived)
            events += received(number + 40, number, low, number, missing)
            known = data.draw(st.integers(low, number))  # what the sender knows may be forgotten
            low = min(n for n in arrived if n >= known)
            events += [lost(number + 40, n) for n in missing if n < low]
    whole, old = (read(tmp_path, lines(e)) for e in (events, without_beginning(events)))
    assert sorted(old.acked_number.values) == sorted(whole.acked_number.values)
    assert set(old.acked_number.values) <= arrived
    for name in ("bytes_in_flight", "latest_rtt_ms", "srtt_ms"):
        assert np.array_equal(old[name], whole[name], equal_nan=True)
    assert json.loads(old.attrs["warnings"]) == []


def test_a_lost_packet_before_the_first_missing_one_is_not_called_spurious(tmp_path):
    events = [
        event(0, "QUIC_SESSION", host="a.example", port=443),
        *(e for n in range(1, 9) for e in sent(1000 * n, n, 0)),
        *(lost(45, n) for n in (1, 6)),
        *received(50, 1, 2, 8, [4]),
    ]  # fmt: skip
    ds = read(tmp_path, lines(without_beginning(events)))
    assert ds.acked_number.values.tolist() == [5, 7, 8, 2, 3]
    assert ds.lost_spurious.values.tolist() == [False, True]  # 6 is after a missing one: it arrived
    assert ds.lost_trigger.values.tolist() == ["2", "2"]  # Chrome 80 has numbers


def test_google_quic_has_one_number_space(tmp_path):
    def of(number: int, level: str) -> list[dict]:
        frame, packet = sent(1000 * number, number, 0)
        return [frame, {**packet, "params": {**packet["params"], "encryption_level": level}}]

    levels = ["ENCRYPTION_INITIAL"] * 2 + ["ENCRYPTION_FORWARD_SECURE"] * 3
    events = [
        event(0, "QUIC_SESSION", host="a.example", port=443),
        *(e for n, level in enumerate(levels, 1) for e in of(n, level)),
        *received(60, 1, 1, 4, [3]),
        *received(80, 2, 1, 5, []),
    ]
    for log in (events, without_beginning(events)):
        ds = read(tmp_path, lines(log))
        assert ds.sent_space.values.tolist() == [0, 0, 2, 2, 2]
        assert sorted(ds.acked_number.values) == [1, 2, 3, 4, 5]
        assert ds.bytes_in_flight.values[-1] == 0
        # 4 was sent at 4 ms, 5 at 5 ms; half a ms for what the clock cuts off.
        known = ds.latest_rtt_ms.values[~np.isnan(ds.latest_rtt_ms.values)]
        assert np.unique(known.round(6)).tolist() == [56.5, 75.5]
    # The IETF's QUIC counts each space from 1: an ACK there says nothing of Initial packets.
    ietf = [events[0], *of(1, levels[0]), *of(1, levels[-1]), *received(60, 1, 1, 1, [])]
    assert read(tmp_path, lines(ietf)).acked_space.values.tolist() == [2]


BEGIN = '\n"events": [\n'
LAYOUTS = {
    "the brackets share the last line": lambda rows: BEGIN + ",\n".join(rows) + "]}",
    "with what follows them": lambda rows: (
        BEGIN + ",\n".join(rows) + '], "polledData": {"a": [1]}}'
    ),
    "the list alone": lambda rows: BEGIN + ",\n".join(rows) + "]\n}\n",
    "an event beside the opening bracket": lambda rows: (
        BEGIN.rstrip() + ",\n".join(rows) + "\n]}\n"
    ),
    "several events in a line": lambda rows: (
        BEGIN + ", ".join(rows[:7]) + ",\n" + ",".join(rows[7:]) + "\n]\n}\n"
    ),
    "all in two lines": lambda rows: BEGIN.rstrip() + ",".join(rows) + "]}",
    "one line": lambda rows: BEGIN.strip() + ",".join(rows) + "]}",
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("last", [EVENTS, [*EVENTS, OTHERS[-1]]], ids=["shown", "not shown"])
def test_every_layout_of_the_same_log_is_whole(tmp_path, layout, last):
    head = lines([]).splitlines()[0]
    rows = [json.dumps(e, separators=(",", ":")) for e in last]
    ds = read(tmp_path, head + LAYOUTS[layout](rows))
    assert json.loads(ds.attrs["warnings"]) == []
    assert ds.drop_attrs().identical(read(tmp_path, lines(EVENTS)).drop_attrs())


def failed(source: int, packets: int, answers: int = 0) -> list[dict]:
    """A connection that sends for long, and is never answered but for its handshake."""
    own = [
        event(1, "QUIC_SESSION", host="a.example", port=443),
        *(e for n in range(1, packets + 1) for e in sent(1000 * n, n, None)),
        *(e for n in range(answers) for e in received(90, n, 1, packets, [], "INITIAL")),
    ]
    return [{**e, "source": {"id": source, "type": 13}} for e in own]


HTTP2 = [e for e in OTHERS if e["source"]["id"] == 11]


@pytest.mark.slow
@pytest.mark.parametrize("answers", [0, 3])
@pytest.mark.parametrize("good", [EVENTS, HTTP2], ids=["quic", "http2"])
@pytest.mark.parametrize("first", [True, False])
def test_a_connection_that_failed_is_not_chosen_before_one_that_worked(
    tmp_path, answers, good, first
):
    bad = failed(2, 200, answers)
    ds = read(tmp_path, lines([*bad, *good] if first else [*good, *bad]))
    number = good[0]["source"]["id"]
    told = json.loads(ds.attrs["warnings"])[0]
    assert f"has 2 connections, {number} (" in told
    assert "2 (a.example:443, " in told
    assert "packets, no answer)" in told
    assert ds.sizes["http"] > 0
    chosen = read(tmp_path, lines([*bad, *good]), connection=2)  # it can still be looked at
    assert chosen.sizes["sent"] == 200


def test_of_two_that_failed_the_one_that_got_further_is_chosen(tmp_path):
    ds = read(tmp_path, lines([*failed(2, 200), *failed(3, 10, answers=2)]))
    assert ds.sizes["sent"] == 10


def test_packets_without_a_number_and_acks_of_nothing_are_counted(tmp_path):
    events = [
        *EVENTS,
        event(130, "QUIC_SESSION_PACKET_SENT", size=9, encryption_level=2),
        event(130, "QUIC_SESSION_ACK_FRAME_RECEIVED", missing_packets=[]),
        event(130, "QUIC_SESSION_ACK_FRAME_RECEIVED", missing_packets=[]),
    ]
    assert json.loads(read(tmp_path, lines(events)).attrs["warnings"]) == [
        "net.json: packets without a number, left out: 1",
        "net.json: ACKs of no packet, left out: 2",
    ]
