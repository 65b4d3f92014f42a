"""URLs measured in real time, from real servers on the loopback interface."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from loopback import Bench, end, free_port

import qbkit as qb
from qbkit.cli import group
from qbkit.cli.web.command import web_command
from qbkit.errors import RunFailed, SpecError, StackNotReady, StoreError
from qbkit.metrics import url_differences
from qbkit.stacks.web import base as web
from qbkit.stacks.web.clients.curl import Curl
from qbkit.stacks.web.site import MOUNT, Site
from qbkit.traces.web.urls import UrlLoad, build_urls, require_response

CONTENT = bytes(range(250)) * 40
REPORT = {"version": 1, "client": "curl", "protocol": "h3", "status": 200, "bytes": 7}


@pytest.fixture
def serve(bench: Bench, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Start a server with one file on a free port: its URL."""
    started = []

    def start(name: str) -> str:
        for program in (web.server(name), web.client("curl-http3")):
            try:
                program.build()
            except StackNotReady as error:
                pytest.skip(f"{program.name}: {error}")
        folder = tmp_path / "site"
        folder.mkdir(exist_ok=True)
        (folder / "object").write_bytes(CONTENT)
        out = tmp_path / name
        out.mkdir()
        server, port = web.server(name), free_port()
        what = {"controller": server.controllers()[0], "site": Site(folder, "/object")}
        argv = server.argv(address=f"127.0.0.1:{port}", protocol="h3", out=str(out), **what)
        process = bench.start(server, [word.replace(MOUNT, str(folder)) for word in argv])
        started.append(process)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return f"https://localhost:{port}/object"

    yield start
    for process in started:
        end(process)


@pytest.fixture
def plain_server(tmp_path: Path) -> Iterator[str]:
    """A server that has HTTP/1.1 over TLS alone."""
    import ssl

    from qbkit.stacks.toolchains import certificate

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"abc")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    keys = certificate.folder()
    context.load_cert_chain(keys / "browser-cert.pem", keys / "browser-key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}/"
    server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["envoy", "go", "hypercorn", "nginx"])
def test_both_protocols_alternate_and_are_proven(name: str, serve, tmp_path: Path):
    url = serve(name)
    loads = qb.measure_urls([url], repeat=3, verify=False)
    assert loads.protocol.values.tolist() == ["h2", "h3"] * 3
    assert loads.repetition.values.tolist() == [0, 0, 1, 1, 2, 2]
    assert (loads.bytes == len(CONTENT)).all()
    assert set(loads.address.values) <= {"127.0.0.1", "::1"}
    order = [loads[n].values for n in ("connect_s", "handshake_s", "first_byte_s")]
    for earlier, later in zip(order, [*order[1:], loads.time_to_last_byte_s.values], strict=True):
        assert (earlier <= later).all()
    assert (np.diff(loads.started_s.values) > loads.time_to_last_byte_s.values[:-1]).all()
    assert json.loads(loads.attrs["failures"]) == []
    qb.save_run(loads, tmp_path / "loads.nc")
    xr.testing.assert_identical(qb.load_run(tmp_path / "loads.nc"), loads)


def test_a_file_with_other_results_is_not_overwritten(tmp_path: Path):
    file = tmp_path / "loads.nc"
    attrs = {"failures": "[]", "client_versions": "{}", "spec": "", "qbkit_version": "1"}
    load = UrlLoad("https://a/", "127.0.0.1", 0, 0.0, REPORT)
    qb.save_run(build_urls([load], attrs), file)
    before = file.read_bytes()
    for command in (["run", "tcp:cubic"], ["web", "https://localhost/"]):
        done = CliRunner().invoke(group, [*command, "--out", str(file)])
        assert (done.exit_code, file.read_bytes()) == (1, before)
        assert f"{file} holds other measurements; choose another file, or" in str(done.exception)
    with pytest.raises(
        StoreError, match=r"cannot be saved as 'loads\.nc'; choose a name with \.html"
    ):
        qb.save_report(qb.load_run(file), file)


@pytest.mark.slow
def test_the_command_writes_prints_and_refuses_options_of_the_emulation(serve, tmp_path: Path):
    url, file = serve("nginx"), tmp_path / "out/loads.nc"
    words = [url, "--repeat", "2", "--insecure", "--out", str(file), "--json"]
    done = CliRunner().invoke(web_command, words, standalone_mode=False)
    answer = json.loads(done.stdout)
    (row,) = answer["urls"]
    assert (row["h2_loads"], row["h3_loads"], answer["failures"]) == (2, 2, [])
    assert row["low_percent"] <= row["difference_percent"] <= row["high_percent"]
    assert qb.load_run(file).sizes["load"] == 4
    again = [url, "--repeat", "1", "--insecure", "--out", str(file)]
    with pytest.raises(StoreError, match=r"holds other measurements; .* --force"):
        CliRunner().invoke(web_command, again, standalone_mode=False, catch_exceptions=False)
    assert qb.load_run(file).sizes["load"] == 4
    words = [*again, "--force"]
    assert CliRunner().invoke(web_command, words, standalone_mode=False).exit_code == 0
    assert qb.load_run(file).sizes["load"] == 2
    for option, value in (("--rtt-ms", "10"), ("--object", "1MB"), ("--server", "envoy:cubic")):
        done = CliRunner().invoke(web_command, [url, option, value])
        assert done.exit_code == 2
        assert f"{option} is for loads in virtual time; URLs are loaded over" in done.output
    done = CliRunner().invoke(web_command, ["--out", "x.nc"])
    assert "--out, --force and --insecure are for URLs" in done.output


@pytest.mark.slow
def test_a_refused_certificate_is_one_sentence(serve):
    with pytest.raises(RunFailed, match=r"by h2: curl: SSL.*certificate"):
        qb.measure_urls([serve("nginx")], repeat=1)


@pytest.mark.slow
def test_http_1_is_never_counted_as_h2_and_tcp_never_as_h3(plain_server: str):
    with pytest.raises(RunFailed, match=r"asked for by h2 and answered by http/1.1, which does"):
        qb.measure_urls([plain_server], protocols=["h2"], client="curl", verify=False)
    if web.client("curl-http3").status().ready:
        with pytest.raises(RunFailed, match="by h3: curl: "):
            qb.measure_urls([plain_server], protocols=["h3"], verify=False)


@pytest.mark.slow
def test_failures_in_between_are_kept_and_not_counted(plain_server: str, monkeypatch):
    reports = iter([REPORT, REPORT, {**REPORT, "protocol": "h2"}, {**REPORT, "status": 503}, None])

    def answer(*_: object) -> dict[str, object]:
        report = next(reports)
        if report is None:
            raise RunFailed("curl: connection reset")
        return {**report, "last_byte_s": 0.5, "connect_s": 0.1, "handshake_s": 0.1}

    monkeypatch.setattr(Curl, "protocols", ("h2", "h3"))
    monkeypatch.setattr(Curl, "url_report", answer)
    loads = qb.measure_urls([plain_server], protocols=["h3"], client="curl", repeat=4)
    assert loads.repetition.values.tolist() == [0]
    assert np.isnan(loads.first_byte_s.values).all()
    reasons = [failure["reason"] for failure in json.loads(loads.attrs["failures"])]
    assert [" answered by h2," in reasons[0], "status 503" in reasons[1]] == [True, True]
    assert reasons[2].endswith("by h3: curl: connection reset")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"urls": []}, "give at least one URL"),
        ({"urls": ["http://example.org/"]}, r"write https://HOST\[:PORT\]/PATH"),
        ({"urls": ["example.org"]}, "'example.org' is not a URL to measure"),
        ({"urls": ["https://a:b@localhost/"]}, "is not a URL to measure"),
        ({"urls": ["https://localhost:0/"]}, "is not a URL to measure; write"),
        ({"urls": ["https://localhost/a b"]}, "is not a URL to measure; write"),
        ({"urls": ["https://localhost:x/"]}, "is not a URL to measure; write"),
        ({"urls": ["https://no-such-host.invalid/"]}, "the host no-such-host.invalid has no addr"),
        ({"urls": ["https://localhost/\0"]}, "is not a URL to measure; write"),
        ({"limit_s": 1e7}, r"limit_s = 1e\+07: give seconds above 0, up to 3600"),
        ({"repeat": 0}, "repeat = 0: give at least 1"),
        ({"protocols": []}, "give h2, h3 or both, each once"),
        ({"protocols": ["h2", "h2"]}, "each once"),
        ({"protocols": ["h9"]}, "there is no protocol 'h9'"),
        ({"protocols": ["h3"]}, "the client curl does not have h3"),
        ({"client": "lynx"}, "there is no client 'lynx'"),
        ({"client": "go"}, "the client go loads nothing from this machine's own network"),
    ],
)
def test_bad_input_gets_one_sentence(words: dict, sentence: str):
    given = {"urls": ["https://localhost/"], "protocols": ["h2"], "client": "curl", **words}
    if words.get("client") == "go" and not web.client("go").status().ready:
        pytest.skip("quic-go is not built")
    with pytest.raises(SpecError, match=sentence):
        qb.measure_urls(given.pop("urls"), **given)


def test_a_load_that_never_ends_is_a_failure(monkeypatch):
    monkeypatch.setattr(Curl, "command_here", lambda _: ["sleep", "9", "#"])
    monkeypatch.setattr(Curl, "url_argv", lambda *_, **__: ["sleep", "9"])
    with pytest.raises(RunFailed, match=r"https://localhost/ by h2 took longer than 0.1 s"):
        qb.measure_urls(["https://localhost/"], protocols=["h2"], client="curl", limit_s=0.1)


def test_differences_by_hand():
    times = {"h2": [1.0, 2.0, 3.0], "h3": [1.0, 1.0, 1.5]}
    loads = [
        UrlLoad("u", "1.2.3.4", k, 0.0, {**REPORT, "protocol": p, "last_byte_s": time_s})
        for p, found in times.items()
        for k, time_s in enumerate(found)
    ]
    loads.append(UrlLoad("v", "1.2.3.5", 0, 9.0, {**REPORT, "last_byte_s": 4.0}))
    table = url_differences(build_urls(loads, {})).set_index("url")
    assert table.loc["u", ["h2_loads", "h3_loads", "h2_median_s", "h3_median_s"]].tolist() == [
        *(3, 3, 2.0, 1.0)
    ]
    assert table.loc["u", "difference_percent"] == -50
    assert table.loc["u", "low_percent"] <= -50 <= table.loc["u", "high_percent"]
    assert table.loc["v", ["h2_loads", "h3_median_s"]].tolist() == [0, 4.0]
    assert table.loc["v", ["h2_median_s", "difference_percent"]].isna().all()


def test_what_counts():
    require_response(REPORT, "u", "h3")
    with pytest.raises(RunFailed, match="u answered with status 301"):
        require_response({**REPORT, "status": 301}, "u", "h3")


def test_a_url_is_loaded_without_the_users_settings():
    target = web.Target("https://example.org/x", "example.org", 443, "2001:db8::1")
    argv = Curl().url_argv(target, protocol="h2", verify=True)
    assert argv[1] == "--disable"  # only as the first option does curl heed it
    assert "--globoff" in argv  # else https://example.org/{a,b} were two loads
    assert "--insecure" not in argv
    assert argv[argv.index("--connect-to") + 1] == "::[2001:db8::1]:443"
    assert "--insecure" in Curl().url_argv(target, protocol="h2", verify=False)
    assert subprocess.run([argv[0], "--version"], check=False, capture_output=True).returncode == 0
