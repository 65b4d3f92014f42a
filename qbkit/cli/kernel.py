"""``qbkit kernel``: the virtual-time kernel."""

from __future__ import annotations

import click

from qbkit.cli import options
from qbkit.cli.output import print_json


@click.command("kernel")
@click.option("--build", "do_build", is_flag=True, help="Build it if it is not built yet.")
@options.as_json
def command(do_build: bool, as_json: bool) -> None:
    """Show the virtual-time kernel, or build it."""
    from qbkit.testbed import engines, kernel, kernel_build

    if do_build:
        kernel_build.build(lambda text: click.echo(text, err=True))
    found = kernel.require()
    engines.run_in_guest(["/bin/true"])
    facts = {
        "path": str(found.path),
        "version": found.version,
        "patches": found.patches,
        "sha256": found.sha256,
    }
    if as_json:
        print_json(facts)
    else:
        missing = f" without {', '.join(found.missing_patches)}" if found.missing_patches else ""
        click.echo(f"Linux {found.version}{missing} boots: {found.path}")
        click.echo(f"SHA-256 {found.sha256}")
