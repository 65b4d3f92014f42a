"""What a guest was doing when its clock stood still, read from outside the guest.

User Mode Linux runs each guest process as a host process, in which the guest's kernel runs, too,
when the process calls it. All but one wait in futex() until it is their turn.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from qbkit.files import write_whole
from qbkit.settings import writable_folder

SAMPLE_S, MOST_S, ENOUGH_CPU_S = 0.5, 10.0, 0.05
"""Watch the processes until together they got this much processor time, none wants it, or this
long."""
ALONE = 4
"""A program that computes takes this many times the processor time of the guest's kernel."""
STARVED = 0.05
"""A guest that wants its processor and gets less of it than this is starved by others."""
STACK_TAIL_BYTES = 16384
FLOW = re.compile(rb"/flows/([0-9]+)\b")
"""In the arguments of a flow's program: where it writes, which ends with the flow's index."""


def observe(pid: int, processor: int) -> dict[str, Any]:
    """What each process of the guest with this pid does, and which others want its processor.

    JSON-ready. Takes half a second to ten seconds, to count the processor time of each.
    """
    before = {process: _cpu_s(process) for process in descendants(pid)}
    started = time.monotonic()
    while True:
        time.sleep(SAMPLE_S)
        used = {each: max(0.0, _cpu_s(each) - cpu_s) for each, cpu_s in before.items()}
        watched_s = time.monotonic() - started
        idle = all(stat(each)[0] != "R" for each in before)
        if idle or sum(used.values()) > ENOUGH_CPU_S or watched_s > MOST_S:
            break
    processes = [
        {**_process(each), "cpu_share": round(cpu_s / watched_s, 4)} for each, cpu_s in used.items()
    ]
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": _text(Path("/proc/loadavg")),
        "cgroup": _text(Path(f"/proc/{pid}/cgroup")),
        "processor": processor,
        "processes": processes,
        "others_on_processor": list(_others(processor, before)),
    }


def reason(seen: dict[str, Any], flows: Sequence[str] = ()) -> str | None:
    """In words, why the clock stands still, if the result of `observe` shows it; else None.

    ``flows`` are the names of the flows, of which it says the one whose program computes.
    """
    kernel, *programs = seen["processes"]
    busiest = max(programs, key=lambda each: float(each["cpu_share"]), default=None)
    waits = any(each["state"] == "R" for each in seen["processes"])
    starved = sum(each["cpu_share"] for each in seen["processes"]) < STARVED
    if waits and starved and seen["others_on_processor"]:
        names = ", ".join(sorted({each["name"] for each in seen["others_on_processor"]}))
        return f"it hardly gets its processor, which others want: {names}"
    if busiest and busiest["cpu_share"] > ALONE * kernel["cpu_share"]:
        where = _flow_words(busiest.get("flow"), flows)
        return f"{where}{busiest['program']} computes without ever letting time pass"
    return None


def _flow_words(index: int | None, flows: Sequence[str]) -> str:
    """The flow of a program; a lone flow's where the program does not say it."""
    if index is None and len(flows) == 1:
        index = 0
    return "" if index is None or index >= len(flows) else f"flow {index + 1} ({flows[index]}): "


def keep(seen: dict[str, Any]) -> Path:
    """Write the result of `observe` to the folder ``failures`` of the cache; the file's path."""
    folder = writable_folder() / "failures"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"standstill-{seen['when'].replace(':', '')}-{os.getpid()}.json"
    write_whole(path, json.dumps(seen, indent=1).encode())
    return path


def _process(pid: int) -> dict[str, Any]:
    """A process of the guest, from /proc; None for values that this user may not read."""
    proc, words = Path(f"/proc/{pid}"), _words(pid)
    return {
        "pid": pid,
        "name": _text(proc / "comm"),
        "program": words.rpartition(b"\0")[2].decode() or None,
        "flow": int(found[1]) if (found := FLOW.search(words)) else None,
        "state": stat(pid)[0],
        "wchan": _text(proc / "wchan"),
        "stack": _text(proc / "stack"),
        "syscall": _text(proc / "syscall"),
        "schedstat": _text(proc / "schedstat"),
    }


def descendants(pid: int) -> list[int]:
    """A process and all its living descendants."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in (_text(task) or "").split()]
    return found


def _others(processor: int, guest: Collection[int]) -> Iterator[dict[str, Any]]:
    """Processes outside the guest that wait for its processor or run on it."""
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        state, *fields = stat(pid)
        if state == "R" and int(fields[35]) == processor and pid not in {*guest, os.getpid()}:
            yield {"pid": pid, "name": _text(folder / "comm")}


def stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; those of a dead process if there is none."""
    text = _text(Path(f"/proc/{pid}/stat"))
    return text.rpartition(")")[2].split() if text else ["X", *(50 * ["0"])]


def _cpu_s(pid: int) -> float:
    """Processor seconds of the main thread, to the nanosecond if the kernel counts those."""
    if schedstat := _text(Path(f"/proc/{pid}/schedstat")):
        return int(schedstat.split()[0]) / 1e9
    user, system = stat(pid)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _mappings(pid: int) -> list[tuple[int, int, str]]:
    """(begin, end, flags) of all mappings, the highest first."""
    found = []
    for line in reversed((_text(Path(f"/proc/{pid}/maps")) or "").splitlines()):
        span, flags, *_ = line.split()
        begin, end = (int(word, 16) for word in span.split("-"))
        found.append((begin, end, flags))
    return found


def _words(pid: int) -> bytes:
    """What execve puts at the end of a process's stack: arguments, environment, and its program.

    The program is a path of the guest. Empty if that cannot be read.
    """
    with suppress(OSError), Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for _, end, flags in _mappings(pid):
            words = _last_strings(memory, end)
            program = words.rpartition(b"\0")[2]
            if flags.startswith("rw") and program.startswith(b"/") and program.isascii():
                return words
    return b""


def _last_strings(memory: BinaryIO, end: int) -> bytes:
    """The strings below an address; empty if they cannot be read."""
    with suppress(OSError, ValueError, OverflowError):
        memory.seek(end - STACK_TAIL_BYTES)
        return memory.read(STACK_TAIL_BYTES).rstrip(b"\0")
    return b""
