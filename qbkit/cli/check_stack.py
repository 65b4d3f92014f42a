"""``qbkit check-stack``: does a stack keep its contract?"""

from __future__ import annotations

import click

from qbkit.cli import options
from qbkit.cli.output import print_json


@click.command("check-stack")
@click.argument("name")
@options.as_json
def command(name: str, as_json: bool) -> int:
    """Run the contract of the stack NAME: it fills a link, stops on time, repeats and reports.

    Exits with 1 if something is missing.
    """
    from qbkit.studies.contract import check_stack

    checks = []
    for check in check_stack(name):
        checks.append(check)
        if not as_json:
            click.echo(f"{'ok' if check.ok else 'NO':2}  {check.check}: {check.detail}")
            if not check.ok:
                click.echo(f"    {check.fix}")
    if as_json:
        print_json([check.to_dict() for check in checks])
    failed = [check.check for check in checks if not check.ok]
    if failed:
        click.echo(f"qbkit: {name} does not keep the contract: {', '.join(failed)}", err=True)
    return 1 if failed else 0
