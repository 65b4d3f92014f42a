"""The engines that can carry out a plan, by name."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from qbkit.errors import EngineError, RunFailed, SpecError
from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.toolchains import certificate
from qbkit.testbed import guest_root, host, kernel, native, virtual
from qbkit.testbed.console import OnProgress, Usage
from qbkit.testbed.kernel import Kind
from qbkit.testbed.plan import Plan
from qbkit.testbed.scratch import scratch_folder

CAPTURE_MOUNT, SECTIONS_MOUNT = "/run/qb/capture", "/run/qb/sections"
CAPTURE = f"{CAPTURE_MOUNT}/capture"
COMMAND_SILENCE_S = 120.0
MOST_PROCESSOR_SHARE = 0.5
"""Of a guest in physical time. Beyond it, computing delays its packets (benchmarks/README.md)."""
CRASH = re.compile(r"^(panic|fatal error|runtime): |panicked at ")
"""How the crash report of a Go or a Rust program begins."""
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
"""Colours of a terminal, and characters that XML does not allow."""


@dataclass(frozen=True)
class Engine:
    """A way to run the agent."""

    name: str
    problem: Callable[[], str | None]
    """A sentence that says why it does not work here; None if it does."""
    execute: Callable[[Path, int, float, OnProgress, Plan], Usage]
    """(prepared folder, seed, silence_s, on_progress, plan) → what it cost."""
    version: Callable[[Kind], str]
    """Version of what a run depends on: the kernel of its kind."""
    real_time: bool = False
    """Whether a run takes as long as it lasts."""
    needs_machine: bool = False
    """Whether two runs at once would disturb each other."""


def _virtual_problem() -> str | None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "it needs Linux on an x86-64 processor; published data open everywhere"
    try:
        kernel.require()
    except EngineError as error:
        return str(error)
    return guest_root.problem()


def _host_execute(
    folder: Path, _seed: int, silence_s: float, on_progress: OnProgress, plan: Plan
) -> Usage:
    if plan.kernel is Kind.CHANGING:
        raise EngineError(
            "engine host runs on this machine's kernel, which has no capacity over time, outages, "
            "policer or ecn bleaching of ours; leave them out, or use engine virtual"
        )
    return host.run_on_host(folder, silence_s, on_progress)


def _physical_execute(
    folder: Path, seed: int, silence_s: float, on_progress: OnProgress, plan: Plan
) -> Usage:
    """A guest on the machine's clock, on a processor of its own that it must leave mostly idle."""
    usage = virtual.run_guest(folder, seed, silence_s, on_progress, plan, time_travel=False)
    share = usage.cpu_s / usage.wall_s
    if share > MOST_PROCESSOR_SHARE:
        raise RunFailed(
            f"the guest used {100 * share:.0f} % of its processor, so this run in physical time "
            f"would measure the processor; allowed are {100 * MOST_PROCESSOR_SHARE:.0f} %: lower "
            "rate_mbps"
        )
    return usage


def _guest_kernel(kind: Kind) -> str:
    return kernel.require(kind).fingerprint


def _own_kernel(_kind: Kind) -> str:
    return os.uname().release


ENGINES = {
    "virtual": Engine("virtual", _virtual_problem, virtual.run_guest, _guest_kernel),
    "physical": Engine(
        "physical", _virtual_problem, _physical_execute, _guest_kernel, real_time=True
    ),
    "host": Engine(
        *("host", host.problem, _host_execute, _own_kernel),
        real_time=True,
        needs_machine=True,
    ),
}
DEFAULT = "virtual"


def named(name: str | None = None) -> Engine:
    """The engine of that name, whether it works here or not; ``virtual`` by default.

    The default is never ``physical`` or ``host``: their runs take real time, and the machine's load
    changes them.
    """
    if name is not None and name not in ENGINES:
        raise SpecError(f"there is no engine {name!r}; choose from {', '.join(ENGINES)}")
    return ENGINES[name or DEFAULT]


def choose(name: str | None = None) -> Engine:
    """The engine of that name (see `named`), ready; raises EngineError if something is missing."""
    engine = named(name)
    problem = engine.problem()
    if problem is None:
        return engine
    others = [other.name for other in ENGINES.values() if name is None and not other.problem()]
    hint = f"; engine {others[0]} works, in real time: choose it by name" if others else ""
    raise EngineError(f"engine {engine.name} does not work here: {problem}{hint}")


def runs_at_once(name: str | None = None) -> int:
    """How many runs this machine can do at once: one per processor, with engine ``host`` one."""
    return 1 if named(name).needs_machine else len(os.sched_getaffinity(0))


def carry_out(
    engine: Engine, plan: Plan, folder: Path, seed: int, silence_s: float, on_progress: OnProgress
) -> tuple[dict[str, Any], Usage]:
    """Run the plan in an empty folder; (result.json, cost), with raw files in ``folder/run``.

    Raises EngineError or RunFailed with one sentence.
    """
    (folder / "run").mkdir()
    (folder / "mnt").mkdir()
    root = None if engine.name == "host" else guest_root.packed()
    (folder / "agent").symlink_to(native.agent(root))
    mounts = {
        **plan.mounts,
        **({guest_root.ENTER_MOUNT: str(guest_root.enter().parent)} if root else {}),
        CAPTURE_MOUNT: str(native.capture().parent),
        SECTIONS_MOUNT: str(native.sections().parent),
        CERTIFICATE_MOUNT: str(certificate.folder()),
    }
    for number, source in enumerate(mounts.values()):
        (folder / "mnt" / str(number)).symlink_to(source)
    data = {**plan.data, "mounts": {target: i for i, target in enumerate(mounts)}}
    if root:
        data = _on_the_machine(data)
    (folder / "run/plan.json").write_text(json.dumps(data))
    usage = engine.execute(folder, seed, silence_s, on_progress, plan)
    result = folder / "run/result.json"
    if not result.exists():
        raise RunFailed(_why(folder, usage))
    return json.loads(result.read_text()), usage


def _on_the_machine(data: dict[str, Any]) -> dict[str, Any]:
    """A plan's data with all programs of the flows, or the lone command, in this machine's root."""
    enter = [f"{guest_root.ENTER_MOUNT}/enter"]
    if "command" in data:
        return {**data, "command": [*enter, *data["command"]]}
    flows = [
        {**flow, **{key: [*enter, *flow[key]] for key in flow if key.endswith("_argv")}}
        for flow in data["flows"]
    ]
    attacks = data.get("attacks")
    also = {"attacks": {**attacks, "argv": [*enter, *attacks["argv"]]}} if attacks else {}
    return {**data, "flows": flows, **also}


def run_in_guest(
    argv: list[str],
    *,
    mounts: dict[str, str] | None = None,
    time_travel: bool = True,
    kind: Kind = Kind.CONSTANT,
) -> dict[str, Any]:
    """Boot a guest that runs one program as root; {kernel_version, exit, output}.

    The guest sees this machine's files read-only, at the same paths, and an empty /run and /tmp.
    ``mounts`` maps more guest paths to folders. Without ``time_travel`` the guest uses the
    machine's clock. ``kind`` chooses the kernel. Raises as `carry_out` does.
    """
    plan = Plan({"engine": "virtual", "command": argv}, mounts or {}, kernel=kind)
    engine = replace(
        ENGINES["virtual"], execute=partial(virtual.run_guest, time_travel=time_travel)
    )
    with scratch_folder() as folder:
        result, _ = carry_out(engine, plan, folder, 1, COMMAND_SILENCE_S, lambda _: None)
    return result


def _why(folder: Path, usage: Usage) -> str:
    error = folder / "run/error.json"
    if error.exists():
        said = printable(str(json.loads(error.read_text())["error"]))
        sentence = _quote_crash(said, folder)
        details = (path.read_text() for path in folder.glob("run/flows/*/failure.txt"))
        return "\n".join([sentence, *filter(None, details)])
    return f"the agent ended without a result: {usage.last_words or 'no output'}"


def printable(text: str) -> str:
    """A program's words without its colours, and without what no XML file and no terminal takes."""
    return CONTROL.sub("", text)


def last_words(log: Path) -> tuple[str, str]:
    """The last line of a program's log, and the line that says why: the first of a crash report.

    Both are the same without a crash report, and empty where the log is.
    """
    text = printable(log.read_text(errors="replace"))
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line] or [""]
    crash = next((i for i, line in enumerate(lines) if CRASH.search(line)), None)
    if crash is None:
        return lines[-1], lines[-1]
    return lines[-1], " ".join(lines[crash : crash + 1 + lines[crash].endswith(":")])


def _quote_crash(sentence: str, folder: Path) -> str:
    """Quote the line that says what happened instead of the last one."""
    for log in sorted(folder.glob("run/flows/*/*.log")):
        last, why = last_words(log)
        if why != last and sentence.endswith(last):
            return sentence.removesuffix(last) + why
    return sentence
