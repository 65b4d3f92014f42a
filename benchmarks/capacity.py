"""What two processes at once can reach on this machine: the bound of `speed.py`'s ``two_at_once``.

    python benchmarks/capacity.py [--json]

Two virtual processors may be threads of one core, which share its units and caches. Each loop runs
alone and twice at once, pinned to a processor each; a figure is twice the shortest time alone over
the shortest time of both, of five. ``arithmetic`` stays in registers, ``memory`` copies 64 MiB from
place to place, ``system_calls`` enters the kernel, and ``hand_over`` wakes another process by a
pipe and waits for its answer on the same processor, as a guest does for each of its system calls.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from typing import Any

TRIES = 5
COPY_BYTES = 64 << 20


def arithmetic() -> None:
    data = bytes(1024)
    for _ in range(1000):
        hashlib.pbkdf2_hmac("sha256", data, data, 2000)


def memory() -> None:
    source, target = bytearray(COPY_BYTES), bytearray(COPY_BYTES)
    for _ in range(40):
        target[:] = source


def system_calls() -> None:
    for _ in range(3_000_000):
        os.getppid()


def hand_over() -> None:
    here, there = os.pipe(), os.pipe()
    if not os.fork():
        while os.read(here[0], 1) != b"0":
            os.write(there[1], b"1")
        os._exit(0)
    for _ in range(150_000):
        os.write(here[1], b"1")
        os.read(there[0], 1)
    os.write(here[1], b"0")
    os.wait()


LOOPS: tuple[Callable[[], None], ...] = (arithmetic, memory, system_calls, hand_over)


def seconds(loop: Callable[[], None], processors: list[int]) -> float:
    """Wall-clock seconds of one process on each of the processors, all at once."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(processors) + 1)

    def run(processor: int) -> None:
        os.sched_setaffinity(0, {processor})
        start.wait()
        loop()

    workers = [context.Process(target=run, args=(processor,)) for processor in processors]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.monotonic()
    for worker in workers:
        worker.join()
    return time.monotonic() - began


def capacity(loop: Callable[[], None], processors: list[int]) -> dict[str, Any]:
    """Of one loop; the tries of one and of two alternate."""
    alone, both = [], []
    for _ in range(TRIES):
        alone.append(seconds(loop, processors[:1]))
        both.append(seconds(loop, processors))
    best_s = min(alone)
    return {
        "loop": loop.__name__,
        "alone_s": round(best_s, 3),
        "two_at_once": round(len(processors) * best_s / min(both), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    words = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))[:2]
    if len(processors) < 2:
        sys.exit("two processors are needed, and this process may use only one")
    for loop in LOOPS:
        found = capacity(loop, processors)
        print(json.dumps(found) if words.json else "{loop:13} {two_at_once}".format(**found))


if __name__ == "__main__":
    main()
