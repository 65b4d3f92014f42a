"""A run is made again, compared with what was stored, and a second of it opened."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic import synthetic_run
from test_packets import in_whole_ns, write_capture
from test_reproduce import published

import qbkit as qb
from qbkit import measurement
from qbkit.chosen_flows import chosen_flows
from qbkit.cli.group import group
from qbkit.errors import StoreError, TraceError
from qbkit.execution.runner import kept_folder
from qbkit.plots.flows.sequence import ACK, LOST, OUT, _lines
from qbkit.store import load_run, save_run
from qbkit.studies import replay as module
from qbkit.studies.conformance import Study
from qbkit.studies.replay import replay, same_bytes
from qbkit.studies.replay_on_click import ReplayOnClick
from qbkit.studies.reproduction import published_points
from qbkit.studies.reproduction.inputs import MEASUREMENT, way_back
from qbkit.traces.run.dissected import packets_within

__all__ = ["published"]  # a fixture, used by its name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that is stored twice, the second time with captures."""
    place = tmp_path_factory.mktemp("runs")
    facts = {"tool_versions": "{}", "measurement_version": measurement.VERSION}
    ds = in_whole_ns(synthetic_run(duration_s=3, rate_mbps=2).assign_attrs(facts))
    save_run(ds, place / "run.nc")
    save_run(ds, place / "again.nc")
    write_capture(kept_folder(place / "again.nc") / "before.pcap", ds)
    return place


@pytest.fixture
def stored(folder, monkeypatch):
    """A stored run, whose replay takes no guest but the copy that has the captures."""
    monkeypatch.setattr(module, "_again", lambda *_: load_run(folder / "again.nc"))
    return load_run(folder / "run.nc")


@pytest.mark.slow
def test_a_second_has_all_its_packets_and_those_in_the_queue_before(stored):
    found = stored.qb.replay(around_s=1.5)
    assert str(found).splitlines()[:2] == ["The same bytes as the stored run.", "No input differs."]
    assert found.span_s == (1.0, 2.0)
    arrives_s, leaves_s = stored.packet_time_s.values, stored.packet_departure_s.values
    last_s = np.where(np.isnan(leaves_s), arrives_s, leaves_s)
    data = found.packets[found.packets.direction == "to receiver"]
    assert len(data) == int(((last_s >= 1 - 1e-9) & (arrives_s <= 2)).sum())
    assert (data.time_s < 1).any()
    lost = int(np.isnan(leaves_s[(arrives_s >= 1) & (arrives_s <= 2)]).sum())
    assert lost
    assert f"{len(data)} packets at the queue, {lost} of them lost" in found.counts


@pytest.mark.slow
def test_the_diagram_has_each_packet_in_its_lane(stored):
    found = stored.qb.replay(around_s=1.5)
    spec = found.chart().to_dict()
    assert spec["title"]["subtitle"].startswith("The same bytes as the stored run.")
    ladder = spec["vconcat"][0]["layer"]
    marks = {layer["mark"]["type"] for layer in ladder if isinstance(layer.get("mark"), dict)}
    assert marks >= {"rule", "circle", "point"}
    lines = _lines(found.packets)
    for what, lane in (("to sender", ACK), ("dropped", LOST), ("arrived", OUT)):
        mine = (found.packets.direction == what) | found.packets.fate.str.contains(what)
        assert mine.any()
        assert set(np.asarray(lines["to"])[mine]) == {lane}
    tcp = found.packets.flow == "tcp:cubic"
    words = np.array(lines["header"])[tcp & (found.packets.direction == "to receiver")][0]
    assert re.fullmatch(r"TCP seq \d+, ack \d+, window 500, ACK, ECT\(0\)", words)
    assert "QUIC 1-RTT, spin 1" in lines["header"]


def test_a_packet_that_the_path_holds_is_not_in_the_queue(folder):
    run = load_run(folder / "again.nc")
    held = run.assign(
        packet_left_s=run.packet_departure_s, packet_departure_s=run.packet_departure_s + 0.3
    )
    shown = [packets_within(ds, kept_folder(folder / "again.nc"), (1.0, 2.0)) for ds in (run, held)]
    assert shown[0].equals(shown[1])


def test_many_packets_shorten_the_span(stored, monkeypatch):
    monkeypatch.setattr(module, "MOST_PACKETS", 100)
    start_s, stop_s = stored.qb.replay(around_s=1.5).span_s
    times_s = np.concatenate([stored.packet_time_s.values, stored.ack_time_s.values])
    assert 1 < start_s < 1.5 < stop_s < 2
    assert ((times_s > start_s) & (times_s < stop_s)).sum() in (100, 101)


@pytest.mark.slow
def test_other_bytes_name_what_differs(stored):
    stored["throughput_mbps"] = stored.throughput_mbps * 0.9
    stored.attrs["stack_versions"] = json.dumps({"quic-go": "0.1", "tcp": "synthetic"})
    stored.attrs["created"] = "2026-11-23T23:54:52+00:00"
    verdict, inputs, back, _ = str(replay(stored, 1.5)).splitlines()
    assert verdict.startswith("It differs from the stored run: ")
    assert "of throughput_mbps" in verdict
    assert "quic-go: synthetic instead of 0.1" in inputs
    assert back == (
        "To make it as then, in a clone: `git checkout $(git log -1 --format=%h "
        "--until=2026-11-23T23:54:52+00:00)`, `qbkit stacks build quic-go`."
    )


def test_what_is_measured_otherwise_today_is_no_difference(stored):
    stored["goodput_mbps"] = stored.throughput_mbps * 0.9
    assert not stored.qb.replay(around_s=1.5).is_same
    stored.attrs["measurement_version"] = 2
    found = stored.qb.replay(around_s=1.5)
    assert (found.is_same, found.inputs) == (True, "Inputs: measurement version: 3 instead of 2.")


def test_the_way_back_names_what_moved_and_else_the_commit_of_the_file():
    then = {"quinn": "0.11.2", "tc": "6.1.0", "kernel build": "12ab", MEASUREMENT: "1"}
    assert way_back(then, Path("data/table.csv"), then) == (
        "To make it as then, in a clone: `git checkout $(git log -1 --format=%h -- "
        "data/table.csv)`, `make kernel`, `qbkit stacks build quinn`, with tc 6.1.0 of the system."
    )


def test_bytes_are_compared_not_values(stored):
    assert same_bytes(stored, stored.copy(deep=True))
    assert same_bytes(stored.isel(flow=[1]), stored)
    other = stored.copy(deep=True)
    other.packet_time_s.values[7] += 1e-9
    assert not same_bytes(stored, other)
    assert not same_bytes(stored, stored.drop_vars("packet_time_s"))


@pytest.mark.parametrize(
    ("attributes", "error", "sentence"),
    [
        ({"spec": ""}, StoreError, "the run was imported, so it cannot be run again"),
        ({"engine": "physical"}, StoreError, "in real time (engine physical), which does not"),
        ({"web_load": "{}"}, StoreError, "the load of a page; only runs of flows are replayed"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(stored, attributes, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        replay(stored.assign_attrs(attributes), 1.5)


@pytest.mark.parametrize("chosen", [{"flow": 1}, {"flow": [1]}, {"flow": [1, 0]}])
def test_a_run_of_chosen_flows_is_compared_with_these_flows(stored, chosen):
    some = stored.isel(chosen)
    for found in (qb.replay(some, 1.5), some.qb.replay(1.5), replay(chosen_flows(some), 1.5)):
        assert (found.verdict, found.inputs) == (
            "The same bytes as the stored run.",
            "No input differs.",
        )


@pytest.mark.parametrize("cut", [{"time": slice(0, 9)}, {"packet": slice(0, 90)}])
def test_a_run_that_was_cut_is_no_run_that_differs(stored, cut):
    for run in (stored, stored.drop_vars("dropped_packets")):
        with pytest.raises(TraceError, match="is cut to"):
            qb.replay(run.isel(cut), 1.5)


def test_times_without_packets_are_one_sentence(stored, monkeypatch):
    with pytest.raises(TraceError, match="around_s = 4: the run lasts from 0 to 3 s"):
        replay(stored, 4)
    monkeypatch.setattr(module, "HALF_S", 1e-9)
    with pytest.raises(TraceError, match=r"no packet is around 1\.23457 s; the nearest is at 1\.2"):
        replay(stored, 1.23456789)


@pytest.mark.slow
def test_the_command_draws_and_says_what_it_found(stored, tmp_path, monkeypatch):
    words = ["replay", stored.encoding["source"], "--at", "1.5", "--out", str(tmp_path / "a.html")]
    done = CliRunner().invoke(group, [*words, "--json"], standalone_mode=False)
    assert json.loads(done.stdout)["verdict"] == "The same bytes as the stored run."
    assert "qbkit-chart" in (tmp_path / "a.html").read_text()
    (tmp_path / "data/a").mkdir(parents=True)
    (tmp_path / "data/a/mine.nc").write_bytes(Path(words[1]).read_bytes())
    monkeypatch.chdir(tmp_path)
    by_name = ["replay", "mine", *words[2:4], "--out", "b.html"]
    assert CliRunner().invoke(group, by_name).output.startswith("The same bytes")
    bad = CliRunner().invoke(group, [*by_name, "--seed", "2"])
    assert "mine is one run; leave out seed, which chooses among several" in bad.output
    (tmp_path / "data/mine.nc").write_bytes(Path(words[1]).read_bytes())
    bad = CliRunner().invoke(group, by_name)
    assert "mine is published more than once: data/a/mine.nc, data/mine.nc; give" in bad.output
    bad = CliRunner().invoke(group, ["replay", "none", "--at", "1", "--out", "a.html"])
    assert "there is no run none; give FILE.nc" in bad.output
    bad = CliRunner().invoke(group, [*words[:4], "--out", "a.htm"])
    assert "a chart cannot be saved as 'a.htm'; choose a name with" in str(bad.exception)


@pytest.mark.slow
def test_a_click_replays_and_bad_times_are_a_sentence(stored):
    clickable = stored.qb.replay_on_click(stored.qb.plot.timeline())
    chart, field, answer = clickable.widget.children
    assert "Replay at" in field.description
    assert ".qbkit-chart" in chart.outputs[0]["data"]["text/html"]
    field.value = "1.5"
    assert "The same bytes as the stored run." in answer.outputs[0]["data"]["text/html"]
    field.value = "<b>soon"
    assert answer.outputs[0]["data"]["text/html"].startswith("<p>&#x27;&lt;b&gt;soon&#x27; is no")
    field.value = " "
    assert "&#x27;&#x27; is no time; give seconds" in answer.outputs[0]["data"]["text/html"]
    field.value = "7"
    assert "the run lasts from 0 to 3 s" in answer.outputs[0]["data"]["text/html"]
    assert "text/html" in clickable._repr_mimebundle_()


@pytest.mark.slow
def test_a_click_on_a_study_replays_the_trial_of_the_point(stored, folder):
    study = Study("quic-go:cubic", "tcp:cubic", [stored, stored], [load_run(folder / "run.nc")])
    clickable = ReplayOnClick(study.plot.sides, stored.qb.plot.timeline())
    assert "[label, trial]" in clickable.widget.children[0].outputs[0]["data"]["text/html"]
    assert clickable._run("quic-go:cubic", "2") is stored
    assert clickable._run("tcp:cubic (reference)", "seed 1") is study.references[0]
    assert "The same bytes" in clickable.replayed("1.5, quic-go:cubic, 1")
    known = "up to quic-go:cubic, 2; tcp:cubic (reference), 1"
    assert known in clickable.replayed("1.5")
    assert known in clickable.replayed("1.5, quic-go:cubic, 3")


@pytest.mark.guest
def test_a_real_run_repeats_to_the_byte(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path))
    run = qb.Experiment(flows=["aioquic:reno", "tcp:cubic"], duration_s=3).run()
    found = run.qb.replay(around_s=2)
    assert found.is_same
    assert found.inputs == "No input differs."
    assert set(found.packets.protocol) == {"QUIC", "TCP"}
    assert kept_folder(tmp_path / f"replays/{run.attrs['hash']}.nc").is_dir()
    events = packets_within(found.run, found.run.qb.kept_folder, (2.0, 2.01))
    assert events.time_s.max() <= 2.01


@pytest.mark.guest
def test_a_published_point_is_replayed(published, tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path / "elsewhere"))
    point = next(iter(published_points(published)))
    found = replay(point, 1.5)
    assert found.verdict == "The same numbers as published."
    assert len(found.packets) > 100
