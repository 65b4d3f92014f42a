"""The virtual-time kernel: User Mode Linux, found, built, cached and verified.

Debian's own ``user-mode-linux`` lacks time travel, so the kernel is built from source, out of the
tree, once: the newest ``linux-source-X.Y`` of Debian's unstable suite, fetched by an apt with
state folders of its own, or a tree or tarball of yours (``QBKIT_KERNEL_SOURCE``), or a ready
binary (``QBKIT_KERNEL``).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from qbkit.errors import EngineError
from qbkit.settings import cache_folder

SOURCES = Path(__file__).parent / "kernel_sources"
OBJECTS = 730
"""About how many files the kernel has with our configuration."""
OLDEST = (6, 16)
"""Older kernels fail on processors with AMX ("ptrace set fp regs failed") and lack seccomp=on."""
REPRODUCIBLE = {
    # The guest's random pool is fed by utsname: the build's date and place must not be in it.
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "qbkit",
    "KBUILD_BUILD_HOST": "qbkit",
}
TOOLS = ("gcc", "make", "flex", "bison", "bc", "patch", "xz", "tar")
PACKAGES = "gcc make flex bison bc libc6-dev patch xz-utils"

PATCHES = {  # the file's stem → a symbol that only the patched kernel has, and what lacks without
    "0001-vdso-clock": (b"um_vvar_install", "runs cost 2-3 times more"),
    "0002-stub-yield": (b"stub_yields", "runs cost 1.2 times more"),
    "0003-tsc-and-cpuid": (b"emulate_cpuid", "programs that execute RDTSC do not repeat"),
    "0004-hz-1000": (b"um_hz_1000", "what reads the coarse clock, as Envoy, acts each 10 ms only"),
}

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Kernel:
    """A ready kernel: its binary, its version ("7.2.13"), and those of our PATCHES that it has."""

    path: Path
    version: str
    patches: tuple[str, ...]

    @property
    def missing_patches(self) -> dict[str, str]:
        """The PATCHES that it has not, and what follows from that."""
        return {name: words for name, (_, words) in PATCHES.items() if name not in self.patches}

    @property
    def fingerprint(self) -> str:
        """Content hash of the binary: a run depends on it."""
        return _content_of(self.path).fingerprint


def find() -> Kernel | None:
    """The kernel that runs would use, or None; EngineError when the one set does not exist."""
    chosen = os.environ.get("QBKIT_KERNEL")
    if chosen:
        path = Path(chosen)
        if not os.access(path, os.X_OK):
            raise EngineError(f"QBKIT_KERNEL names {chosen}, which is no executable file")
        return Kernel(path, _version_of(path), _content_of(path).patches)
    built = [p for p in _folder().glob("*/linux") if os.access(p, os.X_OK)]
    if not built:
        return None
    return _built(max(built, key=lambda p: p.stat().st_mtime))


def _built(path: Path) -> Kernel:
    return Kernel(path, path.with_name("version").read_text(), _content_of(path).patches)


def require() -> Kernel:
    """`find`, or the sentence that says how to get one."""
    kernel = find()
    if kernel is None:
        raise EngineError(
            "there is no virtual-time kernel yet; build it with `qbkit kernel --build` "
            "(about 5 minutes on 2 cores)"
        )
    return kernel


def build(say: Progress = lambda _: None) -> Kernel:
    """Build the kernel into the cache, or return the one that these sources made before.

    ``say`` is told each step. Raises EngineError with the tail of the compiler's output.
    """
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise EngineError(
            f"{', '.join(missing)} is missing to build the kernel; "
            f"install with: apt-get install {PACKAGES}"
        )
    _folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_folder(), prefix="build-") as scratch, _lock():
        source = _source(Path(scratch), say)
        target = _folder() / _key(source.version)
        if not (target / "linux").exists():
            tree = source.unpack(Path(scratch), say)
            _compile(tree, Path(scratch), say)
            _install(tree, Path(scratch), target)
    return _built(target / "linux")


@dataclass(frozen=True)
class _Source:
    """Where the source comes from: a Debian package, a tarball, or a tree."""

    version: str
    path: Path

    def unpack(self, scratch: Path, say: Progress) -> Path:
        """A tree of our own that may be patched."""
        tree = scratch / "tree"
        tree.mkdir()
        if self.path.is_dir():
            say("copying the kernel source (about 20 s)")
            shutil.copytree(self.path, tree, symlinks=True, dirs_exist_ok=True)
            return tree
        say("unpacking the kernel source (about 20 s)")
        tarball = self.path
        if tarball.suffix == ".deb":
            _run(["sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -x -C "$1"', tarball, scratch])
            (tarball,) = (scratch / "usr/src").glob("linux-source-*.tar.xz")
        _run(
            [
                "tar",
                "-X",
                SOURCES / "unneeded.txt",
                "-xf",
                tarball,
                "-C",
                tree,
                "--strip-components=1",
            ]
        )
        return tree


def _source(scratch: Path, say: Progress) -> _Source:
    chosen = os.environ.get("QBKIT_KERNEL_SOURCE")
    if not chosen:
        return _from_debian(scratch, say)
    path = Path(chosen)
    if not path.exists():
        raise EngineError(f"QBKIT_KERNEL_SOURCE names {chosen}, which does not exist")
    return _Source(hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8], path)


def _from_debian(scratch: Path, say: Progress) -> _Source:
    """The newest linux-source of Debian's unstable suite, by an apt that keeps to the scratch."""
    if not shutil.which("apt-get"):
        raise EngineError(
            "there is no apt here to fetch the kernel source with; set QBKIT_KERNEL_SOURCE to a "
            "Linux source tree or tarball (6.16 or newer)"
        )
    say("looking up the newest kernel source in Debian unstable")
    config = _private_apt(scratch)
    apt = {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C"}
    _run(["apt-get", "update", "-q"], env=apt)
    found = _run(["apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$"], env=apt)
    versions = re.findall(r"^linux-source-([0-9.]+) ", found, re.M)
    if not versions:
        raise EngineError(
            "Debian unstable offers no linux-source package here; set QBKIT_KERNEL_SOURCE to a "
            "Linux source tree or tarball (6.16 or newer)"
        )
    newest = max(versions, key=lambda v: [int(x) for x in v.split(".")])
    say(f"fetching linux-source-{newest} (160 MB)")
    _run(["apt-get", "download", "-q", f"linux-source-{newest}"], env=apt, cwd=scratch)
    (package,) = scratch.glob("linux-source-*.deb")
    return _Source(package.name.split("_")[1], package)


def _private_apt(scratch: Path) -> Path:
    """An apt configuration that leaves the machine's own untouched."""
    mirror, key = _debian_mirror()
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (scratch / name).mkdir(parents=True)
    (scratch / "status").touch()
    signed = f"Signed-By: {key}\n" if key else ""
    (scratch / "parts/unstable.sources").write_text(
        f"Types: deb\nURIs: {mirror}\nSuites: unstable\nComponents: main\n{signed}"
    )
    config = scratch / "apt.conf"
    config.write_text(
        f'Dir::State "{scratch}/state";\nDir::State::status "{scratch}/status";\n'
        f'Dir::Cache "{scratch}/cache";\nDir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{scratch}/parts";\nAPT::Sandbox::User "";\n'
        'Acquire::Languages "none";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
        'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";\n'
    )
    return config


def _debian_mirror() -> tuple[str, str]:
    """(URI, keyring) of the Debian archive that this machine's own apt uses."""
    if chosen := os.environ.get("QBKIT_DEBIAN_MIRROR"):
        return chosen, _keyring()
    form = "$(REPO_URI) $(ORIGIN) $(SUITE)"
    listed = _run(["apt-get", "indextargets", "--format", form, "Identifier: Packages"])
    for line in listed.splitlines():
        uri, origin, *_ = [*line.split(), ""]
        if origin == "Debian" and "security" not in uri:
            return uri, _keyring()
    raise EngineError(
        "this machine's apt knows no Debian archive; run apt-get update, or set "
        "QBKIT_DEBIAN_MIRROR to one, or QBKIT_KERNEL_SOURCE to a Linux source tree or tarball"
    )


def _keyring() -> str:
    for name in ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp"):
        path = Path("/usr/share/keyrings") / name
        if path.exists():
            return str(path)
    return ""


def _compile(tree: Path, scratch: Path, say: Progress) -> None:
    """Patch where the patches fit, configure, make."""
    applied = _patch(tree, say)
    version = _run(["make", "-s", "-C", tree, "kernelversion"]).strip()
    if tuple(int(x) for x in version.split(".")[:2]) < OLDEST:
        raise EngineError(f"the kernel source is {version}; 6.16 or newer is needed")
    out = scratch / "out"
    out.mkdir()
    env = {**os.environ, **REPRODUCIBLE, "ARCH": "um", "CCACHE_BASEDIR": str(scratch)}
    make: list[str | Path] = ["make", "-s", "-C", tree, "ARCH=um", f"O={out}"]
    say(f"configuring Linux {version}")
    _run([*make, "tinyconfig"], env=env)
    merge: list[str | Path] = [tree / "scripts/kconfig/merge_config.sh", "-m", "-O", out]
    _run([*merge, out / ".config", SOURCES / "config.fragment"], env=env, cwd=tree)
    _run([*make, "olddefconfig"], env=env)
    compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
    cores = len(os.sched_getaffinity(0))
    say(f"compiling Linux {version} on {cores} cores (about 10 processor minutes)")
    make.remove("-s")
    _make_with_progress([*make, f"-j{cores}", *compiler, "linux"], env)
    (out / "version").write_text(version)
    (out / "patches").write_text("\n".join(applied))


def _make_with_progress(argv: Sequence[str | Path], env: dict[str, str]) -> None:
    """Make, with a bar over the files compiled; EngineError with the first complaint."""
    from tqdm.auto import tqdm

    words = [str(a) for a in argv]
    said: list[str] = []
    with (
        tqdm(total=OBJECTS, desc="kernel", unit="file", mininterval=2.0) as bar,
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
    """Apply each of our patches that fits; the names of those applied."""
    applied = []
    for patch in sorted(SOURCES.glob("*.patch")):
        command = ["patch", "-s", "-p1", "-d", str(tree), "-i", str(patch)]
        if subprocess.run([*command, "--dry-run"], capture_output=True, check=False).returncode:
            say(f"{patch.name} does not fit this kernel; without it, {PATCHES[patch.stem][1]}")
            continue
        _run(command)
        applied.append(patch.name)
    return applied


def _install(tree: Path, scratch: Path, target: Path) -> None:
    """Move the result into the cache in one step."""
    ready = scratch / "ready"
    ready.mkdir()
    for name in ("linux", "version", "patches", ".config"):
        shutil.copy2(scratch / "out" / name, ready / name)
    ready.rename(target)


def _folder() -> Path:
    return cache_folder() / "kernels"


@contextmanager
def _lock() -> Iterator[None]:
    """One build at a time on this machine."""
    import fcntl

    with (_folder() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _key(source_version: str) -> str:
    digest = hashlib.sha256(repr(sorted(REPRODUCIBLE.items())).encode())
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.read_bytes())
    return f"linux-{source_version}-{digest.hexdigest()[:12]}"


def _version_of(path: Path) -> str:
    try:
        return _run([path, "--version"]).strip()
    except OSError as error:
        raise EngineError(
            f"the kernel {path} cannot be started here: {error.strerror}; "
            "build one for this machine with `qbkit kernel --build`"
        ) from None


class _Content(NamedTuple):
    """What a kernel's binary holds: those of the PATCHES whose symbols are there, and its hash."""

    patches: tuple[str, ...]
    fingerprint: str


def _content_of(path: Path) -> _Content:
    """Read once a process: each run asks for it several times, and it takes 30 ms."""
    stat = path.stat()
    return _read_content(path, stat.st_mtime_ns, stat.st_size)


@cache
def _read_content(path: Path, _mtime_ns: int, _size: int) -> _Content:
    binary = path.read_bytes()
    patches = tuple(name for name, (symbol, _) in PATCHES.items() if symbol in binary)
    return _Content(patches, hashlib.sha256(binary).hexdigest()[:16])


def _run(
    argv: Sequence[str | Path], env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a step of the build; EngineError with its last words when it fails."""
    words = [str(a) for a in argv]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise EngineError(f"`{' '.join(words[:3])} …` failed: {lines[-1]}")
    return done.stdout
