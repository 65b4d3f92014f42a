"""``make wheels``: qbkit and what it needs to run, as wheels, from what is built in the cache."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import licences
import root_archive
from wheel_file import ANY, Wheel

from qbkit import __version__, stacks
from qbkit.cli.notebooks import WHAT
from qbkit.errors import EngineError, StackNotReady
from qbkit.settings import cache_folder
from qbkit.stacks.base import Stack
from qbkit.stacks.toolchains import golang, preload, rust
from qbkit.stacks.toolchains.above import drivers_above
from qbkit.stacks.toolchains.pins import KERNEL, SNAPSHOT, Pin, pin
from qbkit.testbed import guest_root, kernel, native

HERE = Path(__file__).parents[1]
GROUPS = {
    "rust": ("quinn", "noq", "quiche", "quiche-0.7", "s2n-quic", "tquic", "msquic"),
    "go": ("quic-go", "x-net-quic"),
    "c": ("picoquic", "openssl"),
}
SAME = f"qbkit=={__version__}"
DRIVERS = cache_folder() / "drivers"


def main(out: Path) -> None:
    """Build all wheels into an empty folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "-q", "--wheel", "--out-dir", out, HERE], check=True)
    (out / ".gitignore").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        kernel_wheel = _kernel(root_archive.build(Path(scratch)))
    groups = [_stacks(group, names, kernel_wheel) for group, names in GROUPS.items()]
    names = tuple(f"{one.name}=={__version__}" for one in groups)
    meta = Wheel("qbkit-stacks", __version__, "All drivers of stacks.", "MIT", ANY, names)
    for wheel in (kernel_wheel, *groups, meta, _notebooks()):
        path = wheel.write(out)
        print(f"qbkit: {path.stat().st_size / 1e6:5.1f} MB {path}")


def _kernel(root: bytes) -> Wheel:
    """Kernels, the testbed's programs, the root of the agent, and the sources' addresses."""
    summary = "The kernels of qbkit's virtual time, and what a guest needs."
    wheel = Wheel("qbkit-kernel", __version__, summary, "GPL-2.0-only AND MIT", requires=(SAME,))
    for kind in kernel.Kind:
        folder = kernel.require(kind).path.parent
        if not folder.name.endswith(kernel.recipe(kind)):
            raise EngineError(f"{folder} is of other patches; run: qbkit kernel --build")
        wheel.add(folder, f"kernels/{folder.name}")
    for folder in _testbed():
        wheel.add(folder, f"drivers/{folder.name}")
    wheel.add(kernel.SOURCES, "sources/kernel")
    wheel.add(native.SOURCES, "sources/native")
    wheel.files["sources/COPYING"] = Path("/usr/share/common-licenses/GPL-2")
    wheel.files["SOURCES.md"] = _sources().encode()
    wheel.files[guest_root.ARCHIVE] = root
    return wheel


def _testbed() -> Iterator[Path]:
    """Folders of our own small programs."""
    preloaded = (native.getrandom(), native.huge_pages(), native.with_parent())
    made = (native.capture(), native.sections(), *preloaded)
    yield from (path.parent for path in made)
    with tempfile.TemporaryDirectory() as nowhere:  # both first programs, and the one between
        yield from (guest_root.init(None).parent, guest_root.init(Path(nowhere)).parent)
    yield guest_root.enter().parent
    tcp = stacks.get("tcp")
    yield from (*tcp.mounts().values(), *tcp.for_app().mounts().values())
    for library in (preload.EVENT_LOOP, preload.ENVOY, preload.CHROMIUM, preload.JDK):
        yield from library.mounts().values()


def _sources() -> str:
    """Where the sources of what is under the GPL are."""
    linux, debian = pin(KERNEL), guest_root.DEBIAN.pin
    if linux is None or debian is None:
        raise StackNotReady("the sources are not pinned; run: make lock")
    (source,) = linux.files
    lines = [
        "# Sources",
        "",
        f"`kernels/` are Linux of Debian's {source.package} {source.version}, with the patches and "
        "the configuration in `sources/kernel`; `qbkit kernel --build` builds the same bytes.",
        f"Its source: {_address(linux, source.path)} (SHA-256 {source.sha256}).",
        "",
        "`drivers/` are our own programs, MIT; their sources are in `sources/native` and in qbkit.",
        "",
        f"`{guest_root.ARCHIVE}` has files of these packages of Debian {debian.suite}, unchanged. "
        "Their sources are at the same place, under the source package's name; their licences, in "
        "`usr/share/doc/PACKAGE/copyright` of each.",
        "",
        *(f"- {f.package} {f.version}: {_address(debian, f.path)}" for f in debian.files),
    ]
    return "\n".join(lines) + "\n"


def _address(where: Pin, path: str) -> str:
    kind = "-security" if path.startswith("pool/updates/") else ""
    return f"{SNAPSHOT}{kind}/{where.date}/{path}"


def _stacks(group: str, names: Iterable[str], without: Wheel) -> Wheel:
    """The drivers of some stacks that are ready here; StackNotReady for one that is not."""
    summary = f"Drivers of {', '.join(names)} for qbkit, compiled."
    needs = (SAME, f"qbkit-kernel=={__version__}")
    wheel = Wheel(f"qbkit-stacks-{group}", __version__, summary, "MIT", requires=needs)
    found = [stacks.get(name) for name in names]
    for stack in [*found, *(driver for one in found for driver in drivers_above(one))]:
        if not stack.status().ready:
            raise StackNotReady(f"{stack.name} is not ready: {stack.status().reason}")
        for folder in _built(stack):
            if not any(name.startswith(f"drivers/{folder.name}/") for name in without.files):
                wheel.add(folder, f"drivers/{folder.name}")
    compilers = {"rustc": rust._compiler(), "go": golang.go_compiler()}
    wheel.files["compilers.json"] = json.dumps(compilers).encode()
    wheel.files |= licences.files(group, found)
    return wheel


def _built(stack: Stack) -> Iterator[Path]:
    """The folders in the cache that a stack mounts, except byte code, which a machine compiles."""
    for folder in stack.mounts().values():
        if folder.parent == DRIVERS and not re.match(r"byte-code-", folder.name):
            yield folder


def _notebooks() -> Wheel:
    """Notebooks and published data."""
    summary = "The notebooks of qbkit, and the published data that they open."
    wheel = Wheel(
        "qbkit-notebooks", __version__, summary, "MIT", ANY, (f"qbkit[notebooks]=={__version__}",)
    )
    wheel.group = "qbkit.published"
    for name in WHAT:
        wheel.add(HERE / name, name)
    return wheel


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except (EngineError, StackNotReady) as error:
        sys.exit(f"qbkit: {error}")
