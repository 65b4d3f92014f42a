"""What runs will take, before the first of them starts: processor time, memory and disk space."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from qbkit.errors import EngineError, StoreError
from qbkit.settings import existing
from qbkit.spec import FRAME_BYTES, Experiment
from qbkit.testbed import engines, memory
from qbkit.testbed.machine import own_folder
from qbkit.testbed.scratch import SCRATCH

STORED_BASE_BYTES, STORED_BYTES_PER_FRAME = 150_000, 20
"""A stored run of 186,000 full frames has 18 bytes a frame, its ACKs included; of 400 small runs
nearly all have less than this together."""
CAPTURED_BYTES_PER_FRAME = 3 * 144
"""A frame is captured before and after the queue, and so is an ACK of every second one."""
FIXED_CPU_S = 0.5
CPU_S_PER_MBIT = {
    "tcp": 0.001,
    "s2n-quic": 0.004,
    "tquic": 0.005,
    "quic-go": 0.006,
    "quinn": 0.006,
    "msquic": 0.01,
    "ngtcp2": 0.016,
    "ngtcp2-0.12": 0.016,
    "quiche-0.7": 0.017,
    "google-quiche": 0.018,
    "aioquic": 0.03,
    "neqo": 0.03,
    "qbkit": 0.035,
    "kwik": 0.05,
    "quiche": 0.055,
    "chromium": 0.06,
}
"""Processor seconds per Mbit sent, from benchmarks/README.md, "Speed": whole runs of 20 s."""
OTHER_CPU_S_PER_MBIT = 0.02


def cpu_s(experiment: Experiment) -> float:
    """Processor seconds of a run that fills its link all the time, with equal shares."""
    mbit = experiment.most_data_mbps * experiment.duration_s / len(experiment.flows)
    costs = [CPU_S_PER_MBIT.get(f.stack, OTHER_CPU_S_PER_MBIT) for f in experiment.flows]
    return FIXED_CPU_S + mbit * sum(costs)


def announcement(
    missing: Sequence[Experiment],
    total: int,
    engine: str | None = None,
    scheduler: str | None = None,
) -> str:
    """How many runs are stored, and how long the others take on how many processors."""
    head = f"{total - len(missing)} of {total} runs are stored, the others take about"
    processors = min(engines.runs_at_once(engine), max(len(missing), 1))
    real_time = engines.named(engine).real_time
    seconds = sum(e.duration_s if real_time else cpu_s(e) for e in missing)
    if scheduler is not None:
        return f"{head} {math.ceil(seconds / 60)} processor min"
    where = f"{processors} processor{'s' * (processors != 1)}"
    return f"{head} {math.ceil(seconds / processors / 60)} min on {where}"


class Needs(NamedTuple):
    """About the most that a run takes: its link is full all the time."""

    guest_bytes: float
    """Memory of its guest, in the folder for that; 0 without a guest."""
    tables_bytes: float
    """Memory to build its dataset, after the guest has ended."""
    captured_bytes: float
    """Its captures, in the scratch folder while it runs."""
    stored_bytes: float
    """Its file."""

    @property
    def memory_bytes(self) -> float:
        """Peak memory."""
        return max(self.guest_bytes, self.tables_bytes)


def needs(experiment: Experiment, engine: str | None = None, programs_bytes: float = 0) -> Needs:
    """What a run needs; ``programs_bytes`` is the memory of unusually large programs in it."""
    links = 2 if experiment.topology == "parking_lot" else 1
    frames = links * experiment.most_data_mbps * 125_000 * experiment.duration_s / FRAME_BYTES
    has_guest = not engines.named(engine).needs_machine
    return Needs(
        memory.guest_bytes(experiment) + programs_bytes if has_guest else 0,
        memory.tables_bytes(frames, with_acks=experiment.has_return_queue),
        frames * CAPTURED_BYTES_PER_FRAME,
        STORED_BASE_BYTES + frames * STORED_BYTES_PER_FRAME,
    )


def require_room(
    missing: Sequence[Needs], folder: Path, engine: str | None, scheduler: str | None = None
) -> None:
    """Raise EngineError or StoreError if memory or disk are too small for runs yet to come.

    ``folder`` gets the results. As many runs as the machine has processors run at once. Other
    machines have memory of their own, so nothing is checked with a ``scheduler``.
    """
    if not missing or scheduler is not None:
        return
    at_once = min(len(missing), engines.runs_at_once(engine))

    def most(sizes: Iterable[float]) -> float:
        return sum(sorted(sizes, reverse=True)[:at_once])

    _require_memory(sorted((n.memory_bytes for n in missing), reverse=True)[:at_once])
    _require_space(
        len(missing),
        [
            (folder, sum(n.stored_bytes for n in missing), "choose another folder"),
            (own_folder(SCRATCH), most(n.captured_bytes for n in missing), "set QBKIT_CACHE"),
            (memory.file_folder(), most(n.guest_bytes for n in missing), "set TMPDIR"),
        ],
    )


def _require_memory(needed_bytes: Sequence[float]) -> None:
    """Raise EngineError if runs at once, the largest first, need more memory than is free."""
    free_bytes = memory.free_bytes()
    fit = sum(sum(needed_bytes[: n + 1]) <= free_bytes for n in range(len(needed_bytes)))
    if fit == len(needed_bytes):
        return
    what, needed, fewer = "the run", needed_bytes[0], ""
    if fit:
        what, needed = f"{len(needed_bytes)} runs at once", sum(needed_bytes)
        processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[:fit]))
        fewer = f"start qbkit or Jupyter with `taskset -c {processors}` for {fit} at once, or "
    raise EngineError(
        f"{what} may need {needed / 1e9:.1f} GB of memory, but {free_bytes / 1e9:.1f} GB are free; "
        f"{fewer}lower duration_s, rate_mbps, rtt_ms or the buffer"
    )


def _require_space(runs: int, wanted: Sequence[tuple[Path, float, str]]) -> None:
    """Raise StoreError if a disk has less free space than its folders need together.

    ``wanted`` has folders, the bytes that each needs, and what moves it to another disk.
    """
    disks: dict[int, list[tuple[Path, float, str]]] = {}
    for row in wanted:
        disks.setdefault(existing(row[0]).stat().st_dev, []).append(row)
    for rows in disks.values():
        folders, sizes, how = zip(*rows, strict=True)
        free_bytes = shutil.disk_usage(existing(folders[0])).free
        if sum(sizes) > free_bytes:
            raise StoreError(
                f"{'the run' if runs == 1 else f'{runs} runs'} may need {sum(sizes) / 1e6:.1f} MB "
                f"of disk space, but {free_bytes / 1e6:.1f} MB are free in "
                f"{' and '.join(map(str, folders))}; free some, or {' or '.join(how)}"
            )
