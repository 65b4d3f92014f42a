"""kwik, QUIC in Java, with its one controller, NewReno, from Maven Central.

It sends datagrams of 1252 bytes, does not pace, and measures round-trip times in whole
milliseconds. Its receiver acknowledges every second packet.

In congestion avoidance its window can stop growing up to the next loss. It grows only where an ACK
finds at most 3 bytes of it unused (``NewRenoCongestionController.java:64`` of 0.10.8), but the
sender leaves a rest that holds no packet with a frame of a stream, which takes 20 bytes at least
(``StreamOutputStreamImpl.java:39``). Its share beside another flow depends on that.

Its flow stops for good where the sending thread overtakes the writing one between the two lines
that queue a request and count it (``StreamOutputStreamImpl.java:120``). On the guest's one
processor a thread that is woken does just that, unless the scheduling policy is batch.

kwik is under the LGPL 3, its TLS (agent15) too.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.build import fingerprint, run_tool
from qbkit.stacks.toolchains.jvm import JVM_FLAGS, JavaStack
from qbkit.stacks.toolchains.maven import listed_jars
from qbkit.stacks.toolchains.processor import SAME_LIBRARY_FOLDERS

SOURCES = Path(__file__).parent / "drivers/kwik"
JARS = listed_jars(SOURCES / "jars.txt")
"""kwik first, then what it depends on."""
JAVA = 17
"""The oldest Java that the driver is written for."""
JDK_MOUNT = "/run/qb/stacks/kwik-jdk"
BATCH = ("/usr/bin/chrt", "--batch", "0")
FLAGS = (
    *JVM_FLAGS,
    "-Dtech.kwik.core.no-security-warnings=true",  # that nobody verifies the certificate
)


class Kwik(JavaStack):
    """Our small Java driver of kwik."""

    name = "kwik"
    source = "Maven artifact tech.kwik:kwik; LGPL 3"
    controller_names = ("newreno",)
    sources = SOURCES
    flags = FLAGS
    certificate = "browser-"
    tools: ClassVar[dict[str, str]] = {
        "javac": f"a JDK of Java {JAVA} or newer",
        BATCH[0]: "util-linux",
    }
    reports = (*JavaStack.reports, "latest_rtt_ms", "lost_packets")

    def version(self) -> str:
        """Version of kwik, and of our driver."""
        return f"{JARS[0].version}, driver {self._key()}"

    def program(self) -> list[str]:
        """The main class, in this machine's Java."""
        files = [self._program(), *(jar.file for jar in JARS)]
        path = ":".join(f"{self._mount()}/{file}" for file in files)
        return [*BATCH, f"{JDK_MOUNT}/bin/java", *self.flags, "-cp", path, "flow.Flow"]

    def mounts(self) -> dict[str, Path]:
        """The driver with its jars, and the JDK, wherever it is."""
        return {**super().mounts(), JDK_MOUNT: _jdk()}

    def env(self) -> dict[str, str]:
        """Where Java loads libraries from; its random numbers are from the guest's kernel."""
        return SAME_LIBRARY_FOLDERS

    def _key(self) -> str:
        """Over the driver, the jars and how they run, and the JDK (as far as known)."""
        files = [*self._files(), self.sources / "jars.txt"]
        return fingerprint(files, *BATCH, *self.flags, _java())

    def _compile(self, folder: Path) -> None:
        for jar in JARS:
            shutil.copy2(jar.fetch(), folder)
        target = str(folder / self._program())
        flags = ["--release", str(JAVA), "-cp", f"{folder}/*", "-d", target]
        run_tool(["javac", *flags, *self._files()], self.name)


def _jdk() -> Path:
    """Folder of the JDK whose compiler is on the search path."""
    compiler = shutil.which("javac") or "/usr/bin/javac"
    return Path(compiler).resolve().parents[1]


def _java() -> str:
    """What the JDK says it is; empty where there is none."""
    release = _jdk() / "release"
    return release.read_text() if shutil.which("javac") and release.exists() else ""


register(Kwik())
