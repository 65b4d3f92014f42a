"""Byte code of the Python drivers, in a folder that holds nothing else.

Compiling a driver and everything it imports costs each of its processes half a second. Byte code
beside the sources does not help: it may or may not exist, and a failed file look-up costs a
microsecond of virtual time, so its presence would change a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qbkit.stacks.toolchains.build import (
    GUEST_PATH,
    build_once,
    fingerprint,
    python_identity,
    run_tool,
)

SCRIPT = Path(__file__).parents[1] / "drivers/python/precompile.py"
MOUNT = "/run/qb/stacks/byte-code"


def flags(name: str) -> tuple[str, ...]:
    """Python's flags to read the byte code of that name, and to write none."""
    return ("-B", "-X", f"pycache_prefix={MOUNT}/{name}")


def version() -> str:
    """Version of the compiling script; part of the version of each driver that uses it."""
    return f"byte code {fingerprint([SCRIPT])}"


def mounts(
    name: str,
    python: Sequence[str],
    modules: Sequence[str],
    path: str,
    folders: Mapping[str, Path],
    key: str,
) -> dict[str, Path]:
    """The folder of that byte code, compiled if it is missing: guest path → host path.

    ``python`` is the interpreter with its flags; in the guest it imports ``modules`` by the
    PYTHONPATH ``path`` from ``folders`` (guest path → host path), whose contents ``key``
    identifies. Raises StackNotReady when it cannot.
    """
    pairs = [f"{guest}={here.resolve()}" for guest, here in folders.items()]

    def make(folder: Path) -> None:
        words = [*python, "-B", str(SCRIPT), str(folder), path, ",".join(modules), *pairs]
        run_tool(words, f"the byte code of {name}", env={"PATH": GUEST_PATH})

    words = [*python, path, *modules, *folders]
    key = fingerprint([SCRIPT], key, python_identity(Path(python[0])), *words)
    return {f"{MOUNT}/{name}": build_once(f"byte-code-{name}", key, make)}
