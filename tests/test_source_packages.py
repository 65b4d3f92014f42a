"""C sources come from the machine's package index and from crates.io, with the right hash only."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qbkit.errors import StackNotReady
from qbkit.stacks.toolchains import source_packages
from qbkit.stacks.toolchains.source_packages import CrateSources, PythonSources, crate_index

FILE = "demo-1.0.tar.gz"


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        info = tarfile.TarInfo("demo-1.0/main.c")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"main"))
    return gzip.compress(packed.getvalue(), mtime=0)  # the same in each worker of pytest


CONTENT = archive()
HASH = hashlib.sha256(CONTENT).hexdigest()
PAGES = {
    "/json/demo/": json.dumps({"files": [{"filename": FILE, "url": f"../../files/{FILE}"}]}),
    "/html/demo/": f'<a href="/files/{FILE}#sha256={HASH}">{FILE}</a>',
    "/none/demo/": "{}",
    "/de/mo/demo": '{"vers": "1.0"}\n{"vers": "1.1"}\n',
}


class Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = CONTENT if self.path == f"/files/{FILE}" else PAGES.get(self.path, "").encode()
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of an index; the cache is empty."""
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("form", ["json", "html"])
def test_a_file_is_fetched_once(form: str, index: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/{form}")
    folder = PythonSources("demo", "1.0", HASH).fetch()
    assert (folder / "main.c").read_text() == "main"
    assert not (folder.parent / FILE).exists()
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/none")
    assert PythonSources("demo", "1.0", HASH).fetch() == folder


@pytest.mark.parametrize(
    ("form", "sha256", "sentence"),
    [
        ("json", "0" * 64, "is another file than the one that qbkit expects"),
        ("none", HASH, f"has no {FILE}"),
        ("gone", HASH, "cannot fetch .*/gone/demo/: HTTP Error 404"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_leaves_nothing(
    form: str, sha256: str, sentence: str, index: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/{form}")
    wanted = PythonSources("demo", "1.0", sha256)
    with pytest.raises(StackNotReady, match=sentence):
        wanted.fetch()
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/json")
    assert (PythonSources("demo", "1.0", HASH).fetch() / "main.c").exists()


def test_the_index_of_crates_is_read_as_cargo_does(index: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source_packages, "CRATE_INDEX", index)
    assert crate_index("demo") == PAGES["/de/mo/demo"]


def test_crates_have_the_address_that_crates_io_documents():
    address = CrateSources("demo", "1.0", HASH).address()
    assert address == "https://static.crates.io/crates/demo/demo-1.0.crate"
