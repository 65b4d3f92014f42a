"""Programs of a user's table that die: the run is kept, and says whose it was, when and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_ends import end_of

from qbkit import stacks
from qbkit.errors import RunFailed
from qbkit.spec import Experiment
from qbkit.stacks.external.configured import from_table
from qbkit.traces.run.own_words import end_by_logs, end_by_words

PROGRAM = Path(__file__).parent / "bad/own.py"


@pytest.fixture
def own(monkeypatch, tmp_path):
    """Register a user's stack whose program dies in a way; return its flow."""

    def made(how: str, **more: object) -> str:
        table = {
            "program": "/usr/bin/python3",
            "controllers": ["cubic"],
            "connect": ["-I", str(PROGRAM), how, "connect", "{ip}", "{port}", "{out}"],
            "listen": ["-I", str(PROGRAM), how, "listen", "{port}"],
            **more,
        }
        known = {**stacks.registry._registered, "own": from_table("own", table, tmp_path)}
        monkeypatch.setattr(stacks.registry, "_registered", known)
        return "own:cubic"

    return made


@pytest.mark.guest
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("client-status-5", ("sender-program", 5, "status 5", "the last bug")),
        ("client-signal-11", ("sender-program", 11, "SIGSEGV", "")),
        ("client-signal-9", ("sender-program", 9, "SIGKILL", "")),
        ("listener-status-7", ("receiver-program", 7, "status 7", "the last bug")),
        ("listener-signal-6", ("receiver-program", 6, "SIGABRT", "")),
        (
            "client-says-panic: runtime error: index\n\ngoroutine 7:\nmain()",
            ("sender-program", 1, "status 1", "panic: runtime error: index"),
        ),
        (
            "client-says-cannot send: INTERNAL_ERROR (remote): too many gaps",
            ("receiver", None, "INTERNAL_ERROR", "too many gaps"),
        ),
        ("client-logs-a qlog", ("receiver", 3, "FLOW_CONTROL_ERROR", "too far")),
        ("client-logs-signal-11", ("sender-program", 11, "SIGSEGV", "")),
    ],
)
def test_a_program_that_dies_ends_its_flow_alone(own, how, said):
    run = Experiment(flows=[own(how), "tcp:reno"], duration_s=4).run(engine="virtual")
    by, code, name, reason = said
    end = end_of(run)
    assert (end["by"], end["name"], end["reason"]) == (by, name, reason)
    assert end["code"] == code or (code is None and end["code"] != end["code"])
    at_s = float(run.ended_s[0])
    assert 1.0 < at_s - float(run.start_s[0]) < 1.6 or "listener" in how
    assert float(run.stop_s[0]) == at_s < 3.5
    assert run.qb.warnings[0].startswith(f"own:cubic ended at {at_s:.1f} s: the ")
    late = run.packet_time_s.values[run.packet_flow.values == 1]
    assert late.max() > 3.9, "the other flow goes on"


@pytest.mark.guest
def test_a_reset_shows_in_the_clients_last_words(own):
    run = Experiment(flows=[own("listener-resets")], duration_s=4).run(engine="virtual")
    assert end_of(run)["by"] == "reset"
    assert "reset by peer" in end_of(run)["reason"]


@pytest.mark.guest
def test_a_client_that_leaves_before_its_time_is_reported(own):
    run = Experiment(flows=[own("client-leaves")], duration_s=4).run(engine="virtual")
    sentence = (
        r"the sender's program ended with status 1: python\S* ended by itself after 1\.\d s, before"
    )
    assert re.search(sentence, run.qb.warnings[0])


@pytest.mark.guest
def test_a_sender_that_sends_nothing_is_a_failed_run_with_its_words(own):
    sentence = r"sent no packet to the bottleneck: the sender's .* status 1: unknown option --fast"
    with pytest.raises(RunFailed, match=sentence):
        Experiment(flows=[own("client-knows-no-option")], duration_s=2).run(engine="virtual")


@pytest.mark.parametrize(
    ("words", "role", "said"),
    [
        ("timeout: no recent network activity", "sender", ("timeout", None, "")),
        ("ERR_IDLE_CLOSE", "sender", ("timeout", None, "")),
        ("Application error 0x10c (remote): stop", "sender", ("receiver", 0x10C, "")),
        (
            "PROTOCOL_VIOLATION (local): bad ack",
            "receiver",
            ("receiver", None, "PROTOCOL_VIOLATION"),
        ),
        ("CRYPTO_ERROR 0x128 (remote): tls", "receiver", ("sender", None, "CRYPTO_ERROR")),
        ("Recv failure: Connection reset by peer", "receiver", ("reset", None, "")),
        ("page lacks 1: u gave net::ERR_CONNECTION_CLOSED", "receiver", ("sender", None, "")),
        ("HTTP/2 stream 1 was not closed cleanly: X", "receiver", ("sender", None, "")),
    ],
)
def test_last_words_of_libraries_say_who_ended_it(words, role, said):
    report = end_by_words(words, role)
    assert (report["by"], report.get("code"), report.get("name", "")) == said


@pytest.mark.parametrize("words", ["", "assertion failed: state != idle", "error: 404", "NO_ERROR"])
def test_other_last_words_say_nothing_of_it(words):
    assert end_by_words(words, "sender") is None


SEQUENTIAL = (
    '{{"qlog_version":"0.3","trace":{{"vantage_point":{{"type":"{0}"}}}}}}\n'
    '{{"time":1,"name":"connectivity:connection_closed","data":{1}}}\n'
)
DOCUMENT = (
    '{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"{0}"}},"events":'
    '[{{"time":1,"name":"connectivity:connection_closed","data":{1}}}]}}]}}'
)


@pytest.mark.parametrize("form", [SEQUENTIAL, DOCUMENT, DOCUMENT.replace(",", ",\n ")])
@pytest.mark.parametrize(
    ("vantage", "data", "said"),
    [
        ("client", '{"owner":"remote","connection_code":10,"reason":"x"}', ("receiver", 10)),
        ("server", '{"owner":"remote","application_code":7}', ("sender", 7)),
        ("server", '{"owner":"local","connection_code":"internal_error"}', ("receiver", None)),
        ("client", '{"trigger":"idle_timeout"}', ("timeout", None)),
        ("client", '{"owner":"local","connection_code":0}', None),
        ("client", '{"owner":[3]}', None),
    ],
)
def test_a_qlog_of_any_form_says_who_closed(tmp_path, form, vantage, data, said):
    (tmp_path / "a.qlog").write_text(form.format(vantage, data))
    report = end_by_logs(tmp_path, "sender")
    assert (report and (report["by"], report.get("code"))) == said


def test_a_net_log_says_who_closed(tmp_path):
    known = '"QUIC_NO_ERROR":0,"QUIC_INVALID_STREAM_DATA":46,"QUIC_CONNECTION_CANCELLED":70'
    names = f'"quicError":{{{known}}}'
    head = f'{{"constants":{{{names}}},\n"events":[\n'
    event = '{{"params":{{"details":"bad","from_peer":{1},"quic_error":{0}}},"time":"1","type":9}}'
    lines = [event.format(0, "true"), event.format(70, "false"), event.format(46, "true")]
    (tmp_path / "netlog.json").write_text(head + ",\n".join(lines) + "]}\n")
    said = {"by": "sender", "code": 46, "name": "QUIC_INVALID_STREAM_DATA", "reason": "bad"}
    assert end_by_logs(tmp_path, "receiver") == said
