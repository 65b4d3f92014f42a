"""quic-go, with its Reno and its CUBIC, from its Go module.

quic-go compiles both controllers in but always chooses Reno (``true, // use Reno``); no setting
reaches its CUBIC. The build therefore compiles a copy of the module in which that one Boolean, in
its two places, reads an environment variable. Nothing else is changed; ``reno`` runs as released.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.spec.app import APPS
from qbkit.stacks.base import Say
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains import go_runtime
from qbkit.stacks.toolchains.golang import GoStack, go_compiler, run_go

SOURCES = Path(__file__).parent / "drivers/quic-go"
MODULE = "github.com/quic-go/quic-go"
MOUNT = "/run/qb/stacks/quic-go"
CHOICE = "internal/ackhandler/sent_packet_handler.go"
HARD_CODED = "true, // use Reno"
SLOWER = "quic-go takes more processor time: our changes do not fit the runtime of this Go"
BY_ENVIRONMENT = 'os.Getenv("QUIC_GO_CONTROLLER") != "cubic",'


class QuicGo(GoStack):
    """Our small Go driver of quic-go."""

    name = "quic-go"
    source = f"Go module {MODULE}; CUBIC by one changed Boolean"
    controller_names = ("cubic", "reno")
    module = MODULE
    sources = SOURCES
    changes = (CHOICE, HARD_CODED, BY_ENVIRONMENT)
    ip6 = True
    serves = resumes = True
    apps = APPS
    reads_slowly = offers_window = True
    options: ClassVar[dict[str, str]] = {"qlog": "write a full qlog"}

    def build(self, say: Say = lambda _: None) -> None:
        """Download the modules and compile; about a minute the first time."""
        if not shutil.which("go"):
            raise StackNotReady(f"go is missing to build {self.name}; install Go 1.26 or newer")
        super().build(say)

    def _program(self) -> str:
        return "quic-go"

    def _compile(self, folder: Path) -> None:
        module = self.module_folder()
        run_go(["mod", "download"], self.name, module)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            copy = Path(scratch) / "module"
            released = run_go(["list", "-m", "-f", "{{.Dir}}", MODULE], self.name, module).strip()
            shutil.copytree(released, copy, copy_function=shutil.copyfile)
            _make_choosable(copy / CHOICE)
            modfile = Path(scratch) / "go.mod"
            modfile.write_text((module / "go.mod").read_text() + f"\nreplace {MODULE} => {copy}\n")
            shutil.copyfile(module / "go.sum", modfile.with_suffix(".sum"))
            root = Path(run_go(["env", "GOROOT"], self.name, module).strip())
            flags = [*self.flags, f"-modfile={modfile}"]
            overlay = go_runtime.overlay(root, Path(scratch))
            if not overlay:
                warnings.warn(f"{SLOWER} ({go_compiler().strip()})", stacklevel=2)
            words = ["build", *flags, *overlay, "-o", str(folder / self._program()), "."]
            run_go(words, self.name, module)


def _make_choosable(file: Path) -> None:
    """Let an environment variable choose the controller."""
    text = file.read_text()
    if text.count(HARD_CODED) not in (1, 2) or text.count("import (") != 1:
        raise StackNotReady(
            f"this version of quic-go does not choose Reno where 0.37 to 0.65 do ({CHOICE}); "
            "build with the version in go.mod"
        )
    text = text.replace(HARD_CODED, BY_ENVIRONMENT).replace("import (", 'import (\n\t"os"', 1)
    file.chmod(0o644)
    file.write_text(text)


register(QuicGo())
