"""Find or build the virtual-time kernel, User Mode Linux.

Debian's own ``user-mode-linux`` lacks time travel, so qbkit builds the kernel from source
(`kernel_source`) once, out of tree; or it uses a ready binary (``QBKIT_KERNEL``).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from qbkit.errors import EngineError
from qbkit.files import lock
from qbkit.settings import cache_folder
from qbkit.testbed.kernel_source import Progress, pinned_version, run_step, source

SOURCES = Path(__file__).parent / "kernel_sources"
OBJECTS = 730
"""Approximate number of files in the kernel with our configuration."""
OLDEST = (6, 16)
"""Older kernels fail on processors with AMX ("ptrace set fp regs failed") and lack seccomp=on."""
REPRODUCIBLE = {
    # utsname feeds the guest's random pool, so it must not contain the build's date and place.
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "qbkit",
    "KBUILD_BUILD_HOST": "qbkit",
    # Set but empty: no "+" after the release for a source tree inside a git repository.
    "LOCALVERSION": "",
}
TOOLS = ("gcc", "make", "flex", "bison", "bc", "patch", "xz", "tar")
PACKAGES = "gcc make flex bison bc libc6-dev patch xz-utils"

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
}
"""0005 needs 0003, and 0007 needs 0002 and 0006: without those they do not fit either."""


@dataclass(frozen=True)
class Kernel:
    """A ready kernel: its binary, its version ("7.2.13"), and which of our PATCHES it has."""

    path: Path
    version: str
    patches: tuple[str, ...]

    @property
    def missing_patches(self) -> dict[str, str]:
        """The PATCHES that it lacks, and the effect of that."""
        return {name: words for name, (_, words) in PATCHES.items() if name not in self.patches}

    @property
    def fingerprint(self) -> str:
        """Start of the binary's hash: a run depends on it."""
        return self.sha256[:16]

    @property
    def sha256(self) -> str:
        """SHA-256 of the binary, the same wherever one compiler builds it from one source."""
        return _content_of(self.path).sha256


def find() -> Kernel | None:
    """The kernel for runs, or None; raises EngineError when QBKIT_KERNEL does not exist."""
    chosen = os.environ.get("QBKIT_KERNEL")
    if chosen:
        path = Path(chosen)
        if not os.access(path, os.X_OK):
            raise EngineError(f"QBKIT_KERNEL names {chosen}, which is not an executable file")
        return Kernel(path, _version_of(path), _content_of(path).patches)
    built = [p for p in _folder().glob("linux-*/linux") if os.access(p, os.X_OK)]
    if not built:
        return None
    return _built(max(built, key=lambda p: (_is_current(p), p.stat().st_mtime)))


def _is_current(path: Path) -> bool:
    """Whether a built kernel has the patches and the configuration of this qbkit."""
    return path.parent.name.endswith(f"-{_recipe()}")


def _built(path: Path) -> Kernel:
    return Kernel(path, path.with_name("version").read_text(), _content_of(path).patches)


def require() -> Kernel:
    """The kernel of `find`; raises EngineError, which says how to get one."""
    kernel = find()
    if kernel is None:
        raise EngineError(
            "there is no virtual-time kernel yet; build it with `qbkit kernel --build` "
            "(about 5 minutes on 2 cores)"
        )
    return kernel


def build(say: Progress = lambda _: None) -> Kernel:
    """Build the kernel into the cache, or return an earlier build of the same sources.

    Calls ``say`` with each step. Raises EngineError with the compiler's first error.
    """
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise EngineError(
            f"{', '.join(missing)} is missing to build the kernel; "
            f"install with: apt-get install {PACKAGES}"
        )
    _folder().mkdir(parents=True, exist_ok=True)
    with _only_builder(), tempfile.TemporaryDirectory(dir=_folder(), prefix="build-") as scratch:
        target = _target(pinned_version() or "")
        if not (target / "linux").exists():
            chosen = source(Path(scratch), say)
            target = _target(chosen.version)
        if not (target / "linux").exists():
            _compile(chosen.unpack(Path(scratch), say), Path(scratch), say)
            _install(Path(scratch), target)
        os.utime(target / "linux")  # `find` takes the kernel that was built or requested last
    return _built(target / "linux")


def _target(source_version: str) -> Path:
    return _folder() / f"linux-{source_version}-{_recipe()}"


def _compile(tree: Path, scratch: Path, say: Progress) -> None:
    """Apply the patches that fit, configure, compile."""
    applied = _patch(tree, say)
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
    run_step([*merge, out / ".config", SOURCES / "config.fragment"], env=env, cwd=tree)
    run_step([*make, "olddefconfig"], env=env)
    with_ccache = shutil.which("ccache") and "CCACHE_DISABLE" not in os.environ
    # ccache makes paths relative, also those that two files put into the kernel: the same without.
    compiler = "CC=ccache gcc" if with_ccache else f"KCFLAGS=-fmacro-prefix-map={tree}/=../tree/"
    cores = len(os.sched_getaffinity(0))
    say(f"compiling Linux {version} on {cores} cores (about 10 processor minutes)")
    make.remove("-s")
    _make_with_progress([*make, f"-j{cores}", compiler, "linux"], env)
    (out / "version").write_text(version)
    (out / "patches").write_text("\n".join(applied))


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


def _patch(tree: Path, say: Progress) -> list[str]:
    """Apply each of our patches that fits; return the names of those applied."""
    applied = []
    for patch in sorted(SOURCES.glob("*.patch")):
        command = ["patch", "-s", "-p1", "-d", str(tree), "-i", str(patch)]
        if subprocess.run([*command, "--dry-run"], capture_output=True, check=False).returncode:
            say(f"{patch.name} does not fit this kernel; without it, {PATCHES[patch.stem][1]}")
            continue
        run_step(command)
        applied.append(patch.name)
    return applied


def _install(scratch: Path, target: Path) -> None:
    """Move the result into the cache in one step."""
    ready = scratch / "ready"
    ready.mkdir()
    for name in ("linux", "version", "patches", ".config"):
        shutil.copy2(scratch / "out" / name, ready / name)
    ready.rename(target)


def _folder() -> Path:
    return cache_folder() / "kernels"


@contextmanager
def _only_builder() -> Iterator[None]:
    """One build at a time in this cache; removes the remains of killed builds."""
    with lock(_folder() / "lock"):
        for left in _folder().glob("build-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


@cache
def _recipe() -> str:
    """Hash of everything but the source: environment, patches, configuration."""
    digest = hashlib.sha256(repr(sorted(REPRODUCIBLE.items())).encode())
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _version_of(path: Path) -> str:
    try:
        return run_step([path, "--version"]).strip()
    except OSError as error:
        raise EngineError(
            f"the kernel {path} cannot be started here: {error.strerror}; "
            "build one for this machine with `qbkit kernel --build`"
        ) from None


class _Content(NamedTuple):
    """A kernel's binary: the PATCHES whose symbols it contains, and its hash."""

    patches: tuple[str, ...]
    sha256: str


def _content_of(path: Path) -> _Content:
    """Read once per process, because each run asks several times and reading takes 30 ms."""
    stat = path.stat()
    return _read_content(path, stat.st_mtime_ns, stat.st_size)


@cache
def _read_content(path: Path, _mtime_ns: int, _size: int) -> _Content:
    binary = path.read_bytes()
    patches = tuple(name for name, (symbol, _) in PATCHES.items() if symbol in binary)
    return _Content(patches, hashlib.sha256(binary).hexdigest())
