"""Which controller is this? From packets, on senders whose controller is known."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from simulated import put_packets, simulate
from synthetic import synthetic_run

import qbkit as qb
from qbkit.cli import group
from qbkit.errors import MetricError, StoreError, TraceError
from qbkit.metrics.identity import FEATURES, UNKNOWN, Identity, Signatures, features_of, shipped
from qbkit.metrics.parameters.connection import Connection, sender_side_s
from qbkit.traces.logs.events import EventTables

ROOT = Path(__file__).parents[1]
MAKE = ROOT / "data/identify/make.py"
NEVER_LOSES = {"buffer_packets": 1e6, "threshold_packets": 40}


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("identify_make", MAKE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published(make) -> pd.DataFrame:
    return make.published_features()


def events_of(connection: Connection, sender_s: float = 0.0, source: str = "pcap"):
    """A capture of the connection, at a place that is half of ``sender_s`` from the sender."""
    tables = EventTables()
    rtt_s, half_s = connection.min_rtt_s, sender_s / 2
    tables.handshake.put(-rtt_s + half_s, "sent", "initial", 0, 60, ["SYN"])
    tables.handshake.put(-half_s, "received", "initial", 0, 60, ["SYN", "ACK"])
    tables.handshake.put(half_s, "sent", "initial", 1, 60, ["ACK"])
    sent = [(time_s + half_s, 0, n) for n, time_s in enumerate(connection.sent_s)]
    fates = zip(connection.acked_or_lost_s, connection.lost, strict=True)
    came = [(at_s - half_s, 2 if lost else 1, n) for n, (at_s, lost) in enumerate(fates)]
    put_packets(tables, sent + came)
    return tables.dataset(source=source, title="a connection")


@pytest.mark.parametrize("alpha", [0.9, 1.0])
def test_aimd_with_a_half_is_reno(alpha):
    [identity] = qb.identify(events_of(simulate(alpha=alpha))).values()
    assert identity.answer == "reno"
    assert "fraction of the window left after a loss: 0.5" in identity.reason


def test_what_nobody_does_is_unknown():
    [identity] = qb.identify(events_of(simulate(alpha=6.0, beta=0.1))).values()
    assert identity.answer == UNKNOWN
    assert "behaves as reno, but not in numbers: fraction of the window" in identity.reason


def test_a_connection_that_is_too_short_or_without_an_event_says_so():
    [short] = qb.identify(events_of(simulate(duration_s=3))).values()
    assert short.answer == UNKNOWN
    assert "after its slow start; a controller needs 5.0 s or more" in short.reason
    with pytest.raises(MetricError, match="no loss after its slow start and does not probe"):
        features_of(simulate(most_packets=30, duration_s=20, **NEVER_LOSES))


@pytest.mark.parametrize("sender_s", [0.0, 0.01, 0.03])
def test_a_capture_shows_the_same_wherever_it_was_made_before_the_queue(sender_s):
    connection = simulate()
    events = events_of(connection, sender_s)
    assert sender_side_s(events) == pytest.approx(sender_s)
    seen = qb.identify(events)["a connection"].features
    expected = features_of(connection)
    assert {k: v for k, v in seen.items() if math.isfinite(v)} == pytest.approx(
        {k: v for k, v in expected.items() if math.isfinite(v)}, rel=0.05
    )


def test_captures_that_cannot_show_the_window_are_refused_in_one_sentence():
    with pytest.raises(TraceError, match="made at the receiver, behind the queue"):
        qb.identify(events_of(simulate(), sender_s=0.0499))
    encrypted = EventTables()
    for number in range(100):
        encrypted.sent(number / 10, "application", number, 1200)
    with pytest.raises(TraceError, match=r"QUIC needs its secrets \(keylog\)"):
        qb.identify(encrypted.dataset(source="pcap"))
    with pytest.raises(TraceError, match="no acknowledgements of tcp 1 to 2: capture both"):
        qb.identify(encrypted.dataset(source="pcap", title="tcp 1 to 2"))
    with pytest.raises(TraceError, match="the log of a sender has no acknowledgements"):
        qb.identify(encrypted.dataset(source="qlog", title="a sender"))
    receiver = EventTables()
    receiver.received(0.1, "application", 1, 1200)
    with pytest.raises(TraceError, match="taken for the sender sends no data: give the other"):
        qb.identify(receiver.dataset(source="pcap", title="tcp 1 to 2"))
    receiver.sent(0.2, "application", 1, 1200)
    receiver.acked(0.3, "application", 1, 1)
    with pytest.raises(TraceError, match=r"sent 1 of the 20 .*; the log of the end that receives"):
        qb.identify(receiver.dataset(source="qlog"))


def test_a_log_that_names_no_losses_shows_them_by_what_is_never_acknowledged():
    connection = simulate()
    whole = events_of(connection, source="qlog")
    nameless = whole.isel(lost=slice(0, 0))
    (seen,), (expected,) = (qb.identify(events).values() for events in (nameless, whole))
    assert seen.answer == expected.answer == "reno"
    assert seen.features["decrease_factor"] == pytest.approx(0.5, abs=0.02)


def test_a_log_of_one_connection_says_so():
    events = events_of(simulate())
    with pytest.raises(StoreError, match=r"is no run, and has no flow x; .*port\s+chooses"):
        qb.identify(events, "x")
    several = events.assign_attrs(warnings=json.dumps(["a.pcap has 2 connections; this is b"]))
    with pytest.warns(UserWarning, match="has 2 connections"):
        qb.identify(several)


def test_signatures_survive_their_table_and_need_two_controllers_apart():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: 0.3 + rng.random(40) / 1000 for name in FEATURES})
    frame["decrease_factor"] = [0.5] * 20 + [0.7] * 20
    controllers = pd.Series(["a"] * 20 + ["b"] * 20)
    fitted = Signatures.fit(frame, controllers)
    again = Signatures.of_table(fitted.table())
    one = frame.iloc[3].to_dict()
    assert again.identify(one).scores == pytest.approx(fitted.identify(one).scores)
    assert fitted.identify(one).evidence["a"].idxmax() == "decrease_factor"
    alike = Signatures.fit(frame.assign(decrease_factor=0.5), controllers)
    assert alike.identify(one | {"decrease_factor": 0.5}).answer == UNKNOWN


def test_each_flow_of_a_run_has_an_answer():
    run = synthetic_run(duration_s=4)
    found = qb.identify(run)
    assert list(found) == ["quic-go:cubic", "tcp:cubic"]
    assert {one.answer for one in found.values()} == {UNKNOWN}
    assert list(qb.identify(run, 1)) == ["tcp:cubic"]
    assert list(found.frame().columns) == ["flow", "controller", "why"]
    assert "what counts" not in found._repr_html_()


def test_the_command(tmp_path):
    runner = CliRunner()
    qb.save_run(synthetic_run(duration_s=4), tmp_path / "run.nc")
    words = ["identify", str(tmp_path / "run.nc"), "--json"]
    found = runner.invoke(group, words, standalone_mode=False)
    assert found.return_value == 4
    assert json.loads(found.output)["tcp:cubic"]["controller"] == UNKNOWN
    with pytest.raises(StoreError, match="there is no nowhere; give a capture or a log"):
        qb.identify("nowhere")
    with pytest.raises(StoreError, match="of which keylog chooses nothing"):
        qb.identify(tmp_path / "run.nc", keylog="keys")


def test_neither_answer_nor_needs_come_from_code_that_is_asked_about(make, published, monkeypatch):
    fitted = []

    def recorded(features, controllers):
        fitted.append(set(published.loc[features.index, "implementation"].map(make.code_of)))
        return shipped()

    judge = make.Judge(published)
    monkeypatch.setattr(make.Signatures, "fit", recorded)
    codes = set(judge.codes)
    judge.needs(frozenset({"quinn"}))
    without = [codes - seen for seen in fitted]
    assert all("quinn" in each and len(each) == 2 for each in without)
    assert len(without) == len(codes) - 1
    [first, *_] = judge.features.index[judge.codes == "quinn"]
    judge.identify(first, frozenset(), make.NEEDS)
    assert codes - fitted[-1] == {"quinn"}
    assert {make.code_of(name) for name in ("noq:cubic", "quinn:bbr")} == {"quinn"}


def test_a_wrong_answer_takes_back_a_right_one(make):
    one = Identity(UNKNOWN, "", {"reno": 3.0, "cubic": 1.0}, {}, pd.DataFrame(), ["a", "b"])
    strict, loose = make.Needs(2.5, 3), make.Needs(2.0, 3)
    assert [make.gain(one, right, loose) for right in ("reno", "cubic", "")] == [1, -1, -1]
    assert [make.gain(one, right, strict) for right in ("reno", "cubic", "")] == [0, 0, 1]
    assert one.doubts(make.Needs(2.0, 1)) == "unlike"


@pytest.mark.slow
def test_what_is_published_follows_from_the_features(make, published):
    judge = make.Judge(published)
    judged = judge.answers()
    answers = pd.read_csv(MAKE.parent / "answers.csv")
    assert list(judged["answer"]) == list(answers["answer"])
    confusion = pd.read_csv(MAKE.parent / "confusion.csv", index_col="right")
    assert int(confusion.to_numpy().sum()) == len(published)
    assert judge.needs() == make.NEEDS


def test_the_signatures_follow_from_the_features(make, published):
    fitted = make.Judge(published).signatures(frozenset()).table()
    stored = shipped().table()
    assert list(fitted["controller"]) == list(stored["controller"])
    assert fitted["value_0"].to_numpy() == pytest.approx(
        stored["value_0"].to_numpy(), rel=1e-3, nan_ok=True
    )


def test_a_chart_of_answers():
    answers = pd.DataFrame(
        {"right": ["cubic", "cubic", "reno"], "answer": ["cubic", "reno", "reno"]}
    )
    chart = qb.plots.confusion_chart(answers).to_dict()
    assert "67 %" in chart["title"]["subtitle"]
    with pytest.raises(MetricError, match="no answer to draw"):
        qb.plots.confusion_chart(answers[:0])


@pytest.mark.guest
def test_a_capture_at_one_point_and_its_run_name_the_same_controller(tmp_path):
    out = tmp_path / "run.nc"
    link = qb.Bottleneck(rate_mbps=6, rtt_ms=100)
    for controller in ("cubic", "reno"):
        flow = f"tcp:{controller}"
        qb.Experiment(flows=[flow], bottleneck=link, duration_s=40).run(
            out=out, keep="pcap", force=True
        )
        of_run = qb.identify(out)[flow]
        kept = tmp_path / "run.kept"
        sides = qb.read_pcaps(kept / "before.pcap", kept / "after.pcap", flows={4001: "mine"})
        assert qb.identify(sides)["mine"].answer == controller
        assert set(qb.compare(sides, qb.load_run(out)).frame()["of"]) == {"flow 1"}
        [of_capture] = qb.identify(tmp_path / "run.kept/before.pcap").values()
        assert of_run.answer == of_capture.answer == controller
        assert of_capture.features["decrease_factor"] == pytest.approx(
            of_run.features["decrease_factor"], abs=0.01
        )


@pytest.mark.guest
def test_a_window_that_flow_control_holds_is_no_bbr():
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=50)
    held = qb.Experiment(
        flows=["quinn:cubic?read_mbps=3&receive_window_kb=100"], bottleneck=link, duration_s=30
    ).run()
    [identity] = qb.identify(held).values()
    assert identity.answer == UNKNOWN and "a window that flow control holds" in identity.reason
    [bbr] = qb.identify(
        qb.Experiment(flows=["tcp:bbr"], bottleneck=link, duration_s=30).run()
    ).values()
    assert bbr.answer == "bbr"


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"rate_mbps": 0.3, "rtt_ms": 100, "buffer_packets": 10}, "a few packets"),
        ({"qdisc": "dualpi2", "buffer_bdp": 4}, "the marks reduce its window"),
    ],
)
def test_a_loss_based_window_without_a_law_to_be_seen_is_no_bbr(link, why, tmp_path):
    both = qb.Experiment(
        bottleneck=qb.Bottleneck(**link), flows=["tcp:cubic", "quinn:cubic"], duration_s=24
    )
    found = qb.identify(both.run(engine="virtual", out=tmp_path / "run.nc"))["quinn:cubic"]
    assert found.answer == "unknown" and why in found.reason
    assert next(iter(found.scores)) == "bbr"
