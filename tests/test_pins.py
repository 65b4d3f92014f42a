"""Pinned packages of Debian, fetched from real archives on the loopback interface."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from qbkit.cli import checks
from qbkit.stacks.toolchains import pins
from qbkit.stacks.toolchains.apt import installed, this_suite
from qbkit.stacks.toolchains.install import install
from qbkit.stacks.toolchains.pins import Pin, PinnedFile
from qbkit.testbed.pin_writer import debian_programs

DATE = "20260301T000000Z"


class Archives:
    """A mirror and a snapshot archive: what they have, and which paths were asked for."""

    def __init__(self, root: Path) -> None:
        self.root, self.asked = root, []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, code="-", size="-"):
                asked.append(self.path)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, place: str, package: str, version: str, pool: str = "main") -> PinnedFile:
        """Put a package into one archive; return its pin."""
        path = f"pool/{pool}/{package[0]}/{package}/{package}_{version}_all.deb"
        file = self.root / place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        control = self.root / "tree/DEBIAN/control"
        control.parent.mkdir(parents=True, exist_ok=True)
        lines = {"Package": package, "Version": version, "Architecture": "all"}
        lines |= {"Maintainer": "a <a@b.example>", "Description": "a test"}
        control.write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
        subprocess.run(["dpkg-deb", "-b", control.parent.parent, file], check=True)
        found = PinnedFile(package, version, hashlib.sha256(file.read_bytes()).hexdigest(), path)
        lines |= {"Filename": path, "Size": file.stat().st_size, "SHA256": found.sha256}
        with (self.root / place / "Packages").open("a") as index:
            index.writelines(f"{key}: {value}\n" for key, value in lines.items())
            index.write("\n")
        return found


@pytest.fixture
def archives(tmp_path, monkeypatch):
    made = Archives(tmp_path / "archives")
    monkeypatch.setenv("QBKIT_DEBIAN_MIRROR", f"{made.address}/debian")
    monkeypatch.setenv("QBKIT_DEBIAN_SNAPSHOT", f"{made.address}/snapshot/archive/debian")
    yield made
    made.server.shutdown()


def test_the_suite_comes_first_then_the_snapshot_archive_of_the_date(archives, tmp_path):
    current = archives.add("debian", "current", "1.0-1")
    gone = archives.add(f"snapshot/archive/debian/{DATE}", "gone", "2.0-1")
    pinned = Pin("both", "unstable", DATE, (current, gone))
    assert pinned.fetch(tmp_path / "got")
    assert archives.asked == [
        f"/debian/{current.path}",
        f"/debian/{gone.path}",
        f"/snapshot/archive/debian/{DATE}/{gone.path}",
    ]
    names = {path.name for path in (tmp_path / "got").glob("*.deb")}
    assert names == {"current_1.0-1_all.deb", "gone_2.0-1_all.deb"}


def test_a_file_of_another_content_is_not_the_pinned_one(archives, tmp_path):
    real = archives.add(f"snapshot/archive/debian/{DATE}", "changed", "1.0-1")
    (archives.root / "debian" / real.path).parent.mkdir(parents=True)
    (archives.root / "debian" / real.path).write_bytes(b"something else")
    pinned = Pin("one", "unstable", DATE, (real,))
    assert pinned.fetch(tmp_path / "got")
    (archives.root / f"snapshot/archive/debian/{DATE}" / real.path).write_bytes(b"neither")
    assert pinned.fetch(tmp_path / "got")  # it is there
    assert not pinned.fetch(tmp_path / "other")


def test_a_version_that_no_archive_has_is_replaced_with_a_sentence(archives, tmp_path):
    lost = PinnedFile("lost", "1.0-1", "0" * 64, "pool/main/l/lost/lost_1.0-1_all.deb")
    pinned = Pin("lost", "unstable", DATE, (lost,))
    assert not pinned.fetch(tmp_path / "got")
    assert "fetching the newest; results may differ from published ones" in pinned.replaced()


def test_security_updates_are_in_archives_of_their_own(archives, tmp_path):
    current = archives.add("debian-security", "current", "1.0-1", "updates/main")
    gone = archives.add(f"snapshot/archive/debian-security/{DATE}", "gone", "2.0-1", "updates/main")
    assert Pin("both", "bookworm", DATE, (current, gone)).fetch(tmp_path / "got")
    assert archives.asked == [
        f"/debian-security/{current.path}",
        f"/debian-security/{gone.path}",
        f"/snapshot/archive/debian-security/{DATE}/{gone.path}",
    ]


@pytest.fixture
def own_system(archives, tmp_path, monkeypatch):
    """apt and dpkg of an empty system in a folder, whose suite is the mirror."""
    root = tmp_path / "system"
    for name in (
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
        "lists/partial",
        "cache/partial",
        "log",
    ):
        (root / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "sources.list").write_text(f"deb [trusted=yes] {archives.address}/debian ./\n")
    lines = {
        "Dir::State::status": f"{root}/var/lib/dpkg/status",
        "Dir::State::lists": f"{root}/lists",
        "Dir::State::extended_states": f"{root}/extended_states",
        "Dir::Cache": f"{root}/cache",
        "Dir::Cache::archives": f"{root}/cache",
        "Dir::Etc::sourcelist": f"{root}/sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Log": f"{root}/log",
        "APT::Sandbox::User": "root",
        "Dpkg::Options::": f"--root={root}",
    }
    (root / "apt.conf").write_text("".join(f'{key} "{text}";\n' for key, text in lines.items()))
    monkeypatch.setenv("APT_CONFIG", str(root / "apt.conf"))
    monkeypatch.setenv("DPKG_ADMINDIR", str(root / "var/lib/dpkg"))
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install with apt")
@pytest.mark.usefixtures("own_system")
def test_missing_packages_are_installed_in_their_pinned_versions(archives, monkeypatch):
    archives.add("debian", "aged", "2.0-1")
    snapshot = f"snapshot/archive/debian-security/{DATE}"
    aged = archives.add(snapshot, "aged", "1.0-1", "updates/main")
    archives.add("debian", "lost", "3.0-1")
    lost = PinnedFile("lost", "1.0-1", "0" * 64, "pool/main/l/lost/lost_1.0-1_all.deb")
    archives.add("debian", "unpinned", "4.0-1")
    pinned = Pin(pins.SYSTEM, this_suite(), DATE, (aged, lost))
    monkeypatch.setitem(pins.pins(), pins.SYSTEM, pinned)
    said: list[str] = []
    names = ["aged", "lost", "unpinned"]
    install(names, said.append)
    assert installed(names) == {"aged": "1.0-1", "lost": "3.0-1", "unpinned": "4.0-1"}
    (sentence,) = [text for text in said if "results may differ" in text]
    assert sentence.startswith("no Debian archive that can be reached has the pinned files of lost")

    said.clear()
    install(names, said.append)
    assert said == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install with apt")
@pytest.mark.usefixtures("own_system")
def test_pins_of_another_suite_than_this_machines_do_not_count(archives, monkeypatch):
    pinned = Pin(pins.SYSTEM, "buzz", DATE, (archives.add("debian", "aged", "1.0-1"),))
    archives.add("debian", "aged", "2.0-1")
    monkeypatch.setitem(pins.pins(), pins.SYSTEM, pinned)
    said: list[str] = []
    install(["aged"], said.append)
    assert installed(["aged"]) == {"aged": "2.0-1"}
    assert f"pinned packages are of Debian buzz, and this machine has {this_suite()}" in said[-1]


def test_every_program_of_debian_is_pinned_with_all_its_packages():
    programs = list(debian_programs())
    assert {p.name for p in programs} | {pins.SYSTEM, pins.KERNEL} == set(pins.pins())
    for program in programs:
        assert program.pin.suite == program.suite
        assert set(program.packages) <= set(program.pin.versions)
        assert "libc6" in program.pin.versions


def test_every_pin_names_version_hash_and_path_of_each_file():
    for pinned in pins.pins().values():
        assert pinned.files
        for file in pinned.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.path.startswith("pool/")
            assert unquote(file.path).rpartition("/")[2].startswith(f"{file.package}_")
            assert unquote(file.name).split("_")[:2] == [file.package, file.version]


def test_what_differs_from_the_pins_is_named_and_what_is_absent_is_not():
    pinned = {"iproute2": "6.1.0-3", "python3": "3.11", "absent": "1"}
    found = checks.differing({"iproute2": "6.15.0-1", "python3": "3.11"}, pinned)
    assert found == "iproute2 6.15.0-1 (pinned: 6.1.0-3)"


def test_doctor_compares_this_machine_with_its_pins(monkeypatch):
    there = installed(["libc6", "no-such-package"])
    assert list(there) == ["libc6"]
    moved = Pin(pins.SYSTEM, "x", DATE, (PinnedFile("libc6", "0.1", "", ""),))
    monkeypatch.setitem(pins.pins(), pins.SYSTEM, moved)
    assert checks.pin_differences()[pins.SYSTEM] == f"libc6 {there['libc6']} (pinned: 0.1)"
