"""OpenSSL's own QUIC, with its one controller, NewReno, from the C sources in a crate.

The crate openssl-src carries the sources of an OpenSSL release, unchanged, for Rust programs that
link it; its Rust is not used. The build leaves out what TLS 1.3 does not need. OpenSSL does not
pace, sends datagrams of 1200 bytes, and buffers 6 MiB of a stream at most. Its receive window
begins with 512 KiB and grows with the rate.

OpenSSL is under the Apache licence 2.0.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import built_folder, fingerprint, run_tool
from qbkit.stacks.toolchains.c_program import CStack
from qbkit.stacks.toolchains.source_packages import CrateSources

VERSION = "4.0.3"
OPENSSL = CrateSources(
    "openssl-src",
    f"400.0.2+{VERSION}",
    "d2093956673b8dbda85c87fa4fb78e70698ce6c5978a2837d1613f661d3bef76",
)
UNUSED = """
    apps aria bf blake2 camellia cast cmp cms comp ct des docs dsa dso dtls gost idea legacy md4
    mdc2 ml-dsa module ocsp rc2 rc4 rmd160 scrypt seed shared slh-dsa sm2 sm3 sm4 srp tests ts
    ui-console whirlpool
"""
"""Parts that the build leaves out (``./Configure no-...``)."""
TARGET = "linux-x86_64"
LIBRARIES = ("libssl.a", "libcrypto.a")


class OpenSsl(CStack):
    """Our small C driver of OpenSSL."""

    name = "openssl"
    serves = True
    number = VERSION
    source = "C sources in the crate openssl-src; Apache 2.0 licence"
    controller_names = ("newreno",)
    tools: ClassVar[dict[str, str]] = {"make": "make", "perl": "perl"}
    # As the library is compiled: without it, its internal lists have more fields.
    defines = ("-DNDEBUG",)
    links = ("-ldl",)
    minutes = 3
    most_window_bytes = 6 << 20
    options: ClassVar[dict[str, str]] = {"qlog": "write a full qlog"}
    reports = (*CStack.reports, "latest_rtt_ms", "min_rtt_ms")

    def crate(self) -> CrateSources:
        """The crate with the sources."""
        return OPENSSL

    def sources_at_hand(self) -> list[Path]:
        """Its QUIC alone."""
        return [folder / "openssl/ssl/quic" for folder in self.crate().fetched()]

    def library_key(self) -> str:
        """Over the crate and what is compiled of it."""
        return fingerprint([], self.crate().sha256, TARGET, UNUSED)

    def include(self) -> list[Path]:
        """Folders of the headers: those that the build generated, and the sources'."""
        built = built_folder(self.library_name(), self.library_key()) / "include"
        top = self._top()
        return [built, top / "include", top, top / "ssl/quic"]

    def compile_library(self, target: Path) -> None:
        """Configure and make the two libraries; keep one object file, and the headers."""
        options = [f"no-{word}" for word in UNUSED.split()]
        options.append("enable-unstable-qlog")
        with tempfile.TemporaryDirectory(dir=target.parent) as text:
            scratch = Path(text)
            run_tool(["perl", self._top() / "Configure", TARGET, *options], self.name, cwd=scratch)
            run_tool(["make", f"-j{os.cpu_count()}", "build_libs"], self.name, cwd=scratch)
            whole = ["-Wl,--whole-archive", *(str(scratch / name) for name in LIBRARIES)]
            run_tool(["gcc", "-nostdlib", "-r", "-o", target, *whole], self.name)
            shutil.copytree(scratch / "include", target.parent / "include")

    def _top(self) -> Path:
        """The folder of OpenSSL's sources."""
        return self.crate().fetch() / "openssl"


register(OpenSsl())
