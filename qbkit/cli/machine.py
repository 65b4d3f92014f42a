"""What works on this machine: ``qbkit doctor`` and ``qbkit kernel``."""

from __future__ import annotations

from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table, say

ESSENTIAL = ("cache folder", "guest memory", "mininet", "virtual-time kernel", "stack tcp")
"""Checks that must pass before anything can run."""


@click.command("doctor")
@options.as_json
def doctor_command(as_json: bool) -> int:
    """Check the installation and suggest fixes."""
    from qbkit.cli.checks import examine

    checks = [check.to_dict() for check in examine()]
    if as_json:
        print_json(checks)
    else:
        print_table([{**c, "ok": "yes" if c["ok"] else "NO"} for c in checks])
    broken = [str(c["check"]) for c in checks if not c["ok"] and c["check"] in ESSENTIAL]
    if broken:
        click.echo(f"qbkit: not working here: {', '.join(broken)}", err=True)
    return 1 if broken else 0


@click.command("kernel")
@click.option("--build", "do_build", is_flag=True, help="Build what is not built yet.")
@click.option(
    "--only",
    type=click.Choice(["constant", "changing"]),
    help="Only the kernel for networks that are constant, or that for those that change.",
)
@options.as_json
def kernel_command(do_build: bool, only: str | None, as_json: bool) -> None:
    """Show the virtual-time kernels, or build them."""
    from qbkit.testbed import kernel, kernel_build

    kinds = [kind for kind in kernel.Kind if only in (None, kind.name.lower())]
    if do_build:
        kernel_build.build(say, kinds)
    # Without the second kernel, all that is constant runs.
    there = [k for k in kinds if only or k is kernel.Kind.CONSTANT or kernel.find(k)]
    found = {kind.name.lower(): _facts(kind) for kind in there}
    if as_json:
        print_json(found)
        return
    for name, facts in found.items():
        lacks = f" without {', '.join(facts['missing_patches'])}" * bool(facts["missing_patches"])
        click.echo(f"Linux {facts['version']}{lacks} boots, for {name} networks: {facts['path']}")
        click.echo(f"SHA-256 {facts['sha256']}")
    if len(there) < len(kinds):
        click.echo("none for networks that change yet: qbkit kernel --build")


def _facts(kind: Any) -> dict[str, Any]:
    """What there is to say about a kernel, once it has booted."""
    from qbkit.testbed import engines, kernel

    found = kernel.require(kind)
    engines.run_in_guest(["/bin/true"], kind=kind)
    return {
        "path": str(found.path),
        "version": found.version,
        "patches": found.patches,
        "missing_patches": list(found.missing_patches),
        "sha256": found.sha256,
    }
