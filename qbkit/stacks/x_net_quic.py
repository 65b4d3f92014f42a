"""golang.org/x/net/quic, the QUIC of Go's own extended library, with its one controller, Reno.

Its API is not stable, and HTTP/3 on top of it is not public yet. It sends datagrams of 1200 bytes,
looks for no larger ones, and acknowledges every tenth packet after the first hundred.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.quic_go import FLAGS, run_go
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains import go_runtime
from qbkit.stacks.toolchains.build import fingerprint, key_by_compiler, run_tool
from qbkit.stacks.toolchains.compiled import CompiledStack

SOURCES = Path(__file__).parent / "drivers/x-net-quic"
MODULE = "golang.org/x/net"


class XNetQuic(CompiledStack):
    """Our small Go driver of x/net/quic."""

    name: ClassVar[str] = "x-net-quic"
    source: ClassVar[str] = f"Go module {MODULE}, its package quic; BSD licence"
    tools: ClassVar[dict[str, str]] = {"go": "Go 1.26 or newer"}
    most_window_bytes: ClassVar[int] = 32 << 20
    reports: ClassVar[tuple[str, ...]] = (
        "cwnd_bytes",
        "bytes_in_flight",
        "ssthresh_bytes",
        "srtt_ms",
        "latest_rtt_ms",
        "min_rtt_ms",
        "lost_packets",
    )
    options: ClassVar[dict[str, str]] = {"qlog": "write a full qlog"}

    def controllers(self) -> tuple[str, ...]:
        """The NewReno of RFC 9002."""
        return ("reno",)

    def module_folder(self) -> Path:
        """The driver's Go module, with the version of x/net in its go.mod."""
        return SOURCES

    def version(self) -> str:
        """Version of the module, and of our driver."""
        words = (self.module_folder() / "go.mod").read_text().split()
        return f"{words[words.index(MODULE) + 1].removeprefix('v')}, driver {self._key()}"

    def env(self) -> dict[str, str]:
        """Preemption by signals costs system calls, and the guest has one processor anyway."""
        return {"GODEBUG": "asyncpreemptoff=1"}

    def _key(self) -> str:
        """Over the driver, the changes to the runtime, and the compiler (as far as known)."""
        module = self.module_folder()
        sources = [*module.glob("*.go"), module / "go.mod", module / "go.sum"]
        ours = (*FLAGS, go_runtime.fingerprint())
        return key_by_compiler(
            self.name, "go", _compiler(), lambda words: fingerprint(sources, *ours, words)
        )

    def _compile(self, folder: Path) -> None:
        module = self.module_folder()
        root = Path(run_go(["env", "GOROOT"], self.name, module).strip())
        flags = [*FLAGS, "-o", str(folder / self._program())]
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            overlay = go_runtime.overlay(root, Path(scratch))
            run_go(["build", *flags, *overlay, "."], self.name, module)


@cache
def _compiler() -> str:
    return run_tool(["go", "version"], XNetQuic.name) if shutil.which("go") else ""


register(XNetQuic())
