"""``qbkit doctor``: what works, what is missing, and how to fix it."""

from __future__ import annotations

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table

ESSENTIAL = ("cache folder", "guest memory", "mininet", "virtual-time kernel", "stack tcp")
"""Checks that must pass before anything can run."""


@click.command("doctor")
@options.as_json
def command(as_json: bool) -> int:
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
