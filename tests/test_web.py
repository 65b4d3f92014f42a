"""Web loads: what a spec may say, what a report must prove, and the physics of one object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import qbkit as qb
from qbkit.errors import RunFailed, SpecError
from qbkit.spec.web import WebLoad
from qbkit.stacks.web import base as web
from qbkit.stacks.web.clients.curl import Curl
from qbkit.stacks.web.clients.ngtcp2 import Ngtcp2Client
from qbkit.stacks.web.pages.sites import page_site
from qbkit.stacks.web.site import Site, object_site
from qbkit.testbed.web import WebPair, web_plan
from qbkit.traces.web.load import build_load

LINK = qb.Bottleneck(rate_mbps=10, rtt_ms=15, buffer_packets=50)


def load_of(**fields: object) -> WebLoad:
    given = {"server": "envoy:cubic", "client": "go", "protocol": "h3", "object_bytes": 100_000}
    return WebLoad(**{"bottleneck": LINK, **given, **fields})


def test_a_load_survives_json_and_every_field_changes_its_hash():
    load = load_of()
    assert WebLoad.from_json(load.to_json()) == load
    changes = {"seed": 2, "protocol": "h2", "client": "curl", "object_bytes": 1, "limit_s": 9}
    hashes = {load_of(**{name: value}).hash for name, value in changes.items()}
    assert len({load.hash, *hashes}) == 6


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"server": "envoy"}, "write server:controller"),
        ({"object_bytes": 0}, "greater than or equal to 1"),
        ({"object_bytes": 10**9}, "less than or equal to 100000000"),
        ({"object_bytes": None}, "give object_bytes or page"),
        ({"page": "small"}, "and not both"),
        ({"protocol": "h1"}, "'h2' or 'h3'"),
    ],
)
def test_a_bad_load_gets_one_sentence(fields: dict, sentence: str):
    with pytest.raises(SpecError, match=sentence):
        load_of(**fields)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"server": "apache:cubic"}, "no server 'apache'; known are .*envoy"),
        ({"client": "lynx"}, "no client 'lynx'; known are"),
        ({"client": "curl"}, "the client curl does not have h3; it has h2"),
        ({"server": "go:bbr"}, "go has no controller 'bbr' for h3; it has cubic, reno"),
        ({"server": "go:bbr2", "protocol": "h2"}, "go has no controller 'bbr2' for h2"),
        ({"zero_rtt": True, "protocol": "h2"}, "zero_rtt is for h3"),
        ({"tcp_initial_window_packets": 40}, "tcp_initial_window_packets is for h2, and h3 does n"),
        ({"page_seed": 2}, r"page_seed is for generated pages \(small, medium, large\); leave it"),
        ({"zero_rtt": True}, "the client go has no zero_rtt; it works with aioquic"),
        (
            {"zero_rtt": True, "client": "aioquic", "server": "go:cubic"},
            "the server go has no zero_rtt; it works with caddy, envoy, ngtcp2, quiche",
        ),
    ],
)
def test_server_and_client_must_be_able_to_do_it(fields: dict, sentence: str):
    with pytest.raises(SpecError, match=sentence):
        WebPair(load_of(**fields))


def test_the_kernels_controller_is_chosen_for_h2_alone():
    plans = [web_plan(WebPair(load_of(protocol=p)), "virtual", "capture") for p in ("h2", "h3")]
    assert [plan.data["flows"][0]["tcp_controller"] for plan in plans] == ["cubic", None]
    assert all(plan.data["ends_early"] for plan in plans)


def test_an_object_has_exactly_its_size_and_a_site_lists_its_files(tmp_path: Path):
    site = object_site(12_345)
    (file,) = site.files()
    assert (file.path, file.content_type) == ("/12345", "application/octet-stream")
    assert (site.folder / "12345").stat().st_size == 12_345
    (tmp_path / "css").mkdir()
    (tmp_path / "css/a.css").write_text("a{}")
    (tmp_path / "index.html").write_text("<p>")
    page = Site(tmp_path, "/index.html")
    assert [(f.path, f.content_type) for f in page.files()] == [
        ("/css/a.css", "text/css"),
        ("/index.html", "text/html"),
    ]
    before = page.version()
    (tmp_path / "index.html").write_text("<p>!")
    assert page.version() != before


def test_every_program_says_what_it_is():
    rows = web.web_rows()
    assert {("envoy", "server"), ("curl", "client")} <= {(r["name"], r["role"]) for r in rows}
    assert all(row["ready"] or row["reason"] for row in rows)
    assert all(row["protocols"] and row["source"] for row in rows)


def test_the_report_of_curl_is_read_and_names_the_protocol_that_it_used(tmp_path: Path):
    times = {"time_connect": 0.01, "time_appconnect": 0.02, "time_starttransfer": 0.03}
    curl = {"http_version": "1.1", "time_total": 0.5, "size_download": 7, "http_code": 200}
    said = {**times, **curl, "curl_version": "libcurl/8.0 OpenSSL/3"}
    (tmp_path / "receiver.log").write_text(f"warning\n{json.dumps(said)}\n")
    report = Curl().load(tmp_path)
    assert (report["protocol"], report["last_byte_s"], report["bytes"]) == ("http/1.1", 0.5, 7)


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        ({"protocol": "h2", "status": 200, "bytes": 100_000}, "asked for h3, .* answered by h2"),
        ({"protocol": "h3", "status": 404, "bytes": 100_000}, "answered with status 404"),
        ({"protocol": "h3", "status": 200, "bytes": 99_999}, "received 99999 of 100000 bytes"),
        (
            {"protocol": "h3", "status": 200, "bytes": 100_000, "early_data_accepted": False},
            "the server envoy did not accept early data",
        ),
    ],
)
def test_another_response_than_asked_for_is_never_counted(
    report: dict, sentence: str, tmp_path: Path
):
    with pytest.raises(RunFailed, match=sentence):
        build_load(tmp_path, load_of(zero_rtt="early_data_accepted" in report), report, {})


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ({"capacity": "0:20 1:0 9:5"}, {"capacity": "0:20 1:0 cut"}),
        ({"capacity": "0:20 1:5 9:0 cut"}, {"capacity": "0:20 1:5"}),
        ({"capacity": "9:20"}, {"capacity": "0:20"}),
        ({"delay": "0:20 1:5 9:30"}, {"delay": "0:20 1:5"}),
        ({"outages": "1:0.5 9:1 drop"}, {"outages": "1:0.5 drop"}),
        ({"outages": "9:1"}, {}),
        ({"capacity": "0:20 1:5 9:1 repeat"}, {"capacity": "0:20 1:5 9:1 repeat"}),
    ],
)
def test_a_load_has_the_changes_that_it_reached(given, reached):
    load = load_of(bottleneck=qb.Bottleneck(rate_mbps=10, **given))
    assert load.experiment().bottleneck == load.bottleneck
    assert load.experiment(2.0).bottleneck == qb.Bottleneck(rate_mbps=10, **reached)


@pytest.mark.guest
def test_a_link_may_change_after_a_load_and_its_first_delay_counts():
    how = {"rate_mbps": 10, "buffer_packets": 50}
    link = qb.Bottleneck(**how, delay="0:20 100:300", outages="90:1", capacity="0:10 80:1")
    run = qb.run_web(load_of(bottleneck=link))
    # rtt_ms sizes the buffer only: half of its 50 ms had counted as the client's way
    assert float(run.handshake_s) == pytest.approx(0.02, abs=0.003)
    assert run.qb.experiment.bottleneck.outages is None
    assert WebLoad.from_json(run.attrs["web_load"]).bottleneck.outages is not None
    table = qb.metrics.acked_table(run)
    assert table.time_s.iloc[1] == pytest.approx(0.02, abs=0.003)
    still = qb.run_web(load_of(bottleneck=qb.Bottleneck(**how, rtt_ms=20)))
    parts, known = (qb.metrics.load_limits(load) for load in (run, still))
    assert parts["link"] == pytest.approx(known["link"], abs=0.006)


@pytest.mark.guest
@pytest.mark.parametrize("server", ["envoy:cubic", "go:cubic"])
def test_h3_connects_in_one_round_trip_and_h2_in_two(server: str):
    size_bytes, rtt_s = 100_000, 0.015
    h2, h3 = (qb.run_web(load_of(server=server, protocol=p)) for p in ("h2", "h3"))
    jitter_s = h2.attrs["max_frame_bytes"] * 8 / 10e6
    assert float(h2.connect_s) == pytest.approx(rtt_s, abs=jitter_s)
    assert float(h2.handshake_s) == pytest.approx(2 * rtt_s, abs=2 * jitter_s)
    assert float(h3.handshake_s) == pytest.approx(rtt_s, abs=2 * jitter_s)
    for run, trips in ((h2, 3), (h3, 2)):
        # handshake and request, then at least the object's own bits at the link's rate
        assert float(run.time_to_last_byte_s) > trips * rtt_s + size_bytes * 8 / 10e6
        arrived = run.packet_size_bytes[run.packet_fate == 0].sum()
        assert size_bytes < int(arrived) < 1.1 * size_bytes
        # the run ends with the load, not at its limit
        assert run.attrs["duration_s"] < float(run.time_to_last_byte_s) + 0.3
    assert h3.attrs["protocol"] == "h3" and json.loads(h3.attrs["client_report"])["status"] == 200


def test_the_report_of_ngtcp2_comes_from_its_log_and_qlog(tmp_path: Path):
    def event(time_ms: int, kind: str, *streams: int) -> str:
        frames = [{"frame_type": "stream", "stream_id": stream} for stream in streams]
        data = {"frames": frames, "header": {"packet_type": kind}}
        record = {"time": time_ms, "name": "transport:packet_received", "data": data}
        return json.dumps(record, separators=(",", ":"))

    events = [event(7, "initial"), event(20, "1RTT", 3), event(31, "1RTT", 0), event(40, "1RTT", 0)]
    (tmp_path / "client.qlog").write_text("\x1e".join(["", *events, event(50, "1RTT", 7)]))
    (tmp_path / "receiver.log").write_text("Negotiated ALPN is h3\nhttp: [:status: 200]\n")
    (tmp_path / "12").write_bytes(bytes(12))
    report = Ngtcp2Client().load(tmp_path)
    assert (report["protocol"], report["status"], report["bytes"]) == ("h3", 200, 12)
    times = [report[name] for name in ("handshake_s", "first_byte_s", "last_byte_s")]
    assert times == [0.020, 0.031, 0.040]
    with pytest.raises(RunFailed, match="ended without the object"):
        Ngtcp2Client().load(tmp_path)  # nothing is saved any more


@pytest.mark.slow
@pytest.mark.parametrize("site", [lambda: object_site(321), lambda: page_site("small", 1)])
def test_the_files_of_a_site_have_the_same_time_whenever_it_was_made(site, tmp_path, monkeypatch):
    """Servers send that time, so runs depend on it."""
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    files = [path for path in site().folder.rglob("*") if path.is_file()]
    assert files
    assert {path.stat().st_mtime for path in files} == {1_767_225_600}
