"""The name of a run: a hash over what its result depends on.

The hash covers the spec; the measurement version (`qbkit.measurement`); the kernel; the versions of
the stacks, and the contents of the programs of this machine that their commands name, with the
libraries they load; and the versions of the programs that build the network. It covers neither the
code of this package, which the golden runs guard (tests/test_golden.py), nor paths of this machine
nor the times of files, so machines with the same set-up agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbkit import measurement
from qbkit.errors import StackNotReady
from qbkit.settings import is_built
from qbkit.spec import Experiment
from qbkit.spec.web import WebLoad
from qbkit.stacks import Stack
from qbkit.stacks.external.program import Configured
from qbkit.stacks.toolchains.build import GUEST_PATH, program_fingerprint, run_tool
from qbkit.stacks.variants.crafted import Crafted
from qbkit.testbed import engines, guest_root
from qbkit.testbed.plan import kernel_of, plan_data

COMMANDS = {"python3": "--version", "ip": "-V", "tc": "-V"}
"""Programs of this machine that run the agent, or with which it configures the network, and how
each prints its version."""
NUMBER = re.compile(r"\d+(\.\d+)+")
ENDS = ("sender_argv", "receiver_argv")
A_PATH = re.compile(r"/[\w@%+.~/-]+")


class Identity:
    """Names runs of one engine.

    It looks up versions and programs once, so that naming a thousand runs is fast.
    """

    def __init__(self, engine: engines.Engine) -> None:
        self.engine = engine
        self._tools = json.dumps(tool_versions(), sort_keys=True)
        self._common = {
            "engine": engine.name,
            "measurement": measurement.VERSION,
            "tools": self._tools,
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
        kernel = self.engine.version(kernel_of(spec.bottleneck))
        parts = {
            **self._common,
            "kernel": kernel,
            "spec": spec.hash,
            "stacks": versions,
            "site": data.get("site"),
            "programs": self._programs(drivers, data["flows"], mounts),
            **({"attacker": Crafted().version()} if "attacks" in data else {}),
        }
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        return {
            "hash": digest,
            "spec_hash": spec.hash,
            "engine": self.engine.name,
            "kernel_build": kernel,
            "seed": spec.seed,
            "measurement_version": measurement.VERSION,
            "stack_versions": json.dumps(versions, sort_keys=True),
            # Beside the name: the fingerprint of a build covers its crates.
            "transport_versions": json.dumps(
                {stack.name: text for stack in drivers if (text := stack.transport())},
                sort_keys=True,
            ),
            "tool_versions": self._tools,
            "qbkit_version": version("qbkit"),
        }

    def _known(self, stack: Stack) -> tuple[str, dict[str, Path]]:
        """The version of a stack, and its folders that the guest sees."""
        if stack.name not in self._stacks:
            status = stack.status()
            if not status.ready:
                raise StackNotReady(f"{stack.name} is not ready: {status.reason}", refused=True)
            self._stacks[stack.name] = (stack.version(), stack.mounts())
        return self._stacks[stack.name]

    def _programs(
        self,
        drivers: Sequence[Stack],
        flows: Sequence[Mapping[str, Any]],
        mounts: Mapping[str, Path],
    ) -> list[Any]:
        """What runs in each flow: fingerprints of the programs that its commands name.

        A user's own stack also counts with its commands and settings, as no golden run has it.
        """
        found: list[Any] = []
        for stack, flow in zip(drivers, flows, strict=True):
            commands = json.dumps([flow[key] for key in (*ENDS, "env")])
            if _is_own(stack):
                found.append(A_PATH.sub(lambda path: self._content(path[0], mounts), commands))
                continue
            paths = A_PATH.findall(json.dumps([flow[key] for key in ENDS]))
            contents = {path: self._content(path, mounts) for path in paths}
            found.append(sorted(text for path, text in contents.items() if text != path))
        return found

    def _content(self, path: str, mounts: Mapping[str, Path]) -> str:
        """The fingerprint of the program at a path of the guest, or the path where there is none.

        The path of a program that qbkit built, and its version, contain the fingerprint already.
        """
        if path not in self._files:
            file = _on_this_machine(path, mounts)
            known = not is_built(file) and os.access(file, os.R_OK) and file.is_file()
            self._files[path] = program_fingerprint(file) if known else path
        return self._files[path]


def _on_this_machine(path: str, mounts: Mapping[str, Path]) -> Path:
    """The file that the guest sees at a path: in a folder mounted there, or at the same path."""
    for guest, host in mounts.items():
        if Path(path).is_relative_to(guest):
            return host / Path(path).relative_to(guest)
    return Path(path)


def tool_versions() -> dict[str, str]:
    """Version of each program that builds the network, and of Mininet; "" for what is missing."""
    if root := guest_root.packed():
        return guest_root.versions(root)
    found = {tool: _version_of(tool, word) for tool, word in COMMANDS.items()}
    return {**found, "mininet": guest_root.mininet_version()}


def _version_of(tool: str, word: str) -> str:
    path = shutil.which(tool, path=GUEST_PATH)
    return _printed_version(path, word, Path(path).stat().st_mtime_ns) if path else ""


@cache
def _printed_version(path: str, word: str, _written_ns: int) -> str:
    """The version of a program, asked once for each state of its file: it costs 5 ms."""
    number = NUMBER.search(run_tool([path, word], Path(path).name))
    return number[0] if number else ""


def _is_own(stack: Stack) -> bool:
    """Whether a stack is the user's: of a table, or of a class outside this package."""
    return isinstance(stack, Configured) or not type(stack).__module__.startswith("qbkit.")
