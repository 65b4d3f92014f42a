"""The name of a run: a hash over everything that can change its result.

The hash covers the spec; the commands, settings and ``tc`` lines made from it; the kernel; the
versions of the stacks; the code of this package that executes a run and builds its dataset; and the
contents of this machine's programs that take part, with the libraries they load. It covers neither
paths of this machine nor the times of files, so machines with the same set-up agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbkit.errors import StackNotReady
from qbkit.settings import cache_folder
from qbkit.spec import Experiment
from qbkit.spec.web import WebLoad
from qbkit.stacks import Stack
from qbkit.stacks.build import GUEST_PATH, fingerprint, program_fingerprint
from qbkit.testbed import engines
from qbkit.testbed.plan import plan_data

PACKAGE = Path(__file__).parents[1]
CODE = (
    *("testbed/*.py", "testbed/guest/*.py", "testbed/native/*.c", "stacks/certificate*.py"),
    *("traces/run/*.py", "spec/base.py", "spec/experiment.py", "spec/flow.py", "spec/loss.py"),
)
"""Code that executes a run and builds its dataset."""
TOOLS = ("python3", "ip", "tc", "mnexec")
"""Programs of this machine that run the agent, or with which it configures the network."""
MININET = Path("/usr/lib/python3/dist-packages/mininet")
"""The package with which the agent builds the network."""
A_PATH = re.compile(r"/[\w@%+.~/-]+")


class Identity:
    """Names runs of one engine.

    It looks up versions, programs and code once, so that naming a thousand runs is fast.
    """

    def __init__(self, engine: engines.Engine) -> None:
        self.engine = engine
        self._common = {
            "engine": engine.name,
            "kernel": engine.version(),
            "mininet": fingerprint(MININET.glob("*.py")),
            "code": fingerprint(path for pattern in CODE for path in PACKAGE.glob(pattern)),
            "tools": [
                program_fingerprint(Path(path))
                for tool in TOOLS
                if (path := shutil.which(tool, path=GUEST_PATH))
            ],
        }
        self._stacks: dict[str, tuple[str, dict[str, Path]]] = {}
        self._files: dict[str, str] = {}

    def of(self, experiment: Experiment, drivers: list[Stack]) -> dict[str, Any]:
        """The attributes that identify a run; raises StackNotReady for a missing driver."""
        data = plan_data(experiment, drivers, self.engine.name, engines.CAPTURE)
        return self.of_plan(experiment, drivers, data)

    def of_plan(
        self, spec: Experiment | WebLoad, drivers: Sequence[Stack], data: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The same for the data of a plan that was made from ``spec``."""
        known = {stack.name: self._known(stack) for stack in drivers}
        versions = {name: text for name, (text, _) in known.items()}
        mounts = {guest: host for _, shown in known.values() for guest, host in shown.items()}
        parts = {
            **self._common,
            "spec": spec.hash,
            "stacks": versions,
            "plan": A_PATH.sub(lambda path: self._content(path[0], mounts), json.dumps(data)),
        }
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        return {
            "hash": digest,
            "spec_hash": spec.hash,
            "engine": self.engine.name,
            "seed": spec.seed,
            "stack_versions": json.dumps(versions, sort_keys=True),
            "qbkit_version": version("qbkit"),
        }

    def _known(self, stack: Stack) -> tuple[str, dict[str, Path]]:
        """The version of a stack, and its folders that the guest sees."""
        if stack.name not in self._stacks:
            status = stack.status()
            if not status.ready:
                raise StackNotReady(f"{stack.name} is not ready: {status.reason}")
            self._stacks[stack.name] = (stack.version(), stack.mounts())
        return self._stacks[stack.name]

    def _content(self, path: str, mounts: dict[str, Path]) -> str:
        """The fingerprint of the program at a path of the guest, or the path where there is none.

        The path of a program that qbkit built, and its version, contain the fingerprint already.
        """
        if path not in self._files:
            file = _on_this_machine(path, mounts)
            ours = file.is_relative_to(cache_folder())
            known = not ours and os.access(file, os.R_OK) and file.is_file()
            self._files[path] = program_fingerprint(file) if known else path
        return self._files[path]


def _on_this_machine(path: str, mounts: dict[str, Path]) -> Path:
    """The file that the guest sees at a path: in a folder mounted there, or at the same path."""
    for guest, host in mounts.items():
        if Path(path).is_relative_to(guest):
            return host / Path(path).relative_to(guest)
    return Path(path)
