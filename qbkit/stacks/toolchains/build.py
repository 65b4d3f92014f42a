"""Native programs, built once into the cache under the hash of their sources."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from qbkit.errors import StackNotReady
from qbkit.files import lock
from qbkit.settings import built_in, packed_folders

Maker = Callable[[Path], None]
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Search path for this machine's programs that the guest uses."""
STATIC, SHARED = ("-O2", "-static", "-pthread"), ("-O2", "-shared", "-fPIC")
"""Flags of the compiler for a program, and for a library."""


def fingerprint(sources: Iterable[Path], *words: str) -> str:
    """12 hexadecimal digits over the contents of files and some words.

    Python's byte code among the files does not count.
    """
    digest = hashlib.sha256("\0".join(words).encode())
    for path in sorted(source for source in sources if source.suffix != ".pyc"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def program_fingerprint(program: Path) -> str:
    """12 hexadecimal digits over a program of this machine and what it runs with.

    A script runs with its interpreter, a binary with its shared libraries.
    """
    real = program.resolve()
    files = _program_files(real, real.stat().st_mtime_ns)
    return fingerprint([], *(_content(file, file.stat().st_mtime_ns) for file in files))


@cache
def _content(file: Path, _mtime_ns: int) -> str:
    """Fingerprint of a file, computed again only when the file changes."""
    return fingerprint([file])


@cache
def _program_files(program: Path, _mtime_ns: int) -> list[Path]:
    """The program and its libraries; for a script, its interpreter and the libraries of that."""
    with program.open("rb") as file:
        first_line = file.read(256).partition(b"\n")[0].decode(errors="replace")
    if not first_line.startswith("#!"):
        return [program, *_libraries(program)]
    words = first_line.removeprefix("#!").split()
    found = [
        Path(path).resolve() for word in words if (path := shutil.which(word, path=GUEST_PATH))
    ]
    return [program, *(file for path in found for file in (path, *_libraries(path)))]


def _libraries(program: Path) -> list[Path]:
    """The shared libraries that a binary loads when it starts, where they exist."""
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF" or not shutil.which("ldd"):
            return []
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", done.stdout)]


def python_identity(python: Path) -> str:
    """A text that changes with the interpreter, which reads only its own byte code."""
    if not python.exists():
        return ""
    stat = python.stat()
    return f"{python.resolve().name} {stat.st_size} {stat.st_mtime_ns}"


def built_folder(name: str, key: str) -> Path:
    """Folder of a program with that name and fingerprint, built or not."""
    return built_in("drivers", f"{name}-{key}")


def key_by_compiler(name: str, tool: str, here: str, key: Callable[[str], str]) -> str:
    """The fingerprint of a program that depends on its compiler: of the one built, if any is.

    ``here`` is the compiler of this machine, empty where there is none; the packages of built
    programs name theirs in ``compilers.json``.
    """
    packed = (json.loads(path.read_text()) for path in _compiler_files())
    keys = [key(words) for words in (here, *(known[tool] for known in packed if tool in known))]
    return next((one for one in keys if built_folder(name, one).exists()), keys[0])


def _compiler_files() -> Iterator[Path]:
    files = (place / "compilers.json" for place in packed_folders())
    return (file for file in files if file.exists())


def build_once(name: str, key: str, make: Maker) -> Path:
    """The folder that ``make`` filled; it is called at most once, on an empty folder."""
    target = built_folder(name, key)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with lock(target.with_name(f".{name}.lock")):
        if not target.exists():
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            part.rename(target)
    return target


def compile_c(
    sources: Path | Sequence[Path], name: str, *, shared: bool = False, more: Sequence[str] = ()
) -> Path:
    """Compile C files to a static program or a shared library; return its path.

    ``more`` are further words of the compiler: definitions and libraries.
    """
    files = [sources] if isinstance(sources, Path) else list(sources)
    flags, stem = SHARED if shared else STATIC, Path(name).stem

    def make(folder: Path) -> None:
        run_tool(["gcc", *flags, "-o", folder / name, *files, *more], f"the C program {stem}")

    return build_once(stem, fingerprint(files, *flags, *more), make) / name


def is_compiled(source: Path, name: str) -> bool:
    """Whether `compile_c` has made this static program of one file."""
    return built_folder(name, fingerprint([source], *STATIC)).exists()


def is_installed(tool: str) -> bool:
    """Whether a program is there, or what a build needs: ``libclang``, ``lib*.a``, ``*.h``."""
    if tool == "libclang":
        found = any(Path("/usr/lib").glob("llvm-*/lib/libclang*.so*"))
        return found or bool(os.environ.get("LIBCLANG_PATH"))
    if tool.endswith(".a"):
        return any(Path("/usr").glob(f"lib*/*/{tool}")) or any(Path("/usr").glob(f"lib*/{tool}"))
    if tool.endswith(".h"):
        return (Path("/usr/include") / tool).exists()
    return shutil.which(tool) is not None


def run_tool(
    argv: Sequence[str | Path],
    what: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
) -> str:
    """Run a compiler; StackNotReady names the missing tool, or gives the tool's first error.

    All that a failed tool printed goes to the file ``log``, which the error names.
    """
    words = [str(a) for a in argv]
    if not shutil.which(words[0]):
        raise StackNotReady(f"{words[0]} is missing to build {what}; install it")
    done = subprocess.run(
        words, env=env, cwd=cwd, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        if log:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(done.stdout + done.stderr)
        where = f" (the whole log: {log})" if log else ""
        raise StackNotReady(f"{words[0]} cannot build {what}: {_reason(lines)}{where}")
    return done.stdout


def _reason(lines: Sequence[str]) -> str:
    """The first error that a tool printed, with the reason of it that cargo prints further down."""
    said = [line.strip() for line in lines if not line.startswith("warning:")]
    errors = [i for i, line in enumerate(said) if re.search(r"\berror\b", line, re.I)]
    if not errors:
        return lines[-1].strip()
    first, *why = said[errors[0] :]
    reasons = []
    if first.startswith("error: failed to select a version"):
        reasons = [
            one for one in why if re.match(r"package `|the package `|candidate versions", one)
        ]
    elif first.startswith("error: failed to get"):
        reasons = why[-1:]
    return " ".join([first, *reasons[:2]])
