"""Progress of a guest beside other programs on its processor, as a share of the fair share.

    python benchmarks/neighbours.py [--kernels OLD/linux NEW/linux] [--flow quic-go:cubic] [--write]

The table is ``neighbours``. Progress is virtual seconds: (share of the processor that the guest
gets of what it and its neighbours use) x (virtual seconds per processor second, over those of a
guest alone). The fair share beside k neighbours is 1/(1+k). They compete one by one where all run
in one scheduling group of the host, as in a container. Elsewhere Linux may give each session its
own group (sched_autogroup_enabled), which hides what this measures; then, as root, first

    mkdir /sys/fs/cgroup/cpu/one && echo $$ > /sys/fs/cgroup/cpu/one/cgroup.procs
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from background_load import PREEMPTING, SPINNING
from markdown_tables import arguments, record

from qbkit import stacks
from qbkit.settings import cache_folder
from qbkit.spec import Experiment
from qbkit.testbed import engines, kernel, standstill
from qbkit.testbed.claims import claim_processor
from qbkit.testbed.plan import make_plan
from qbkit.testbed.scratch import scratch_folder

GUEST = [__file__, "--as-guest"]
KINDS = {
    "alone": [],
    "1 spinning": [SPINNING],
    "3 spinning": 3 * [SPINNING],
    "2 preempting": 2 * [PREEMPTING],
    "2 other guests": 2 * [GUEST],
}
"""Arguments of Python that start the neighbours."""
KEYS = ["neighbours"]
DURATION_S = 1000
"""Length of the guest's run, which reports fifty times and has begun with the first report."""
SILENCE_S = 600.0


def be_guest(flow: str) -> None:
    """Run one flow; a line with the virtual time at each report."""
    experiment = Experiment(flows=[flow], duration_s=DURATION_S)
    driver = stacks.get(experiment.flows[0].stack)
    plan = make_plan(experiment, [driver], "virtual", engines.CAPTURE)
    engine = engines.choose("virtual")
    with scratch_folder() as folder:
        engines.carry_out(engine, plan, folder, 1, SILENCE_S, lambda at_s: print(at_s, flush=True))


@contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process whose guest does not wait for a free processor."""
    with tempfile.TemporaryDirectory() as own:
        env = {**os.environ, "QBKIT_CACHE": own}
        for built in ("drivers", "kernels"):
            Path(own, built).symlink_to(cache_folder() / built)
        process = subprocess.Popen([sys.executable, *words], env=env, stdout=subprocess.PIPE)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and of all below it, those that have ended included."""
    fields = [standstill.stat(each)[11:15] for each in standstill.descendants(pid)]
    return sum(int(ticks) for each in fields for ticks in each) / os.sysconf("SC_CLK_TCK")


def wait_until_begun(guest: subprocess.Popen[bytes]) -> None:
    """Wait for the first report."""
    assert guest.stdout is not None
    if not guest.stdout.readline():
        raise SystemExit("a guest ended before it began")


def virtual_s(guest: subprocess.Popen[bytes], clock: int) -> float:
    """The guest's clock, read from the memory of its kernel: a pointer, then nanoseconds."""
    kernel_pid = standstill.descendants(guest.pid)[1]
    with Path(f"/proc/{kernel_pid}/mem").open("rb", 0) as memory:
        for _ in range(2):
            memory.seek(clock)
            clock = int.from_bytes(memory.read(8), "little")
    return clock / 1e9


def address_of_clock() -> int:
    """Where the kernel in use points to the page of its clock (patch 0001)."""
    symbols = subprocess.run(
        ["nm", str(kernel.require().path)], capture_output=True, text=True, check=True
    )
    lines = (line.split() for line in symbols.stdout.splitlines())
    return next(int(words[0], 16) for words in lines if words[-1] == "um_vvar")


def measure(flow: str, kind: str, seconds: float) -> tuple[float, float, float]:
    """(virtual s, processor s of the guest, those of its neighbours) in so much wall-clock time."""
    clock = address_of_clock()
    with ExitStack() as block:
        guest = block.enter_context(started([*GUEST, "--flow", flow]))
        wait_until_begun(guest)
        others = [block.enter_context(started(each)) for each in KINDS[kind]]
        if kind == "2 other guests":
            for other in others:
                wait_until_begun(other)
        begin = [cpu_s(each.pid) for each in (guest, *others)]
        begin_s = virtual_s(guest, clock)
        time.sleep(seconds)
        passed_s = virtual_s(guest, clock) - begin_s
        guest_s, *others_s = (
            cpu_s(e.pid) - b for e, b in zip((guest, *others), begin, strict=True)
        )
        return passed_s, guest_s, sum(others_s)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kernels", nargs="+", help="kernels to compare (default: the one in use)")
    parser.add_argument("--flow", default="quic-go:cubic")
    parser.add_argument("--seconds", type=float, default=4.0, help="wall-clock, for each line")
    parser.add_argument("--as-guest", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.as_guest:
        return be_guest(words.flow)
    with claim_processor() as processor:
        os.sched_setaffinity(0, {processor})
        for path in words.kernels or [str(kernel.require().path)]:
            os.environ["QBKIT_KERNEL"] = path
            print(path)
            record("neighbours", rows(words.flow, words.seconds), KEYS, words.write)
    return None


def rows(flow: str, seconds: float) -> Iterator[dict[str, object]]:
    """A row for each kind of neighbours."""
    alone = 0.0
    for kind, others in KINDS.items():
        passed_s, guest_s, others_s = measure(flow, kind, seconds)
        speed, share = passed_s / guest_s, guest_s / (guest_s + others_s)
        alone = alone or speed
        of_fair = share * (1 + len(others))
        yield row(kind, share, of_fair, speed, of_fair * speed / alone)


def row(
    kind: str, share: float, of_fair: float, speed: float, progress: float
) -> dict[str, object]:
    return {
        "neighbours": kind,
        "share": f"{share:.3f}",
        "of the fair share": of_fair,
        "virtual s per processor s": f"{speed:.1f}",
        "progress": progress,
    }


if __name__ == "__main__":
    main()
