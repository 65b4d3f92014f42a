"""The table of stacks, and what it says about those that are not ready."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from qbkit import stacks
from qbkit.errors import SpecError, StackNotReady
from qbkit.metrics.maps.families import by_family, family, kernel_counterpart
from qbkit.stacks.about.listing import list_implementations, markdown_table, stack_rows
from qbkit.stacks.toolchains import rust
from qbkit.stacks.toolchains.above import drivers_above
from qbkit.stacks.toolchains.make_ready import build_all


def test_the_table_of_the_docs_has_every_stack_with_its_options():
    rows = {line.split(" | ")[0].strip("| "): line for line in markdown_table().splitlines()[2:]}
    assert rows.keys() == {stack.name for stack in stacks.all_stacks()}
    for stack in stacks.all_stacks():
        words = [*stack.controllers(), *(f"`{name}`" for name in stack.options), stack.source]
        assert all(word in rows[stack.name] for word in words)


def test_every_stack_of_the_papers_is_there():
    names = {row["stack"] for row in stack_rows()}
    papers = "tcp quic-go quinn quiche s2n-quic msquic google-quiche neqo chromium mvfst lsquic"
    assert names >= set(f"{papers} quicly xquic aioquic ngtcp2 tquic".split())


def test_of_tcp_only_the_controllers_of_the_papers_are_surveyed():
    assert list_implementations(["tcp"]) == ["tcp:cubic", "tcp:reno", "tcp:bbr"]
    assert list_implementations(["tcp:vegas", "tcp:vegas"]) == ["tcp:vegas"]
    with pytest.raises(
        SpecError, match=r"there is no stack 'tpc' \(did you mean tcp\?\); known are"
    ):
        list_implementations(["tpc"])


def test_families_and_their_kernel_counterparts():
    assert [family(c) for c in ("cubic", "newreno", "bbr2", "copa")] == ["cubic", "reno", "bbr", ""]
    assert kernel_counterpart("quinn:newreno") == "tcp:reno"
    assert kernel_counterpart("tquic:copa") == ""
    names = ["quinn:bbr", "tcp:bbr", "quiche:bbr2", "tquic:copa"]
    assert by_family(names) == {
        "BBR": ["tcp:bbr", "quiche:bbr2", "quinn:bbr"],
        "Others": ["tquic:copa"],
    }


def test_without_its_tools_a_rust_stack_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    quiche = stacks.get("quiche")
    status = quiche.status()
    assert not status.ready
    assert status.reason.startswith("install Rust ")
    assert status.reason.endswith("then: qbkit stacks build quiche")
    with pytest.raises(StackNotReady, match="quiche cannot be built here; install Rust"):
        quiche.build()


def test_the_version_of_a_rust_stack_is_the_locked_one():
    assert stacks.get("quinn").version().startswith(rust.locked_version("quinn") + ", driver ")


def test_the_transport_is_named_where_the_version_counts_another_package(tmp_path, monkeypatch):
    named = {stack.name: text for stack in stacks.all_stacks() if (text := stack.transport())}
    assert named == {
        "quinn": f"quinn-proto {rust.locked_version('quinn-proto')}",
        "noq": f"noq-proto {rust.locked_version('noq-proto')}",
        "s2n-quic": f"s2n-quic-transport {rust.locked_version('s2n-quic-transport')}",
    }
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    lock_file = tmp_path / "releases/s2n-quic@1.30.0/Cargo.lock"
    lock_file.parent.mkdir(parents=True)
    lock_file.write_text('[[package]]\nname = "s2n-quic-transport"\nversion = "0.30.0"\n')
    assert stacks.get("s2n-quic@1.30.0").transport() == "s2n-quic-transport 0.30.0"
    transports = {row["stack"]: row["transport"] for row in stack_rows() if row["ready"]}
    assert transports == {name: named.get(name) for name in transports}


def test_two_releases_of_one_crate_have_workspaces_of_their_own():
    assert stacks.get("quiche").version().startswith("0.30.")
    assert stacks.get("quiche-0.7").version().startswith("0.7.0, driver ")


def test_building_many_continues_after_a_failure(monkeypatch, tmp_path):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = [stacks.get("quic-go"), stacks.get("aioquic")]
    problems = {stack.name: problem for stack, problem in build_all(chosen, lambda _: None)}
    assert problems["aioquic"] == ""
    assert problems["quic-go"].startswith("go is missing to build quic-go")


def test_a_driver_is_named_by_every_crate_of_ours_that_it_is_built_from(tmp_path, monkeypatch):
    workspace = shutil.copytree(rust.WORKSPACE, tmp_path / "rust")
    monkeypatch.setattr(rust, "WORKSPACE", workspace)
    monkeypatch.setattr(rust.RustStack, "workspace", workspace)
    changed = {"udp": {"quiche", "tquic"}, "common": {"quiche", "tquic", "quinn", "msquic"}}
    for crate, users in changed.items():
        before = {name: stacks.get(name).version() for name in changed["common"]}
        with (workspace / crate / "src/lib.rs").open("a") as file:
            file.write("// another version\n")
        after = {name: stacks.get(name).version() for name in changed["common"]}
        assert {name for name in before if before[name] != after[name]} == users


def test_without_its_tools_a_stack_in_c_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = "install gcc, g++, tar, then: qbkit stacks build lsquic"
    assert stacks.get("lsquic").status().reason == reason
    with pytest.raises(
        StackNotReady, match=r"lsquic cannot be built here; install gcc, g\+\+, tar"
    ):
        stacks.get("lsquic").build()


def test_a_build_makes_every_driver_above_a_stack():
    made = {name: [d.name for d in drivers_above(stacks.get(name))] for name in ("quinn", "quiche")}
    assert made == {"quinn": ["quinn-app"], "quiche": ["quiche-app", "quiche-server"]}
    for driver in drivers_above(stacks.get("quiche")):
        assert not drivers_above(driver)
        assert driver._program() == "quiche-flow"
    assert not drivers_above(stacks.get("ngtcp2"))


@pytest.mark.skipif(not shutil.which("cargo"), reason="needs cargo")
def test_programs_of_two_workspaces_are_two_also_where_their_crates_are_compiled_once(tmp_path):
    for name in ("old", "new"):  # the second one is no newer than what is made of the first
        folder = tmp_path / name / "x-flow"
        (folder / "src").mkdir(parents=True)
        (folder.parent / "Cargo.toml").write_text("[workspace]\nmembers = ['x-flow']\n")
        package = "[package]\nname = 'x-flow'\nversion = '0.1.0'\n"
        (folder / "Cargo.toml").write_text(package)
        (folder.parent / "Cargo.lock").write_text(package.replace("[package]", "[[package]]"))
        (folder / "src/main.rs").write_text(f'fn main() {{ print!("{name}") }}')
    found = []
    for name in ("old", "new", "old"):
        made = type("X", (rust.RustStack,), {"name": "x", "workspace": tmp_path / name})
        made.__abstractmethods__ = frozenset()
        (folder := tmp_path / f"program-{len(found)}").mkdir()
        made()._cargo_build(tmp_path / "target", folder)
        found.append(subprocess.run([folder / "x-flow"], stdout=subprocess.PIPE).stdout.decode())
    assert found == ["old", "new", "old"]
