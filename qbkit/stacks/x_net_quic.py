"""golang.org/x/net/quic, the QUIC of Go's own extended library, with its one controller, Reno.

Its API is not stable, and HTTP/3 on top of it is not public yet. It sends datagrams of 1200 bytes,
looks for no larger ones, and acknowledges every tenth packet after the first hundred.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from qbkit.stacks import go_runtime
from qbkit.stacks.build import fingerprint, run_tool
from qbkit.stacks.compiled import CompiledStack
from qbkit.stacks.registry import register

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

    def version(self) -> str:
        """Version of the module, and of our driver."""
        words = (SOURCES / "go.mod").read_text().split()
        return f"{words[words.index(MODULE) + 1].removeprefix('v')}, driver {self._key()}"

    def env(self) -> dict[str, str]:
        """Preemption by signals costs system calls, and the guest has one processor anyway."""
        return {"GODEBUG": "asyncpreemptoff=1"}

    def _key(self) -> str:
        """Over the driver, the changes to the runtime, and the compiler (as far as known)."""
        sources = [*SOURCES.glob("*.go"), SOURCES / "go.mod", SOURCES / "go.sum"]
        return fingerprint([*sources, Path(go_runtime.__file__)], _compiler())

    def _compile(self, folder: Path) -> None:
        env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
        flags = ["-trimpath", "-ldflags=-s -w", "-o", str(folder / self._program())]
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            overlay = go_runtime.overlay(_go_root(env), Path(scratch))
            run_tool(["go", "build", *flags, *overlay, "."], self.name, env, SOURCES)


@cache
def _compiler() -> str:
    return run_tool(["go", "version"], XNetQuic.name) if shutil.which("go") else ""


def _go_root(env: Mapping[str, str]) -> Path:
    return Path(run_tool(["go", "env", "GOROOT"], XNetQuic.name, env, SOURCES).strip())


register(XNetQuic())
