"""Native programs, built once into the cache under the hash of their sources."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from qbkit.errors import StackNotReady
from qbkit.settings import cache_folder

Maker = Callable[[Path], None]


def fingerprint(sources: Iterable[Path], *words: str) -> str:
    """12 hexadecimal digits over the contents of files and some words.

    Byte code that Python left among the files does not count.
    """
    digest = hashlib.sha256("\0".join(words).encode())
    for path in sorted(source for source in sources if source.suffix != ".pyc"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def built_folder(name: str, key: str) -> Path:
    """Where a program of that name and fingerprint is or will be."""
    return cache_folder() / "drivers" / f"{name}-{key}"


def build_once(name: str, key: str, make: Maker) -> Path:
    """The folder that ``make`` filled; it is called on an empty folder, at most once."""
    target = built_folder(name, key)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with _lock(target.with_name(f".{name}.lock")):
        if not target.exists():
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            part.rename(target)
    return target


def compile_c(source: Path, name: str, *, shared: bool = False) -> Path:
    """Compile one C file to a static program, or a shared library; the path of the result."""
    flags = ["-O2", "-shared", "-fPIC"] if shared else ["-O2", "-static", "-pthread"]
    key = fingerprint([source], *flags)

    def make(folder: Path) -> None:
        run_tool(["gcc", *flags, "-o", folder / name, source], f"the C program {source.stem}")

    return build_once(source.stem, key, make) / name


def run_tool(
    argv: Sequence[str | Path],
    what: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a compiler; StackNotReady says which tool is missing, or its first complaint."""
    words = [str(a) for a in argv]
    if not shutil.which(words[0]):
        raise StackNotReady(f"{words[0]} is missing to build {what}; install it")
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        first = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise StackNotReady(f"{words[0]} cannot build {what}: {first.strip()}")
    return done.stdout


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One build of a program at a time on this machine."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
