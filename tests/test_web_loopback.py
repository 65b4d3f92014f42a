"""Web servers and clients of this machine over loopback: what they load, and how they fail."""

from __future__ import annotations

import http.server
import re
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import Bench, end, free_port, succeed

import qbkit as qb
from qbkit.errors import RunFailed
from qbkit.spec.web import WebLoad
from qbkit.stacks.toolchains import certificate
from qbkit.stacks.web import base as web
from qbkit.stacks.web.site import MOUNT, object_site
from qbkit.traces.web.load import build_load

SIZE_BYTES = 100_000
PAIRS = [("curl", "h2"), ("go", "h2"), ("go", "h3"), ("aioquic", "h3"), ("ngtcp2", "h3")]


def ready(program: web.WebProgram) -> web.WebProgram:
    """The program; skips the test where it is not ready."""
    status = program.status()
    if not status.ready:
        pytest.skip(status.reason)
    return program


def load(bench: Bench, name: str, protocol: str, address: str, path: str):
    """Start a client; its log is where the agent of a guest writes it."""
    client = ready(web.client(name))
    out = str(bench.folder)
    argv = client.argv(address=address, protocol=protocol, path=path, out=out, zero_rtt=False)
    process = bench.start(client, argv)
    _, log = process.communicate(timeout=30)
    (bench.folder / "receiver.log").write_text(log)
    return client, process.returncode, log


@pytest.mark.slow
@pytest.mark.parametrize("name", ["envoy", "go", "quiche"])
def test_every_client_loads_the_object_by_the_protocol_it_names(name: str, bench: Bench):
    server, site = ready(web.server(name)), object_site(SIZE_BYTES)
    address = f"127.0.0.1:{free_port()}"
    shutil.copytree(site.folder, bench.here(MOUNT))
    how = {"controller": "cubic", "site": site, "out": str(bench.folder)}
    process = bench.start(server, server.argv(address=address, protocol="h3", **how))
    assert process.stdout and process.stdout.readline() == "ready\n"
    for client_name, protocol in [pair for pair in PAIRS if pair[1] in server.protocols]:
        client, status, log = load(bench, client_name, protocol, address, site.start)
        assert status == 0, log
        report = client.load(bench.folder)
        assert (report["protocol"], report["status"]) == (protocol, 200), client_name
        assert report["bytes"] == SIZE_BYTES
        assert report["handshake_s"] <= report["first_byte_s"] <= report["last_byte_s"]
    client, status, log = load(bench, "go", server.protocols[0], address, "/nothing")
    assert status == 0 and client.load(bench.folder)["status"] == 404
    end(process)


class Answer(http.server.BaseHTTPRequestHandler):
    """HTTP/1.1 alone."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"old")

    def log_message(self, *_words):
        """Say nothing."""


@contextmanager
def old_server() -> Iterator[str]:
    """A server with TLS that has neither HTTP/2 nor HTTP/3."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    keys = [certificate.folder() / f"browser-{word}.pem" for word in ("cert", "key")]
    context.load_cert_chain(*keys)
    context.set_alpn_protocols(["http/1.1"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("name", ["curl", "go"])
def test_an_answer_by_http_1_is_never_counted_as_h2(name: str, bench: Bench, tmp_path: Path):
    with old_server() as address:
        client, status, log = load(bench, name, "h2", address, "/3")
    assert status == 0, log
    spec = WebLoad(
        bottleneck=qb.Bottleneck(), server="go:cubic", client=name, protocol="h2", object_bytes=3
    )
    with pytest.raises(RunFailed, match=r"asked for h2, .* answered by http/1\.1"):
        build_load(tmp_path, spec, client.load(bench.folder), {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "sentence"),
    {
        "go h2": "connection refused",
        "curl h2": "Failed to connect|Could not connect",
        "aioquic h3": "nothing listens on UDP port",
    }.items(),
)
def test_a_server_that_is_not_there_is_one_sentence(how: str, sentence: str, bench: Bench):
    _, status, log = load(bench, *how.split(), f"127.0.0.1:{free_port()}", "/1")
    assert status != 0
    last = log.strip().splitlines()[-1]
    assert re.search(sentence, last), log
    assert "Traceback" not in log


def test_the_go_server_ends_well(bench: Bench):
    server, site = ready(web.server("go")), object_site(1)
    shutil.copytree(site.folder, bench.here(MOUNT))
    how = {"controller": "reno", "site": site, "out": str(bench.folder)}
    address = f"127.0.0.1:{free_port()}"
    process = bench.start(server, server.argv(address=address, protocol="h2", **how))
    assert process.stdout and process.stdout.readline() == "ready\n"
    process.terminate()
    succeed(process)
