"""Chromium as a web client: against servers on the loopback, and in the guest."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from haralyzer import HarParser

import qbkit as qb
from qbkit.errors import RunFailed, SpecError
from qbkit.stacks import certificate
from qbkit.stacks.chromium import PYTHON
from qbkit.stacks.clients.chromium import DRIVER, HeadlessShell
from qbkit.stacks.quic_go import QuicGo
from qbkit.testbed.web_plan import WebPair

needs_shell = pytest.mark.skipif(
    not HeadlessShell().status().ready, reason=HeadlessShell().status().reason
)
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

    def load(self, out: Path, protocol: str = "h3", **more: str) -> subprocess.CompletedProcess[str]:
        given = {"url": "https://test.example/index.html", "limit-s": "20", **more}
        given |= {"address": f"127.0.0.1:{self.port}", "host": "test.example"}
        words = [word for k, v in given.items() for word in (f"--{k}", v)]
        keys = more.get("certificates") or str(certificate.folder())
        start = [*PYTHON, "-B", DRIVER / "main.py", "headless-shell", keys]
        out.mkdir(exist_ok=True)
        words += ["--protocol", protocol, "--out", str(out)]
        env = {"PATH": os.environ["PATH"]}  # no proxy, as in the guest
        return subprocess.run(
            [*start, *words], env=env, capture_output=True, text=True, timeout=60
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if not QuicGo().status().ready:
        pytest.skip(QuicGo().status().reason)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(PAGE)
    found = Server(folder)
    yield found
    found.process.terminate()
    found.process.wait()


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stderr
    return done.stderr.strip().splitlines()[-1]


@needs_shell
@pytest.mark.browser
@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_the_protocol_is_the_one_asked_for(protocol: str, server: Server, tmp_path: Path):
    done = server.load(tmp_path / "out", protocol)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out/load.json").read_text())
    assert found["protocol"] == protocol and found["status"] == 200
    assert [row["protocol"] for row in found["resources"]] == [protocol]
    assert found["page"]["first_contentful_paint_s"] > 0
