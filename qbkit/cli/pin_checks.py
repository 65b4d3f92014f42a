"""Where this machine differs from the pinned packages of Debian."""

from __future__ import annotations

from collections.abc import Mapping

from qbkit.stacks.toolchains.apt import installed
from qbkit.stacks.toolchains.pins import KERNEL, SYSTEM, pins
from qbkit.testbed import kernel
from qbkit.testbed.pin_writer import debian_programs


def differences() -> dict[str, str]:
    """Name of a pin → what differs from it, for all that is there; empty if all is as pinned."""
    pinned = pins()
    found = {
        SYSTEM: differing(installed(pinned[SYSTEM].versions), pinned[SYSTEM].versions),
        KERNEL: _kernel(),
    }
    for programs in debian_programs():
        if programs.ready and programs.pin:
            found[programs.name] = differing(programs.versions, programs.pin.versions)
    return {name: text for name, text in found.items() if text}


def differing(versions: Mapping[str, str], pinned: Mapping[str, str]) -> str:
    """The packages of another version than the pinned one, without those that are not there."""
    return ", ".join(
        f"{package} {versions[package]} (pinned: {version})"
        for package, version in pinned.items()
        if versions.get(package, version) != version
    )


def _kernel() -> str:
    """Our kernel has its source's version in the name of its folder."""
    found = kernel.find()
    (version,) = pins()[KERNEL].versions.values()
    if found is None or found.path.parent.name.startswith(f"linux-{version}-"):
        return ""
    return f"Linux {found.version} (pinned: {version})"
