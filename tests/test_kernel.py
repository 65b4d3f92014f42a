"""The virtual-time kernel: its clock, its boot, and the errors when there is none."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from qbkit.errors import EngineError, RunFailed, StoreError
from qbkit.stacks.toolchains.build import compile_c
from qbkit.testbed import engines, kernel, kernel_build, standstill


@pytest.mark.guest
def test_clock_never_goes_backwards_and_both_ways_of_reading_agree():
    program = compile_c(Path(__file__).with_name("clock_stress.c"), "clock_stress")
    done = engines.run_in_guest([str(program)])
    assert done["exit"] == 0, done["output"]
    assert "backwards: 0" in done["output"]
    for ahead_ns, back_ns in re.findall(r"clock \d+: (-?\d+) (-?\d+)", done["output"]):
        assert 0 <= int(ahead_ns) < 2000
        assert 0 <= int(back_ns) < 2000
    # Reading the clock costs 256 virtual ns, so that a busy wait ends.
    assert int(re.search(r"of 50 ms: (\d+)", done["output"])[1]) == pytest.approx(50e6, rel=0.01)
    waited_ns = int(re.search(r"of 3 ms: (\d+)", done["output"])[1])
    assert 3e6 <= waited_ns < 30e6


@pytest.mark.guest
def test_time_stamp_counter_is_the_virtual_clock():
    program = compile_c(Path(__file__).with_name("timestamp.c"), "timestamp")
    said = engines.run_in_guest([str(program)])["output"]
    assert 0 <= int(re.search(r"the clock by (-?\d+)", said)[1]) < 2000
    assert 0 < int(re.search(r"two reads (-?\d+)", said)[1]) < 2000
    assert "on processor 0" in said
    assert int(re.search(r"of 50 ms: (\d+)", said)[1]) == pytest.approx(50e6, rel=0.01)
    assert int(re.search(r"of 3 ms: (\d+)", said)[1]) == pytest.approx(3e6, rel=0.01)


@pytest.mark.guest
def test_cpuid_hides_the_sources_of_randomness_where_the_processor_faults_on_it():
    program = compile_c(Path(__file__).with_name("cpuid.c"), "cpuid")
    host = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    if re.search(r"^flags.*\bcpuid_fault\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
        host = host.replace("rdrand 1", "rdrand 0").replace("rdseed 1", "rdseed 0")
    assert engines.run_in_guest([str(program)])["output"] == host


@pytest.mark.guest
def test_registers_survive_calls_signals_and_single_steps():
    program = compile_c(Path(__file__).with_name("registers.c"), "registers")
    said = engines.run_in_guest([str(program)])["output"]
    assert "WRONG" not in said
    assert said.count(" ok") == 10
    assert said.strip().endswith("end")


LISTINGS = """
import os
near, far = os.pipe(), os.pipe()
expected = sorted(os.listdir("/usr/bin"))
if not os.fork():
    os.close(near[1])
    while os.read(near[0], 1):
        assert all(sorted(os.listdir("/usr/bin")) == expected for _ in range(100))
        os.write(far[1], b".")
    os._exit(0)
for _ in range(8):
    os.write(near[1], b".")
    os.read(far[0], 1)
    assert sorted(os.listdir("/usr/bin")) == expected
print("end")
"""
"""Each listing of a host's folder maps memory for the kernel, in one process while others wait."""


@pytest.mark.guest
def test_a_call_of_a_program_switches_no_processes_and_the_kernels_place_is_taken():
    program = compile_c(Path(__file__).with_name("carriers.c"), "carriers")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    said = engines.run_in_guest([str(program)])["output"]
    switches = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before
    assert said.split() == ["hint", "elsewhere", "fixed", "refused", "end"]
    assert switches < 20_000  # of 100,000 calls, and the guest's boot


@pytest.mark.guest
@pytest.mark.parametrize("words", [[], ["with the table's place taken"]])
def test_places_that_call_often_become_jumps_and_do_what_they_did(words):
    program = compile_c(Path(__file__).with_name("call_sites.c"), "call_sites")
    said = engines.run_in_guest([str(program), *words])["output"]
    assert "WRONG" not in said
    assert said.split()[1::2] == ["ok"] * 9
    assert said.split()[-1] == "end"


@pytest.mark.guest
def test_processes_that_waited_see_what_the_kernel_mapped_meanwhile():
    assert engines.run_in_guest([sys.executable, "-c", LISTINGS])["output"].split() == ["end"]


@pytest.mark.guest
def test_a_guest_keeps_to_one_processor_and_ends_when_a_process_of_it_is_killed():
    def kill_the_busy_process() -> None:
        started = time.monotonic()
        while time.monotonic() < started + 60:
            for pid in standstill.descendants(os.getpid()):
                name = standstill._text(Path(f"/proc/{pid}/comm"))
                if name == "uml-userspace" and standstill._cpu_s(pid) > 0.5:
                    processors.append(os.sched_getaffinity(pid))
                    os.kill(pid, signal.SIGKILL)
                    return
            time.sleep(0.02)

    processors: list[set[int]] = []
    killer = threading.Thread(target=kill_the_busy_process)
    killer.start()
    with pytest.raises(RunFailed, match="a process of the guest was ended from outside"):
        engines.run_in_guest(["/bin/sh", "-c", "while :; do :; done"])
    killer.join()
    assert [len(each) for each in processors] == [1]


def test_a_missing_patch_is_reported_with_its_effect(tmp_path):
    symbols = [symbol for name, (symbol, _) in kernel.PATCHES.items() if name[:4] != "0003"]
    (tmp_path / "linux").write_bytes(b", ".join(symbols))
    found = kernel._kernel(tmp_path / "linux", "7.2")
    assert found.missing_patches == {
        "0003-tsc-and-cpuid": "programs that execute RDTSC do not repeat"
    }


@pytest.mark.guest
def test_guest_repeats_to_the_byte_and_sees_no_host_clock():
    words = ["/bin/sh", "-c", "date +%s%N; cat /proc/sys/kernel/random/uuid; sleep 100; date +%s%N"]
    first, second = (engines.run_in_guest(words)["output"] for _ in range(2))
    assert first == second
    begin, _, end = first.split()
    assert int(end) - int(begin) == pytest.approx(100e9, rel=1e-3)


@pytest.mark.guest
def test_guest_sees_neither_the_host_temporary_files_nor_writes_to_it(tmp_path):
    (tmp_path / "secret").write_text("x")
    done = engines.run_in_guest(["/bin/sh", "-c", f"ls {tmp_path}; touch /etc/qbkit-was-here"])
    assert done["exit"] != 0
    assert "No such file" in done["output"]
    assert "Read-only" in done["output"]


def test_missing_kernel_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    monkeypatch.delenv("QBKIT_KERNEL", raising=False)
    with pytest.raises(EngineError, match="build it with `qbkit kernel --build`"):
        kernel.require()


def test_chosen_kernel_must_exist(monkeypatch):
    monkeypatch.setenv("QBKIT_KERNEL", "/nowhere/linux")
    with pytest.raises(EngineError, match="QBKIT_KERNEL names /nowhere/linux"):
        kernel.find()


def test_missing_source_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("QBKIT_KERNEL_SOURCE", "/nowhere/linux.tar.xz")
    with pytest.raises(
        EngineError, match=r"QBKIT_KERNEL_SOURCE names /nowhere/linux.tar.xz|missing"
    ):
        kernel_build.build()


def test_a_cache_that_is_a_file_is_said_to_be_one(tmp_path, monkeypatch):
    (tmp_path / "cache").touch()
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(StoreError, match=r"QBKIT_CACHE names .*cache, which is a file; name a fol"):
        kernel.require()


def test_damaged_source_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    broken = tmp_path / "linux.tar.xz"
    broken.write_bytes(b"not a tarball")
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QBKIT_KERNEL_SOURCE", str(broken))
    with pytest.raises(EngineError, match=r"`tar .* failed|missing"):
        kernel_build.build()
    assert not list((tmp_path / "cache/kernels").glob("*/*"))
