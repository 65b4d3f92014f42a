"""nginx and HAProxy: what they serve over the loopback, and how each controller sends."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from loopback import Bench, free_port

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.stacks.base import ServingStack, Transfer

MIB = 1 << 20
NAMES = ("nginx", "nginx-1.26", "haproxy")
WHO = ("nginx:cubic", "nginx-1.26:reno", "haproxy:cubic", "haproxy:newreno", "haproxy:bbr")
RATE_MBPS, DURATION_S, AFTER_START_S = 20, 20, 3
LINK = qb.Bottleneck(rate_mbps=RATE_MBPS, rtt_ms=50, buffer_bdp=1)


def ready(name: str) -> ServingStack:
    stack = stacks.get(name)
    assert isinstance(stack, ServingStack)
    if not stack.status().ready:
        pytest.skip(stack.status().reason)
    return stack


def test_the_controllers_are_those_of_each_release():
    named = [f"{name}:{controller}" for name in NAMES for controller in stacks.get(name).surveyed()]
    assert tuple(named) == WHO
    with pytest.raises(SpecError, match="nginx has no controller 'reno'; it has cubic"):
        stacks.get("nginx").check("reno", {}, None)


@pytest.mark.parametrize("name", NAMES)
def test_without_its_files_one_sentence_says_how_to_fetch_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stack = ready(name)
    version = r"[\d.]+-\S+, files [0-9a-f]{12}, driver [0-9a-f]{12}, quic-go [\d.]+, driver \w{12}"
    assert re.fullmatch(version, stack.version())
    client = stacks.get("quic-go")
    monkeypatch.setattr(type(client), "status", lambda _: stacks.Status(True))
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    assert stack.status().reason == f"qbkit stacks build {name}"
    assert stack.version().startswith("not fetched, driver ")


@pytest.mark.parametrize("name", NAMES)
def test_without_the_client_a_sentence_names_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    sentence = r"its client is quic-go: install Go 1\.26 or newer, then: qbkit stacks build quic-go"
    assert re.fullmatch(sentence, stacks.get(name).status().reason)


def download(bench: Bench, stack: ServingStack, controller: str, **limit: float) -> tuple[int, str]:
    """Bytes that arrived, and what the client said."""
    address, out = f"127.0.0.1:{free_port()}", str(bench.folder)
    who = {"address": address, "controller": controller, "out": out, "options": {}}
    server = bench.start(stack, stack.serve_argv(Transfer(**who)))
    assert server.stdout and server.stdout.readline() == "ready\n"
    limits = {"duration_s": None, "size_bytes": None, **limit}
    client = bench.start(stack, stack.fetch_argv(Transfer(**who, **limits)))
    _, words = client.communicate(timeout=60)
    server.terminate()
    assert server.wait(30) == 0
    return int(bench.rows("receiver.csv")[-1]["bytes"]), words


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, who: str, size_bytes: int):
    name, _, controller = who.partition(":")
    assert download(bench, ready(name), controller, size_bytes=size_bytes) == (size_bytes, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_duration_ends_a_flow_that_has_no_end(bench: Bench, name: str):
    stack = ready(name)
    received, words = download(bench, stack, stack.controllers()[0], duration_s=1.0)
    assert (received > MIB, words) == (True, "")


@pytest.mark.slow
def test_a_file_that_is_not_there_is_one_sentence(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    stack = ready("nginx")
    monkeypatch.setattr(type(stack), "path", lambda *_: "/gone")
    received, words = download(bench, stack, "cubic", size_bytes=MIB)
    assert received == 0
    assert re.fullmatch(r"127\.0\.0\.1:\d+ answered 404 Not Found\n", words)


@cache
def share(who: str) -> float:
    """Part of the link of a flow beside the kernel's CUBIC."""
    ready(who.partition(":")[0])
    flows = [who, "tcp:cubic"]
    run = qb.Experiment(bottleneck=LINK, flows=flows, duration_s=DURATION_S, seed=1).run()
    later = run.throughput_mbps.isel(flow=0).sel(time=slice(AFTER_START_S, None))
    return float(later.mean()) / RATE_MBPS


@pytest.mark.guest
@pytest.mark.parametrize("who", WHO)
def test_it_shares_the_link_beside_the_kernel(who: str):  # alone: tests/test_stacks_alone.py
    assert 0.15 < share(who) < (0.95 if who == "nginx-1.26:reno" else 0.8)


@pytest.mark.guest
def test_each_controller_takes_another_share():
    newreno, cubic, bbr = (share(f"haproxy:{name}") for name in ("newreno", "cubic", "bbr"))
    assert newreno + 0.05 < min(cubic, bbr)
    assert cubic != bbr
    # 1.26 takes 65,527 bytes for a datagram; its successor does not.
    assert share("nginx:cubic") + 0.1 < share("nginx-1.26:reno")
