"""lsquic, LiteSpeed's QUIC, with its CUBIC, its BBRv1 and its choice between them, on BoringSSL.

lsquic is in no package registry by itself. The crate bun_lsquic_sys carries its C files, the crate
bun_boringssl_sys those of BoringSSL; both are a third party's copies for the JavaScript runtime
Bun, and their Rust is not used. A driver of our own takes the place of perf_client, which is not
among those files.

Compared with the tag v4.6.2 of April 2026, 17 lines in four files of liblsquic differ, none of them
in a controller, the pacer or loss detection: HTTP/3 without a server name, and a shortcut where no
stream has a priority. Upstream's newest tag was v4.9.3 in August 2026.

lsquic is under the MIT licence, BoringSSL under the Apache licence 2.0. `qbkit.stacks.external`
runs the programs of a user's own build of lsquic.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import fingerprint, run_tool
from qbkit.stacks.toolchains.c_program import FLAGS, CStack
from qbkit.stacks.toolchains.source_packages import CrateSources

VERSION = "4.6.2"
"""As in ``lsquic.h`` of the crate; the build checks it."""
LSQUIC = CrateSources(
    "bun_lsquic_sys", "0.1.12", "1eb58e34e29b8cdcaae768a69eedcdaa0a88309b35b6c314a769ff2326fb3dce"
)
BORINGSSL = CrateSources(
    "bun_boringssl_sys", "0.2.0", "00df9d4c0fcf09dbbead06bb2eb3740fa77d11dc593c1edd418806cb439a651a"
)
MISSING_PARTS = ("crypto/hrss/hrss.cc",)
"""Files of BoringSSL that call others which the crate leaves out; TLS does not use them."""
OTHER_FILES = ("lsqpack/lsqpack.c", "lsqpack/deps/xxhash/xxhash.c", "lshpack/lshpack.c")
HEADERS = (".", "lsquic/include", "lsquic/liblsquic", "lshpack", "lsqpack", "lshpack/deps/xxhash")
LSQUIC_FLAGS = (
    "-DHAVE_BORINGSSL=1",
    "-DLSQUIC_CONN_STATS=1",
    "-DLSQUIC_DEBUG_NEXT_ADV_TICK=0",
    "-DLSQUIC_QIR=0",
    "-DLSQUIC_WEBTRANSPORT_SERVER_SUPPORT=0",
    '-DXXH_HEADER_NAME="xxhash.h"',
    "-DLS_QPACK_USE_LARGE_TABLES=1",
    "-DLS_HPACK_BSS_LARGE_TABLES=1",
    '-DLSQPACK_ENC_LOGGER_HEADER="lsquic_qpack_enc_logger.h"',
    '-DLSQPACK_DEC_LOGGER_HEADER="lsquic_qpack_dec_logger.h"',
)
"""As in the crate's build.rs, but with statistics."""
BORINGSSL_FLAGS = (
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-DBORINGSSL_IMPLEMENTATION",
)


class Lsquic(CStack):
    """Our small C driver of lsquic."""

    name = "lsquic"
    serves = True
    number = VERSION
    source = (
        "C sources in the crates bun_lsquic_sys and bun_boringssl_sys, a third party's copies; "
        "MIT and Apache 2.0 licences"
    )
    controller_names = ("cubic", "bbr", "adaptive")
    """``adaptive``, its default, is CUBIC up to an RTT of 1.5 ms."""
    certificate = "browser-"
    tools: ClassVar[dict[str, str]] = {"g++": "g++"}
    links = ("-lstdc++", "-lm")
    minutes = 3
    reports = (
        "cwnd_bytes",
        "srtt_ms",
        "min_rtt_ms",
        "delivery_rate_mbps",
        "lost_packets",
    )
    reads_slowly = offers_window = True
    options: ClassVar[dict[str, str]] = {
        "pmtud": "false: do not look for packets larger than the first ones",
        "clock_granularity_us": "resolution of the clock for the pacer, 1 to 1000000; usually 1000",
    }

    def sources_at_hand(self) -> list[Path]:
        """lsquic alone."""
        return [folder / "csrc/lsquic" for folder in LSQUIC.fetched()]

    def library_key(self) -> str:
        """Over the two crates and what is compiled of them, and how."""
        words = [*FLAGS, *LSQUIC_FLAGS, *BORINGSSL_FLAGS, *HEADERS, *OTHER_FILES, *MISSING_PARTS]
        return fingerprint([], LSQUIC.sha256, BORINGSSL.sha256, *words)

    def include(self) -> list[Path]:
        """Folders of lsquic's and BoringSSL's headers."""
        return [*(_lsquic() / name for name in HEADERS), _boringssl() / "include"]

    def compile_library(self, target: Path) -> None:
        """Compile lsquic and BoringSSL to one object file."""
        _check_version(_lsquic() / "lsquic/include/lsquic.h")
        top, shared = _boringssl(), [*FLAGS, "-w", "-r", "-o"]
        include = [f"-I{path}" for path in self.include()]
        files = [_lsquic() / "lsquic/liblsquic" / name for name in _listed(LSQUIC, "c")]
        files = [*filter(Path.exists, files), *(_lsquic() / name for name in OTHER_FILES)]
        parts = [top / name for name in _listed(BORINGSSL, "cc|c|S") if name not in MISSING_PARTS]
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            ours, theirs = f"{scratch}/lsquic.o", f"{scratch}/boringssl.o"
            run_tool(["gcc", *shared, ours, *LSQUIC_FLAGS, *include, *files], self.name)
            flags = [*BORINGSSL_FLAGS, f"-I{top / 'include'}"]
            run_tool(["g++", *shared, theirs, *flags, *parts], self.name)
            run_tool(["gcc", "-nostdlib", "-r", "-o", target, ours, theirs], self.name)


def _lsquic() -> Path:
    """The folder of lsquic's sources, and of two libraries that it needs."""
    return LSQUIC.fetch() / "csrc"


def _boringssl() -> Path:
    return BORINGSSL.fetch() / "csrc/boringssl"


def _listed(crate: CrateSources, suffixes: str) -> list[str]:
    """The C files that the build script of a crate names."""
    script = (crate.fetch() / "build.rs").read_text()
    return sorted(set(re.findall(rf'"([\w/.-]+\.(?:{suffixes}))"', script)))


def _check_version(header: Path) -> None:
    numbers = re.findall(r"#define LSQUIC_(?:MAJOR|MINOR|PATCH)_VERSION (\d+)", header.read_text())
    if (found := ".".join(numbers)) != VERSION:
        raise StackNotReady(f"{LSQUIC.file} holds another lsquic: {found}")


register(Lsquic())
