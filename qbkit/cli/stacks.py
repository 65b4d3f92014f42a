"""``qbkit stacks``: list the stacks; ``qbkit stacks build``: build their drivers."""

from __future__ import annotations

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table

HIDDEN = ("options", "above")
"""Columns that are too wide for a terminal; `qb.list_stacks()` has them."""


@click.group("stacks", invoke_without_command=True)
@options.as_json
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print the table of the documentation."
)
@click.pass_context
def command(context: click.Context, as_json: bool, as_markdown: bool) -> None:
    """List the stacks: controllers, version, and whether each is ready or what it needs."""
    from qbkit.stacks.listing import markdown_table, release_rows, stack_rows

    if context.invoked_subcommand:
        return
    if as_markdown:
        click.echo(markdown_table())
        return
    listed = [*stack_rows(), *release_rows()]
    rows = [{name: row[name] for name in row if name not in HIDDEN} for row in listed]
    if as_json:
        print_json(rows)
    else:
        print_table([{**row, "controllers": " ".join(row["controllers"])} for row in rows])


@command.command("build")
@click.argument("names", nargs=-1, metavar="[STACK ...]")
def build(names: tuple[str, ...]) -> int:
    """Build the drivers of all stacks or of the named ones, in parallel if memory allows.

    All stacks are those that package registries have; a program that you build yourself is named.
    STACK@VERSION is a released version of a stack: quinn@0.8.4 (a version of the crate quinn-proto)
    or aioquic@1.2.0.
    """
    from qbkit import stacks
    from qbkit.stacks.external.launcher import External
    from qbkit.stacks.toolchains.make_ready import build_all

    packaged = [stack for stack in stacks.all_stacks() if not isinstance(stack, External)]
    chosen = [stacks.get(name) for name in names] or packaged
    failed = 0
    for stack, problem in build_all(chosen, lambda text: click.echo(text, err=True)):
        failed |= bool(problem)
        click.echo(f"{stack.name}: {problem or 'ready'}", err=bool(problem))
    return failed
