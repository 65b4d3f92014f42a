"""Find the virtual-time kernels, User Mode Linux.

There are two. Another kernel, even one with other options only, gives other bytes: the same law,
another sample. So the kernel of the published runs stays as it is for networks that do not change,
and what else a network needs (`Kind.CHANGING`) is in a second one.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from qbkit.errors import EngineError
from qbkit.settings import cache_folder, chosen_path, packed_folders
from qbkit.testbed.kernel_source import run_step

SOURCES = Path(__file__).parent / "kernel_sources"
REPRODUCIBLE = {
    # utsname feeds the guest's random pool, so it must not contain the build's date and place.
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "qbkit",
    "KBUILD_BUILD_HOST": "qbkit",
    # Set but empty: no "+" after the release for a source tree inside a git repository.
    "LOCALVERSION": "",
}
CAPACITY = b"capacity_class_ops"
"""A symbol that only a kernel for networks that change has."""

PATCHES = {  # the file's stem → a symbol that only the patched kernel has, and the effect without
    "0001-vdso-clock": (b"um_vvar_install", "runs cost 2-3 times more"),
    "0002-stub-yield": (
        b"yield_pause",
        "runs cost 1.2 times more; older versions of it nearly stop beside other programs",
    ),
    "0003-tsc-and-cpuid": (b"emulate_cpuid", "programs that execute RDTSC do not repeat"),
    "0004-hz-1000": (b"um_hz_1000", "users of the coarse clock, as Envoy, act only every 10 ms"),
    "0005-tsc-same-on-both-sides": (b"os_allow_cpuid", "runs cost up to twice as much"),
    "0006-fp-copy-by-string-instruction": (b"copy_fp_state", "runs cost up to 7 % more"),
    "0007-return-without-sigreturn": (b"may_return_fast", "runs cost about 6 % more"),
    "0009-tcp-samples": (
        b"tcp_take_samples",
        "runs of TCP cost a sixth more, of many flows up to three times",
    ),
    "0010-kernel-in-its-processes": (
        b"carrier_hop",
        "runs of QUIC stacks cost up to 1.7 times more",
    ),
}
"""0005 needs 0003, 0007 needs 0002 and 0006, 0010 needs all of these: without those they do not fit
either."""
WHOLE_FILES = {
    "sch_*.c": "net/sched",
    "carrier.c": "arch/um/os-Linux/skas",
    "call_sites.c": "arch/um/os-Linux/skas",
}
"""Where files of our sources belong in the kernel's tree."""
LINKED = ("getrandom.c", "huge_pages.c", "with_parent.c")
"""The libraries of `native` that are also linked into a kernel with patch 0010: no library can be
preloaded into it, as it is linked statically."""


class Kind(Enum):
    """What a kernel is for; its value begins the name of the folder of a built one."""

    CONSTANT = "linux"
    """Networks that do not change: the kernel of the published runs."""
    CHANGING = "changing"
    """Also schedules of capacity, policing, and headers that change on their way."""

    @property
    def sources(self) -> tuple[Path, ...]:
        """Folders of patches, files and configuration, in order."""
        return (SOURCES, SOURCES / "changing") if self is Kind.CHANGING else (SOURCES,)


@dataclass(frozen=True)
class Kernel:
    """A ready kernel: its binary, its version ("7.2.13"), and which of our PATCHES it has."""

    path: Path
    version: str
    patches: tuple[str, ...]
    sha256: str
    """Of the binary, the same wherever one compiler builds it from one source."""
    may_change: bool
    """Whether it has what networks need that change."""

    @property
    def missing_patches(self) -> dict[str, str]:
        """The PATCHES that it lacks, and the effect of that."""
        return {name: words for name, (_, words) in PATCHES.items() if name not in self.patches}

    @property
    def fingerprint(self) -> str:
        """Start of the binary's hash: a run depends on it."""
        return self.sha256[:16]


def find(kind: Kind = Kind.CONSTANT) -> Kernel | None:
    """The kernel for runs of a kind, or None; raises EngineError when QBKIT_KERNEL does not exist.

    QBKIT_KERNEL names the kernel of every run.
    """
    if chosen := chosen_path("QBKIT_KERNEL"):
        if not os.access(chosen, os.X_OK):
            raise EngineError(f"QBKIT_KERNEL names {chosen}, which is not an executable file")
        return _kernel(chosen, _version_of(chosen))
    places = (folder(), *(place / folder().name for place in packed_folders()))
    built_here = (path for place in places for path in place.glob(f"{kind.value}-*/linux"))
    found = [path for path in built_here if os.access(path, os.X_OK)]
    if not found:
        return None
    current = f"-{recipe(kind)}"
    best = max(found, key=lambda p: (p.parent.name.endswith(current), p.stat().st_mtime))
    return built(best)


def built(path: Path) -> Kernel:
    """The kernel that was built at a path of the cache."""
    return _kernel(path, path.with_name("version").read_text())


def _kernel(path: Path, version: str) -> Kernel:
    stat = path.stat()
    return Kernel(path, version, *_content(path, stat.st_mtime_ns, stat.st_size))


def require(kind: Kind = Kind.CONSTANT) -> Kernel:
    """The kernel of `find`; raises EngineError, which says how to get one."""
    kernel = find(kind)
    if kernel is None:
        which = "" if kind is Kind.CONSTANT else " for networks that change"
        raise EngineError(
            f"there is no virtual-time kernel{which} yet; build it with `qbkit kernel --build` "
            "(about 5 minutes on 2 cores)"
        )
    if kind is Kind.CHANGING and not kernel.may_change:
        raise EngineError(
            f"the kernel {kernel.path} has no networks that change; "
            "build one that has with `qbkit kernel --build`, and unset QBKIT_KERNEL"
        )
    return kernel


def folder() -> Path:
    """The folder of all built kernels."""
    return cache_folder() / "kernels"


def linked() -> list[Path]:
    """The files of LINKED."""
    return [SOURCES.parent / "native" / name for name in LINKED]


@cache
def recipe(kind: Kind) -> str:
    """Hash of everything but the source: environment, patches, configuration."""
    digest = hashlib.sha256(repr(sorted(REPRODUCIBLE.items())).encode())
    ours = [path for place in kind.sources for path in sorted(place.iterdir())]
    for path in (*ours, *linked()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _version_of(path: Path) -> str:
    try:
        return run_step([path, "--version"]).strip()
    except OSError as error:
        raise cannot_start(path, error) from None


def cannot_start(path: Path, error: OSError) -> EngineError:
    """The error of a kernel that this machine does not start, as one of another architecture."""
    return EngineError(
        f"the kernel {path} cannot be started here: {error.strerror}; "
        "build one for this machine with `qbkit kernel --build`"
    )


@cache
def _content(path: Path, _mtime_ns: int, _size: int) -> tuple[tuple[str, ...], str, bool]:
    """What a `Kernel` says of its binary; kept, as each run asks often and reading takes 30 ms."""
    binary = path.read_bytes()
    patches = tuple(name for name, (symbol, _) in PATCHES.items() if symbol in binary)
    return patches, hashlib.sha256(binary).hexdigest(), CAPACITY in binary
