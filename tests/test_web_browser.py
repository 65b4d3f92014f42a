"""Chromium and Firefox as web clients: with servers on the loopback, and in the guest."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from haralyzer import HarParser

import qbkit as qb
from qbkit.cli.web.command import web_command
from qbkit.errors import SpecError
from qbkit.stacks.chromium import PYTHON
from qbkit.stacks.quic_go import QuicGo
from qbkit.stacks.toolchains import certificate
from qbkit.stacks.web.clients.browser import Browser, driver_folder
from qbkit.stacks.web.clients.chromium import HeadlessShell
from qbkit.stacks.web.clients.firefox import Firefox
from qbkit.testbed.web import WebPair

needs_shell = pytest.mark.skipif(
    not HeadlessShell().status().ready, reason=HeadlessShell().status().reason
)
needs_firefox = pytest.mark.skipif(not Firefox().status().ready, reason=Firefox().status().reason)
BROWSERS = [
    pytest.param(HeadlessShell(), marks=needs_shell, id="headless-shell"),
    pytest.param(Firefox(), marks=needs_firefox, id="firefox"),
]
ERRORS = ("cannot load https://test.example/index.html: net::ERR_", "within 15 s")
PAGE = '<link rel="icon" href="data:,"><p>Hello</p>'


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """Go's web server on the loopback with a folder of files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        (program,) = (path for path in QuicGo().mounts().values() if (path / "quic-go").exists())
        keys = [f"{certificate.folder()}/browser-{word}.pem" for word in ("cert", "key")]
        words = [program / "quic-go", "web-serve", "--listen", f"127.0.0.1:{self.port}"]
        words += ["--controller", "cubic", "--cert", keys[0], "--key", keys[1], "--site", folder]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"


def begin(
    browser: Browser, port: int, out: Path, protocol: str, keys: Path, **more: str
) -> subprocess.Popen[str]:
    """The driver, which loads a page from that port of the loopback."""
    out.mkdir(exist_ok=True)
    given = {"url": "https://test.example/index.html", "limit-s": "60", **more}
    given |= {"address": f"127.0.0.1:{port}", "host": "test.example", "protocol": protocol}
    words = [word for k, v in given.items() for word in (f"--{k}", v)]
    program = [*PYTHON, "-B", driver_folder() / f"{browser.script}.py", browser.name]
    start = [*program, keys, *words, "--out", out]
    env = {"PATH": os.environ["PATH"]}  # no proxy, as in the guest
    return subprocess.Popen(start, env=env, stderr=subprocess.PIPE, text=True)


def load(
    browser: Browser, port: int, out: Path, protocol: str, keys: Path | None = None, **more: str
) -> str:
    """Why the load failed, as the driver's last line; empty where it did not."""
    driver = begin(browser, port, out, protocol, keys or certificate.folder(), **more)
    _, said = driver.communicate(timeout=120)
    return said.strip().splitlines()[-1] if driver.returncode else ""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if not QuicGo().status().ready:
        pytest.skip(QuicGo().status().reason)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(PAGE)
    (folder / "lacking.html").write_text(f"{PAGE}<img src=gone.png><script src=gone.js></script>")
    found = Server(folder)
    yield found
    found.process.terminate()
    found.process.wait()


@pytest.mark.browser
@pytest.mark.parametrize("protocol", ["h2", "h3"])
@pytest.mark.parametrize("browser", BROWSERS)
def test_the_protocol_is_the_one_asked_for(
    browser: Browser, protocol: str, server: Server, tmp_path: Path
):
    assert load(browser, server.port, tmp_path / "out", protocol) == ""
    found = json.loads((tmp_path / "out/load.json").read_text())
    assert found["protocol"] == protocol and found["status"] == 200
    assert [row["protocol"] for row in found["resources"]] == [protocol]
    assert found["page"]["first_contentful_paint_s"] > 0


@pytest.mark.browser
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_page_that_lacks_resources_fails_with_their_number(
    browser: Browser, server: Server, tmp_path: Path
):
    url = "https://test.example/lacking.html"
    why = load(browser, server.port, tmp_path / "out", "h3", url=url)
    assert "the page lacks 2 of its resources; https://test.example/gone." in why
    assert "gave 404" in why


@pytest.mark.browser
@pytest.mark.parametrize("browser", BROWSERS)
def test_a_refused_certificate_is_named(browser: Browser, server: Server, tmp_path: Path):
    keys = shutil.copytree(certificate.folder(), tmp_path / "keys")
    (keys / "browser-spki").write_text("A" * 43 + "=\n")  # what Chromium trusts
    shutil.copy(keys / "cert.pem", keys / "browser-ca.pem")  # and Firefox
    why = load(browser, server.port, tmp_path / "out", "h2", keys)
    assert "refused the certificate of https://test.example/index.html" in why


@pytest.mark.browser
@pytest.mark.parametrize(
    ("browser", "error"),
    [pytest.param(*p.values, e, marks=p.marks) for p, e in zip(BROWSERS, ERRORS, strict=True)],
)
def test_a_server_without_h3_is_never_counted_as_h3(browser: Browser, error: str, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as tcp:  # nothing listens on UDP
        why = load(browser, tcp.getsockname()[1], tmp_path / "out", "h3", **{"limit-s": "15"})
    assert error in why


@needs_shell
@pytest.mark.browser
def test_a_load_that_does_not_end_names_its_limit(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and answers nothing
        port = silent.getsockname()[1]
        why = load(HeadlessShell(), port, tmp_path / "out", "h2", **{"limit-s": "3"})
    assert "did not answer Page.navigate within 3 s, nine tenths of limit_s (raise it; " in why


@needs_shell
@pytest.mark.browser
def test_a_browser_that_is_killed_is_reported(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        driver = begin(HeadlessShell(), port, tmp_path / "out", "h2", certificate.folder())
        silent.accept()  # the browser runs
        for child in psutil.Process(driver.pid).children():
            child.kill()
        _, said = driver.communicate(timeout=60)
    last = said.strip().splitlines()[-1]
    assert (driver.returncode, last) == (1, "the browser ended by itself: was killed by signal 9")


def web_load(**fields: object) -> qb.WebLoad:
    given = {"server": "envoy:cubic", "client": "headless-shell", "page": "small", "limit_s": 30}
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40, buffer_bdp=4)
    return qb.WebLoad(**{"bottleneck": link, "protocol": "h3", **given, **fields})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"client": "curl", "protocol": "h2"}, "the client curl loads objects; give object_bytes"),
        ({"page": None, "object_bytes": 1000}, "the client headless-shell loads pages; give page"),
    ],
)
def test_a_client_loads_pages_or_objects(fields: dict, sentence: str):
    with pytest.raises(SpecError, match=sentence):
        WebPair(web_load(**fields))


def test_only_what_a_load_gives_can_be_kept():
    with pytest.raises(SpecError, match="cannot keep har, netlog of this load; choose from pcap"):
        qb.run_web(web_load(client="firefox"), keep=["har", "netlog"])
    with pytest.raises(SpecError, match="cannot keep har of this load; choose from pcap"):
        qb.run_web(web_load(client="go", page=None, object_bytes=1000), keep="har")


@pytest.mark.parametrize(
    ("urls", "sentence"),
    [
        (
            ("https://a.example/i", "https://b.example/x"),
            "the page has 2 hosts, and the server go serves one; it works with envoy, quiche",
        ),
        (
            ("https://a.example/i", "https://a.example/x?y=1"),
            r"addresses that are no names of files, .* \(as /x\?y=1\), and the server go serves "
            "files by their names; it works with envoy, quiche",
        ),
    ],
)
def test_a_server_of_files_serves_no_other_page(
    urls: tuple[str, ...], sentence: str, tmp_path: Path
):
    response = {"status": 200, "content": {"mimeType": "text/html", "size": 900}}
    entries = [{"request": {"url": url}, "response": response} for url in urls]
    path = tmp_path / "two.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    pair = WebPair(web_load(server="go:cubic", page=str(path)))
    with pytest.raises(SpecError, match=sentence):
        pair.site()


@needs_shell
@pytest.mark.guest
def test_a_page_over_both_protocols_obeys_the_link(tmp_path: Path):
    size_bytes, rtt_s, rate_bps = 470_000, 0.040, 10e6
    for protocol, connects, shakes in (("h2", 1, 2), ("h3", 1, 1)):
        out = tmp_path / f"{protocol}.nc"
        run = qb.run_web(web_load(protocol=protocol), out=out, keep=["har", "netlog"])
        assert set(run.resource_protocol.values) == {protocol}
        assert run.sizes["resource"] == 17
        assert float(run.connect_s) == pytest.approx(connects * rtt_s, abs=0.1 * rtt_s)
        assert float(run.handshake_s) == pytest.approx(shakes * rtt_s, abs=0.1 * rtt_s)
        # Then the request of the document, and at least all bytes at the link's rate. H2 needs one
        # more round trip: its first TLS record does not fit the initial window.
        first_s = float(run.resource_first_byte_s[0])
        assert (shakes + 1) * rtt_s <= first_s < (shakes + 2.2) * rtt_s
        load_s = float(run.page_load_time_s)
        assert first_s + size_bytes * 8 / rate_bps < load_s < 2 * size_bytes * 8 / rate_bps
        times = [float(run[name]) for name in ("first_paint_s", "largest_contentful_paint_s")]
        assert first_s < times[0] <= times[1] < load_s
        assert run.visual_progress_percent.values[-1] == 100
        index_s = qb.metrics.page_speed_index(run)
        assert times[0] <= index_s <= float(run.screenshot_time_s[-1])
        assert int(run.chunk_new_bytes.sum()) >= 0.9 * size_bytes
        assert (run.resource_sent_s >= run.resource_start_s - 0.002).all()
        assert (run.resource_sent_s <= run.resource_first_byte_s).all()
        assert len(np.unique(run.chunk_connection)) == 1
        # The archive is one for other people's readers, and agrees with the dataset.
        kept = out.with_suffix(".kept")
        (page,) = HarParser(json.loads((kept / "page.har").read_text())).pages
        assert len(page.entries) == 17
        assert {entry.response.httpVersion for entry in page.entries} == {protocol}
        assert 0 < page.pageTimings["onContentLoad"] <= page.pageTimings["onLoad"]
        assert page.pageTimings["onLoad"] / 1e3 == pytest.approx(load_s, abs=0.002)
        for entry in page.entries:
            parts = [v for k, v in entry.timings.items() if k != "ssl" and v > 0]
            assert sum(parts) == pytest.approx(entry.time, abs=0.01)
        assert qb.read_netlog(kept / "netlog.json").sizes["http"] > 17


@needs_firefox
@pytest.mark.guest
def test_firefox_loads_a_page_as_the_link_lets_it(tmp_path: Path):
    size_bytes, rtt_s, rate_bps = 470_000, 0.040, 10e6
    run = qb.run_web(web_load(client="firefox"), out=tmp_path / "h3.nc")
    assert set(run.resource_protocol.values) == {"h3"}
    assert (run.resource_bytes.values > 0).sum() == 17
    assert float(run.connect_s) == pytest.approx(rtt_s, abs=0.2 * rtt_s)
    load_s = float(run.page_load_time_s)
    assert 2 * rtt_s + size_bytes * 8 / rate_bps < load_s < 2 * size_bytes * 8 / rate_bps
    first_s = float(run.resource_first_byte_s[0])
    assert 2 * rtt_s <= first_s < float(run.first_contentful_paint_s) < load_s
    assert first_s < float(run.largest_contentful_paint_s)
    # What Firefox does not report is absent or unknown.
    assert np.isnan(qb.metrics.page_speed_index(run)) and np.isnan(float(run.first_paint_s))
    assert "chunk_resource" not in run and "film" not in run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--page", "nowhere.har"], "choose small, medium, large, or the path of a recorded page"),
        (["--page", "small", "--client", "curl"], "the client curl loads objects"),
        (["--page", "small", "--object", "1MB"], "give object_bytes or page, and not both"),
    ],
)
def test_a_bad_page_is_one_sentence_on_the_command_line(words: list[str], sentence: str):
    words = ["--protocol", "h2", *words]
    done = CliRunner().invoke(web_command, words, standalone_mode=False)
    assert done.return_value == 1 or done.exception
    assert sentence in f"{done.output}{done.exception}" and "Traceback" not in done.output
