"""jdk and kwik: command lines, tables and ends of their drivers, over the loopback; kwik's jars."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest
from loopback import Bench, succeed

from qbkit import stacks
from qbkit.errors import StackNotReady
from qbkit.stacks.base import Stack
from qbkit.stacks.kwik import JARS
from qbkit.stacks.toolchains.maven import MIRROR, Jar
from qbkit.traces.run.telemetry import COLUMNS, STATES

MIB = 1 << 20
CONTENT = b"a jar"
DEMO = Jar("org.example", "demo", "1.0", hashlib.sha256(CONTENT).hexdigest())


TOOLS = {"jdk": ("go", "apt-get"), "kwik": ("javac",)}


@pytest.fixture(scope="module", params=TOOLS)
def stack(request: pytest.FixtureRequest) -> Stack:
    found = stacks.get(request.param)
    if not found.status().ready and not all(map(shutil.which, TOOLS[request.param])):
        pytest.skip(found.status().reason)
    found.build()
    return found


@pytest.mark.slow
def test_a_duration_leaves_both_tables(bench: Bench, stack: Stack):
    with bench.receiver(stack) as (address, _):
        # Java takes a second to connect, or some on a busy machine.
        succeed(bench.send(stack, address, stack.controllers()[0], duration_s=5.0))
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > 0
    samples = bench.rows("sender.csv")
    assert set(samples[0]) <= {"time_ns", "state", *COLUMNS}
    assert len(samples) > 5
    for row in samples:
        assert row["state"] in STATES
        assert int(row["cwnd_bytes"]) >= 2 * 1200  # RFC 9002, 7.2


@pytest.mark.slow
@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, stack: Stack, size_bytes: int):
    last = stack.controllers()[-1]
    assert bench.arrived_bytes(stack, last, size_bytes=size_bytes) == size_bytes


@pytest.mark.slow
def test_sigterm_ends_sender_and_receiver_in_mid_flow(bench: Bench, stack: Stack):
    bench.end_in_mid_flow(stack, stack.controllers()[0], after_s=6)
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) > 0
    assert len(bench.rows("sender.csv")) > 5


@pytest.mark.slow
def test_sigterm_ends_a_sender_that_still_connects(bench: Bench, stack: Stack):
    bench.end_while_connecting(stack, stack.controllers()[0], after_s=3)


WRONG = {
    "jdk": (
        ("bbr", {}, "jdk has no controller bbr; it has cubic, reno"),
        ("reno", {"qlog": True}, "unknown option qlog=true; jdk has none"),
    ),
    "kwik": (
        ("cubic", {}, "kwik has no controller cubic; it has newreno"),
        ("newreno", {"qlog": True}, "unknown option qlog=true; kwik has none"),
    ),
}


@pytest.mark.slow
def test_what_is_wrong_is_one_sentence(bench: Bench, stack: Stack):
    for controller, options, sentence in WRONG[stack.name]:
        bench.refuse(stack, controller, sentence, options)


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["jdk"], indirect=True)
@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_the_jdk_reports_the_window_of_each_controller(bench: Bench, stack: Stack, controller: str):
    with bench.receiver(stack) as (address, _):
        succeed(bench.send(stack, address, controller, size_bytes=5_000_000))
    assert int(bench.rows("receiver.csv")[-1]["bytes"]) == 5_000_000
    samples = bench.rows("sender.csv")
    assert int(samples[0]["cwnd_bytes"]) >= 14720  # RFC 9002, 7.2
    for row in samples:
        assert 0 < float(row["min_rtt_ms"]) <= float(row["latest_rtt_ms"])


def test_the_jdk_comes_with_its_own_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    jdk = stacks.get("jdk")
    ours = r"driver [0-9a-f]{12}, preload [0-9a-f]{12}, receiver quic-go 0\.65\.0, driver"
    assert re.search(f", {ours}", jdk.version())
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    assert jdk.version().startswith("not fetched, driver ")
    assert jdk.status().reason == "its receiver is quic-go: qbkit stacks build quic-go"


def test_without_a_jdk_kwik_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kwik = stacks.get("kwik")
    assert re.fullmatch(r"0\.10\.8, driver [0-9a-f]{12}", kwik.version())
    monkeypatch.setenv("PATH", str(tmp_path))
    sentence = "install a JDK of Java 17 or newer"
    assert kwik.status().reason == f"{sentence}, then: qbkit stacks build kwik"
    with pytest.raises(StackNotReady, match=f"^kwik cannot be built here; {sentence}$"):
        kwik.build()


def test_a_jar_comes_from_the_mirror_with_the_right_hash_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(MIRROR, f"{tmp_path.as_uri()}/")
    with pytest.raises(StackNotReady, match=r"cannot fetch .*/org/example/demo/1\.0/demo-1\.0"):
        DEMO.fetch()
    jar = tmp_path / "org/example/demo/1.0/demo-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"another jar")
    with pytest.raises(StackNotReady, match="is another file than the one that qbkit expects"):
        DEMO.fetch()
    jar.write_bytes(CONTENT)
    assert DEMO.fetch().read_bytes() == CONTENT


def test_jars_have_the_address_that_maven_documents(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(MIRROR, raising=False)
    address = JARS[0].address()
    assert address.endswith("/maven2/tech/kwik/kwik/0.10.8/kwik-0.10.8.jar")
