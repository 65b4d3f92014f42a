"""The base of stacks whose programs are in no package registry: qbkit finds them, not builds them.

Their sample programs neither print ``ready`` nor report what they measure. Small scripts start
them, wait until the server's port is bound, and end the client when its time is over. There is no
telemetry, and the number of bytes that arrived is unknown; the packets show the rest.
"""

from __future__ import annotations

import inspect
import os
import shutil
from pathlib import Path
from typing import ClassVar

from qbkit.errors import StackNotReady
from qbkit.stacks.base import CERTIFICATE_MOUNT, Say, Stack, Status
from qbkit.stacks.toolchains.build import fingerprint, program_fingerprint
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS

DRIVERS = Path(__file__).parents[1] / "drivers"
SERVER_MOUNT, CLIENT_MOUNT = "/run/qb/stacks/server", "/run/qb/stacks/external"
PYTHON = ["/usr/bin/python3", "-S", "-B"]
CERTIFICATE = f"{CERTIFICATE_MOUNT}/browser-cert.pem"
KEY = f"{CERTIFICATE_MOUNT}/browser-key.pem"
"""RSA, because BoringSSL's clients reject Ed25519."""
WINDOW_BYTES = 128 << 20
ENDLESS_BYTES = 10**12
"""What a flow with a duration asks for: more than it can get."""


SCRIPTS = {SERVER_MOUNT: DRIVERS / "server", CLIENT_MOUNT: DRIVERS / "external"}
"""The scripts that start programs, where the guest sees them."""


def script_files() -> list[Path]:
    """The scripts that start programs."""
    return sorted(file for folder in SCRIPTS.values() for file in folder.glob("*.py"))


def listen_argv(port: str, command: list[str]) -> list[str]:
    """The command that runs a server and prints ``ready`` once its port is bound."""
    return [*PYTHON, f"{SERVER_MOUNT}/serve.py", port, "--", *command]


def connect_argv(command: list[str], duration_s: float | None) -> list[str]:
    """The command that runs a client and ends it after the duration, if there is one."""
    limit = [] if duration_s is None else ["--duration-s", f"{duration_s:g}"]
    return [*PYTHON, f"{CLIENT_MOUNT}/client.py", *limit, "--", *command]


class External(Stack):
    """Sample programs of a stack, found by the user's setting or on PATH."""

    reports: ClassVar[tuple[str, ...]] = ()
    setting: ClassVar[str]
    """Environment variable with the folder of the programs, or the path of one of them."""
    programs: ClassVar[tuple[str, ...]]
    """Names of the programs."""
    on_path: ClassVar[bool] = True
    """Whether to search PATH, which may hold another program called ``cli``."""
    how: ClassVar[str]
    """What to build, and from where."""
    names: ClassVar[dict[str, str]]
    """Controllers, and their names in the programs' options."""

    def controllers(self) -> tuple[str, ...]:
        """The controllers that the programs' option accepts."""
        return tuple(self.names)

    def version(self) -> str:
        """Fingerprints of the programs, which do not report a version, and of the driver."""
        own = Path(inspect.getfile(type(self)))
        driver = fingerprint([*script_files(), Path(__file__), own])
        return f"{self._fingerprint()}, driver {driver}"

    def status(self) -> Status:
        """Ready when all programs exist."""
        if self._folder():
            return Status(True)
        programs = " and ".join(self.programs)
        return Status(False, f"{self.how}, then set {self.setting} to the folder of {programs}")

    def build(self, say: Say = lambda _: None) -> None:
        """Do nothing; raises StackNotReady if a program is missing."""
        if not self._folder():
            raise StackNotReady(f"{self.name} is in no package registry; {self.status().reason}")

    def program(self) -> list[str]:
        """The first of its programs."""
        return [self.at(self.programs[0])]

    def at(self, program: str) -> str:
        """Path of a program in the guest."""
        return f"/run/qb/stacks/{self.name}/{program}"

    def mounts(self) -> dict[str, Path]:
        """The folder of the programs, and the scripts that start them."""
        folder = self._folder()
        if not folder:
            raise StackNotReady(f"{self.name} is not ready; {self.status().reason}", refused=True)
        return {
            f"/run/qb/stacks/{self.name}": folder,
            **SCRIPTS,
        }

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from OpenSSL and the like, so that runs repeat."""
        return NO_RANDOM_INSTRUCTIONS

    def listen(self, address: str, command: list[str]) -> list[str]:
        """The command that runs a server and prints ``ready`` for it."""
        return listen_argv(address.rpartition(":")[2], command)

    def connect(self, command: list[str], duration_s: float | None) -> list[str]:
        """The command that runs a client and ends it after the duration, if there is one."""
        return connect_argv(command, duration_s)

    def _folder(self) -> Path | None:
        """The folder that has all programs, or None."""
        chosen = os.environ.get(self.setting)
        if chosen:
            path = Path(chosen).expanduser().absolute()
            folders = [path if path.is_dir() else path.parent]
        elif self.on_path:
            folders = [Path(folder) for folder in os.get_exec_path()]
        else:
            folders = []
        for folder in folders:
            if all(shutil.which(folder / program) for program in self.programs):
                return folder
        return None

    def _fingerprint(self) -> str:
        folder = self._folder()
        if not folder:
            return "not found"
        return fingerprint([], *(program_fingerprint(folder / name) for name in self.programs))
