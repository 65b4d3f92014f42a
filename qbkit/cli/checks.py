"""The checks of ``qbkit doctor``: what works, what is missing, and how to fix it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from qbkit import stacks
from qbkit.check import Check
from qbkit.errors import QbkitError
from qbkit.settings import writable_folder
from qbkit.stacks import quic_go
from qbkit.stacks.toolchains import go_runtime
from qbkit.stacks.toolchains.apt import installed
from qbkit.stacks.toolchains.build import run_tool
from qbkit.stacks.toolchains.pins import KERNEL, SYSTEM, pins
from qbkit.testbed import engines, guest_root, kernel, memory
from qbkit.testbed.pin_writer import debian_programs


def examine() -> list[Check]:
    """Results of all checks; they build nothing and boot a ready kernel once."""
    return [
        _cache(),
        _memory_folder(),
        _mininet(),
        *_kernel(),
        _host(),
        *_pins(),
        *_go_runtime(),
        *(_stack(stack) for stack in stacks.all_stacks()),
    ]


def _cache() -> Check:
    folder = writable_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free_gb = shutil.disk_usage(folder).free / 1e9
    except OSError as error:
        return Check("cache folder", False, f"{folder}: {error.strerror}", "set QBKIT_CACHE")
    return Check(
        "cache folder", free_gb > 2, f"{folder}, {free_gb:.0f} GB free", "free at least 2 GB"
    )


def _memory_folder() -> Check:
    """Whether the folder of the guest's memory, a file mapped executable, allows execution."""
    folder = memory.file_folder()
    try:
        executable = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError as error:
        return Check("guest memory", False, f"{folder}: {error.strerror}", "set TMPDIR")
    detail = f"{folder}{'' if executable else ' is mounted noexec'}"
    return Check("guest memory", executable, detail, "set TMPDIR to a folder that may execute")


def _mininet() -> Check:
    """Whether the guest's agent has its Python, Mininet, ip and tc."""
    problem, absent = guest_root.problem(), guest_root.missing()
    if problem or absent:
        detail = f"{', '.join(absent)}: {'missing' if problem else 'those of qbkit-kernel'}"
        return Check("mininet", not problem, detail, problem or "")
    argv = [str(guest_root.PYTHON), "-c", "import mininet.net"]
    ok = subprocess.run(argv, capture_output=True, check=False).returncode == 0
    return Check(
        "mininet", ok, "ready" if ok else "it cannot be imported", "apt-get install mininet"
    )


def _kernel() -> list[Check]:
    fix = "qbkit kernel --build"
    try:
        found = kernel.require()
        engines.run_in_guest(["/bin/true"])
    except QbkitError as error:
        return [Check("virtual-time kernel", False, str(error), fix)]
    missing = [f"{name} is missing: {reason}" for name, reason in found.missing_patches.items()]
    if missing:
        missing.append(f"`{fix}` builds a kernel with all patches that apply")
    patches = Check("kernel patches", True, "; ".join(missing) or "all applied")
    second = kernel.find(kernel.Kind.CHANGING)
    words = "ready" if second else f"optional, and not built: `{fix}` builds it"
    changing = Check("kernel for networks that change", True, words)
    return [Check("virtual-time kernel", True, f"Linux {found.version} boots"), patches, changing]


def _host() -> Check:
    problem = engines.ENGINES["host"].problem()
    detail = "ready" if problem is None else f"optional: {problem}"
    return Check("engine host", True, detail)


def _pins() -> list[Check]:
    """One line for each group of Debian's packages that is not as pinned."""
    what = "results may differ from published ones"
    fix = "apt-get upgrade, or build it again; `make lock` moves the pins instead"
    found = pin_differences()
    if not found:
        return [Check("pinned packages", True, "all as pinned")]
    return [Check(f"pinned: {name}", False, f"{t}; {what}", fix) for name, t in found.items()]


def _go_runtime() -> list[Check]:
    """Whether our changes to Go's runtime apply to the installed Go; empty without Go."""
    if not shutil.which("go"):
        return []
    name, argv = "Go runtime", ["go", "env", "GOROOT", "GOVERSION"]
    try:
        root, release = run_tool(argv, "quic-go", cwd=quic_go.SOURCES).splitlines()
        with tempfile.TemporaryDirectory() as scratch:
            fits = go_runtime.overlay(Path(root), Path(scratch))
    except (QbkitError, OSError) as error:
        return [Check(name, False, str(error), "install Go 1.26")]
    if fits:
        return [Check(name, True, f"{release}, built with our changes")]
    detail = (
        f"our changes do not apply to {release}: quic-go makes more system calls and runs slower"
    )
    return [Check(name, False, detail, "install Go 1.26, then: qbkit stacks build quic-go")]


def _stack(stack: stacks.Stack) -> Check:
    status = stack.status()
    detail = f"ready, {stack.version()}" if status.ready else "not ready"
    return Check(f"stack {stack.name}", status.ready, detail, status.reason)


def pin_differences() -> dict[str, str]:
    """Name of a pin → what differs from it, for all that is there; empty if all is as pinned."""
    pinned = pins()
    found = {
        SYSTEM: differing(installed(pinned[SYSTEM].versions), pinned[SYSTEM].versions),
        KERNEL: _kernel_pin(),
    }
    for programs in debian_programs():
        if programs.ready and programs.pin:
            found[programs.name] = differing(programs.versions, programs.pin.versions)
    return {name: text for name, text in found.items() if text}


def differing(versions: Mapping[str, str], pinned: Mapping[str, str]) -> str:
    """The packages of another version than the pinned one, without those that are not there."""
    return ", ".join(
        f"{package} {versions[package]} (pinned: {version})"
        for package, version in pinned.items()
        if versions.get(package, version) != version
    )


def _kernel_pin() -> str:
    """Our kernel has its source's version in the name of its folder."""
    found = kernel.find()
    (version,) = pins()[KERNEL].versions.values()
    if found is None or found.path.parent.name.startswith(f"linux-{version}-"):
        return ""
    return f"Linux {found.version} (pinned: {version})"
