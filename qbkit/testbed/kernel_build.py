"""Build the virtual-time kernels from source, out of tree.

Debian's own ``user-mode-linux`` lacks time travel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from qbkit.errors import EngineError
from qbkit.files import lock
from qbkit.testbed import kernel
from qbkit.testbed.kernel import PATCHES, REPRODUCIBLE, WHOLE_FILES, Kernel, Kind
from qbkit.testbed.kernel_source import Progress, pinned_version, run_step, source

OBJECTS = 730
"""Approximate number of files in the kernel with our configuration."""
OLDEST = (6, 16)
"""Older kernels fail on processors with AMX ("ptrace set fp regs failed") and lack seccomp=on."""
TOOLS = ("gcc", "make", "flex", "bison", "bc", "patch", "xz", "tar")
PACKAGES = "gcc make flex bison bc libc6-dev patch xz-utils"


def build(say: Progress = lambda _: None, kinds: Sequence[Kind] = tuple(Kind)) -> list[Kernel]:
    """Build kernels into the cache, or return earlier builds of the same sources.

    Calls ``say`` with each step. Raises EngineError with the compiler's first error.
    """
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise EngineError(
            f"{', '.join(missing)} is missing to build the kernel; "
            f"install with: apt-get install {PACKAGES}"
        )
    if run_step(["gcc", "-print-file-name=libc.a"]).strip() == "libc.a":
        raise EngineError(
            "libc.a is missing, the C library that the kernel is linked with; install libc6-dev "
            "(Fedora: glibc-static)"
        )
    kernel.folder().mkdir(parents=True, exist_ok=True)
    with _only_builder() as scratch:
        version = pinned_version() or ""
        if not all((_target(version, kind) / "linux").exists() for kind in kinds):
            chosen = source(scratch, say)
            version = chosen.version
            wanted = [kind for kind in kinds if not (_target(version, kind) / "linux").exists()]
            if wanted:
                _build_from(chosen.unpack(scratch, say), wanted, version, scratch, say)
        binaries = [_target(version, kind) / "linux" for kind in kinds]
        for binary in binaries:
            os.utime(binary)  # `find` takes the kernel that was built or requested last
    return [kernel.built(binary) for binary in binaries]


def _target(source_version: str, kind: Kind) -> Path:
    return kernel.folder() / f"{kind.value}-{source_version}-{kernel.recipe(kind)}"


def _build_from(
    tree: Path, kinds: Sequence[Kind], version: str, scratch: Path, say: Progress
) -> None:
    """Build kernels of some kinds in one tree, where each kind adds to the sources of the last."""
    applied: dict[Path, list[str]] = {}
    for kind in kinds:
        for place in kind.sources:
            if place not in applied:
                applied[place] = _patch(tree, place, say)
        patches = [name for place in kind.sources for name in applied[place]]
        _compile(tree, kind, patches, scratch, say)
        _install(scratch, _target(version, kind))


def _compile(tree: Path, kind: Kind, patches: Sequence[str], scratch: Path, say: Progress) -> None:
    """Configure and compile a patched tree into ``scratch/out``."""
    version = run_step(["make", "-s", "-C", tree, "kernelversion"]).strip()
    if tuple(int(x) for x in version.split(".")[:2]) < OLDEST:
        raise EngineError(f"the kernel source is {version}; 6.16 or newer is needed")
    out = scratch / "out"
    out.mkdir()
    env = {**os.environ, **REPRODUCIBLE, "ARCH": "um", "CCACHE_BASEDIR": str(scratch)}
    make: list[str | Path] = ["make", "-s", "-C", tree, "ARCH=um", f"O={out}"]
    say(f"configuring Linux {version}")
    run_step([*make, "tinyconfig"], env=env)
    merge: list[str | Path] = [tree / "scripts/kconfig/merge_config.sh", "-m", "-O", out]
    fragments = [place / "config.fragment" for place in kind.sources]
    run_step([*merge, out / ".config", *fragments], env=env, cwd=tree)
    run_step([*make, "olddefconfig"], env=env)
    with_ccache = shutil.which("ccache") and "CCACHE_DISABLE" not in os.environ
    # ccache makes paths relative, also those that two files put into the kernel: the same without.
    compiler = "CC=ccache gcc" if with_ccache else f"KCFLAGS=-fmacro-prefix-map={tree}/=../tree/"
    cores = len(os.sched_getaffinity(0))
    say(
        f"compiling Linux {version} ({kind.name.lower()} networks) on {cores} cores "
        "(about 10 processor minutes; 4 for the second kernel)"
    )
    make.remove("-s")
    _make_with_progress([*make, f"-j{cores}", compiler, "linux"], env)
    (out / "version").write_text(version)
    (out / "patches").write_text("\n".join(patches))


def _make_with_progress(argv: Sequence[str | Path], env: dict[str, str]) -> None:
    """Run make with a progress bar over files; raises EngineError with the first error."""
    from qbkit.progress import bar as progress_bar

    words = [str(a) for a in argv]
    said: list[str] = []
    with (
        progress_bar(total=OBJECTS, desc="kernel", unit="file", mininterval=2.0) as bar,
        subprocess.Popen(
            words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        for line in process.stdout or ():
            if line.startswith("  CC"):
                bar.update()
            else:
                said.append(line.strip())
    if process.returncode:
        why = next((line for line in said if "error" in line.lower()), "no output")
        raise EngineError(f"the kernel does not compile: {why}")


def _patch(tree: Path, place: Path, say: Progress) -> list[str]:
    """Add our sources of a folder to a tree: each patch that fits, and whole files.

    Returns the names of the applied patches. Raises EngineError where one that its kind of kernel
    is for does not fit.
    """
    applied = []
    for patch in sorted(place.glob("*.patch")):
        command = ["patch", "-s", "-p1", "-d", str(tree), "-i", str(patch)]
        if subprocess.run([*command, "--dry-run"], capture_output=True, check=False).returncode:
            if patch.stem not in PATCHES:
                raise EngineError(
                    f"{patch.name} does not fit this kernel, so networks cannot change on it; "
                    "unset QBKIT_KERNEL_SOURCE to build the pinned one"
                )
            say(f"{patch.name} does not fit this kernel; without it, {PATCHES[patch.stem][1]}")
            continue
        run_step(command)
        applied.append(patch.name)
    for pattern, folder in WHOLE_FILES.items():
        for file in place.glob(pattern):
            shutil.copy2(file, tree / folder)
    for file in kernel.linked():
        shutil.copy2(file, tree / "arch/um/os-Linux")
    return applied


def _install(scratch: Path, target: Path) -> None:
    """Move the result into the cache in one step."""
    ready = scratch / "ready"
    ready.mkdir()
    for name in ("linux", "version", "patches", ".config"):
        shutil.copy2(scratch / "out" / name, ready / name)
    ready.rename(target)
    shutil.rmtree(scratch / "out")


@contextmanager
def _only_builder() -> Iterator[Path]:
    """A folder for one build at a time in this cache; removes the remains of killed builds."""
    with lock(kernel.folder() / "lock"):
        for left in kernel.folder().glob("build-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=kernel.folder(), prefix="build-") as scratch:
            yield Path(scratch)
