"""Byte code of the drivers in Python, in a folder that holds nothing else.

To compile the sources of a driver and of all that it imports costs each of its processes half a
second. The byte code beside the sources is no help: it may or may not be there, and in virtual time
a file that is looked for in vain costs a microsecond, so runs would differ with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qbkit.stacks.build import GUEST_PATH, build_once, fingerprint, python_identity, run_tool

SCRIPT = Path(__file__).parent / "drivers/python/precompile.py"
MOUNT = "/run/qb/stacks/byte-code"


def flags(name: str) -> tuple[str, ...]:
    """Python's flags to use the byte code of that name, and to write none."""
    return ("-B", "-X", f"pycache_prefix={MOUNT}/{name}")


def version() -> str:
    """Of what compiles it; part of the version of each driver that it is made for."""
    return f"byte code {fingerprint([SCRIPT])}"


def mounts(
    name: str,
    python: Sequence[str],
    modules: Sequence[str],
    path: str,
    folders: Mapping[str, Path],
    key: str,
) -> dict[str, Path]:
    """The folder of that name, compiled when it is not there yet: guest path → host path.

    ``python`` is the interpreter with its flags; in the guest it imports ``modules`` by the
    PYTHONPATH ``path`` from ``folders`` (guest path → host path), whose contents ``key`` names.
    Raises StackNotReady when it cannot.
    """
    pairs = [f"{guest}={here.resolve()}" for guest, here in folders.items()]

    def make(folder: Path) -> None:
        words = [*python, "-B", str(SCRIPT), str(folder), path, ",".join(modules), *pairs]
        run_tool(words, f"the byte code of {name}", env={"PATH": GUEST_PATH})

    words = [*python, path, *modules, *folders]
    key = fingerprint([SCRIPT], key, python_identity(Path(python[0])), *words)
    return {f"{MOUNT}/{name}": build_once(f"byte-code-{name}", key, make)}
