"""picoquic, Private Octopus' QUIC, with all its controllers, on picotls and OpenSSL's libcrypto.

picoquic is in no package registry by itself. The source distribution of the Python package aiopquic
carries all its C files, and those of picotls; nothing else of that package is used, nor its patches
of picoquic. picoquic has no tags of releases; the number is the one in its header. A driver of our
own takes the place of picoquicdemo, which cannot end a flow after a given time, and which reports
nothing while it runs.

picoquic, picotls and aiopquic are under the MIT licence. The program contains this machine's
libcrypto, which is under the Apache licence 2.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import fingerprint, run_tool
from qbkit.stacks.toolchains.c_program import FLAGS, CStack
from qbkit.stacks.toolchains.source_packages import PythonSources

VERSION = "1.1.53.0"
"""As in ``picoquic.h`` of the source distribution; the build checks it."""
AIOPQUIC = PythonSources(
    "aiopquic", "0.6.1", "72579146e0f22859a5a7c197246604fef460b9e1b578a2910156dff7679efd29"
)
FILES = """
    picoquic/picoquic/*.c picoquic/loglib/*.c
    picotls/lib/{asn1,cifra,ffx,hpke,minicrypto-pem,openssl,pembase64,picotls,uecc}.c
    picotls/lib/cifra/{aes128,aes256,chacha20,random,x25519}.c picotls/deps/micro-ecc/uECC.c
    picotls/deps/cifra/src/{aes,blockwise,chacha20,chash,curve25519,drbg,gcm,gf128,hmac,modes}.c
    picotls/deps/cifra/src/{poly1305,sha256,sha512}.c
"""
"""What the two libraries consist of, as in their CMakeLists.txt."""
HEADERS = """
    picoquic/picoquic picoquic/loglib picotls/include picotls/deps/micro-ecc picotls/deps/cifra/src
    picotls/deps/cifra/src/ext
"""


class Picoquic(CStack):
    """Our small C driver of picoquic."""

    name = "picoquic"
    serves = True
    resumes = True
    number = VERSION
    source = "C sources in the PyPI package aiopquic, a third party's copy; MIT licence"
    controller_names = (
        *("cubic", "newreno", "bbr", "bbr1"),
        *("prague", "c4", "dcubic", "fast"),
    )
    """``bbr`` is BBRv3, ``dcubic`` CUBIC with a reaction to delay."""
    certificate = "browser-"
    tools: ClassVar[dict[str, str]] = {"openssl/evp.h": "libssl-dev", "libcrypto.a": "libssl-dev"}
    # Without fusion, an AES that is unfinished (CMakeLists.txt of picoquic says why).
    defines = (
        "-DNDEBUG",
        "-DDISABLE_DEBUG_PRINTF",
        "-DPTLS_WITHOUT_FUSION",
    )
    links = ("-l:libcrypto.a", "-lm", "-ldl")
    most_window_bytes = 1 << 30
    reports = (
        *CStack.reports,
        *("latest_rtt_ms", "min_rtt_ms", "pacing_rate_mbps", "delivery_rate_mbps"),
        *("lost_packets", "spurious_losses"),
    )
    options: ClassVar[dict[str, str]] = {
        "ack_frequency": "false: the sender does not ask its receiver for fewer ACKs",
        "ecn": "false: no ECN marks; by default ECT(1) for prague and c4, ECT(0) for the others",
        "pmtud": "false: do not look for packets larger than the first ones",
        "qlog": "write a full qlog, of the version draft-00 that qvis reads",
    }

    def package(self) -> PythonSources:
        """The source distribution with the sources."""
        return AIOPQUIC

    def sources_at_hand(self) -> list[Path]:
        """picoquic alone."""
        return [folder / "third_party/picoquic" for folder in self.package().fetched()]

    def library_key(self) -> str:
        """Over the source distribution and what is compiled of it, and how."""
        return fingerprint([], self.package().sha256, FILES, HEADERS, *FLAGS, *self.defines)

    def include(self) -> list[Path]:
        """Folders of picoquic's and picotls' headers."""
        return [self._top() / name for name in HEADERS.split()]

    def compile_library(self, target: Path) -> None:
        """Compile picoquic and picotls to one object file."""
        top = self._top()
        if f'"{self.number}"' not in (top / "picoquic/picoquic/picoquic.h").read_text():
            raise StackNotReady(f"{self.package().file} does not hold picoquic {self.number}")
        files = [file for word in FILES.split() for file in _expand(top, word)]
        flags = [*FLAGS, *self.defines, "-w", *(f"-I{path}" for path in self.include())]
        run_tool(["gcc", *flags, "-r", "-o", target, *files], self.name)

    def _top(self) -> Path:
        """The folder of picoquic's and picotls' sources."""
        return self.package().fetch() / "third_party"


def _expand(top: Path, word: str) -> list[Path]:
    """The files of a word with one ``*`` or one choice in braces."""
    before, brace, rest = word.partition("{")
    if not brace:
        return sorted(top.glob(word))
    names, _, after = rest.partition("}")
    return [top / f"{before}{name}{after}" for name in names.split(",")]


register(Picoquic())
