"""The HTTP client of OpenJDK, which speaks HTTP/3 since Java 26, from a Debian package.

Our driver, a small Java program, uploads by it to quic-go's HTTP/3 server. A property of the JDK,
``jdk.internal.httpclient.quic.congestionController``, chooses its controller; all else is as users
run it. So its connections end after 30 s in which nothing came.

OpenJDK is under the GPL 2 with the Classpath exception.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.base import CERTIFICATE_MOUNT, Say, Stack, Status, changed
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains import preload
from qbkit.stacks.toolchains.build import fingerprint, run_tool
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.toolchains.jvm import JVM_FLAGS, JavaStack
from qbkit.stacks.toolchains.processor import SAME_LIBRARY_FOLDERS
from qbkit.stacks.web.uploads import CERTIFICATE, ReadingServer, UploadingStack

DRIVERS = Path(__file__).parent / "drivers"
SOURCES = DRIVERS / "jdk"
TABLE = DRIVERS / "kwik/flow/Table.java"
"""kwik's driver writes its tables as this one does."""
HOME = "usr/lib/jvm/java-26-openjdk-amd64"
JAVA = f"{HOME}/bin/java"
DEBIAN = DebianPrograms(
    "openjdk-26",
    "forky",
    ("openjdk-26-jre-headless",),
    (JAVA,),
    folders=(HOME,),
    opened=(f"{HOME}/lib/server/libjvm.so",),
)
COMPILER = ("-m", "jdk.compiler/com.sun.tools.javac.Main")
"""The package has the compiler's module, without the program javac."""
OPENED = ("jdk.internal.net.http", "jdk.internal.net.http.quic")
"""Packages whose fields the driver reads."""
FLAGS = (*JVM_FLAGS, *(f"--add-opens=java.net.http/{package}=ALL-UNNAMED" for package in OPENED))
AUTHORITY = f"{CERTIFICATE_MOUNT}/{CERTIFICATE}ca.pem"


class Jdk(JavaStack, UploadingStack):
    """Our small Java driver of java.net.http."""

    name = "jdk"
    source = "package openjdk-26-jre-headless of Debian forky"
    controller_names = ("cubic", "reno")
    sources = SOURCES
    flags = FLAGS
    reports = (*JavaStack.reports, "latest_rtt_ms", "min_rtt_ms")

    def for_app(self) -> Stack:
        """The driver, and the receiver, with what `ABOVE` adds to them."""
        return changed(super().for_app(), _receiver=ReadingServer().for_app())

    def version(self) -> str:
        """Versions of Debian's package, of the driver, its preloaded library, and the receiver."""
        package = DEBIAN.packages[0]
        version = DEBIAN.version(package) if DEBIAN.ready else "not fetched"
        ours = f"driver {self._key()}, {preload.JDK.version()}"
        return f"{version}, {ours}, receiver quic-go {self._receiver.version()}"

    def status(self) -> Status:
        """Ready when the package is unpacked, and driver and receiver are built."""
        receiver = self._receiver.status()
        if not receiver.ready:
            return Status(False, f"its receiver is quic-go: {receiver.reason}")
        return super().status() if DEBIAN.ready else Status(False, self._how())

    def build(self, say: Say = lambda _: None) -> None:
        """Build the receiver, fetch the package, and compile the driver with it."""
        self._receiver.build(say)
        if not DEBIAN.ready:
            DEBIAN.build(say)
        super().build(say)

    def program(self) -> list[str]:
        """The main class, in the Java of the package."""
        path = f"{self._mount()}/{self._program()}"
        return [*DEBIAN.command(JAVA), *self.flags, "-cp", path, "flow.Flow", AUTHORITY]

    def mounts(self) -> dict[str, Path]:
        """The driver, its preloaded library, the JDK with its libraries, and the receiver."""
        ours = {**super().mounts(), **preload.JDK.mounts()}
        return {**ours, DEBIAN.mount: DEBIAN.folder, **self._receiver.mounts()}

    def env(self) -> dict[str, str]:
        """Hide differences between processors, so that runs repeat, and let yields take time."""
        return {
            **self._receiver.env(),
            **super().env(),
            **SAME_LIBRARY_FOLDERS,
            **preload.JDK.env(),
        }

    def _key(self) -> str:
        """Over the driver and how it runs."""
        return fingerprint(self._files(), *self.flags)

    def _compile(self, folder: Path) -> None:
        target = str(folder / self._program())
        java = DEBIAN.command(JAVA, root=DEBIAN.folder)
        run_tool([*java, *COMPILER, "-d", target, *self._files()], self.name)

    def _files(self) -> list[Path]:
        return [*super()._files(), TABLE]


register(Jdk())
