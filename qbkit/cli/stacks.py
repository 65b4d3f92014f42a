"""``qbkit stacks``, ``qbkit new-stack`` and ``qbkit check-stack``."""

from __future__ import annotations

from pathlib import Path

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table, say

HIDDEN = ("options", "above")
"""Columns that are too wide for a terminal; `qb.list_stacks()` has them."""


@click.group("stacks", invoke_without_command=True)
@options.as_json
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print the table of the documentation."
)
@click.pass_context
def stacks_command(context: click.Context, as_json: bool, as_markdown: bool) -> None:
    """List the stacks, or build them.

    Lists controllers, version, and whether each is ready or what it needs.
    """
    from qbkit.stacks.about.listing import markdown_table, release_rows, stack_rows

    if context.invoked_subcommand:
        return
    if as_markdown and as_json:
        raise click.UsageError("give --json or --markdown, not both")
    if as_markdown:
        click.echo(markdown_table())
        return
    listed = [*stack_rows(), *release_rows()]
    rows = [{name: row[name] for name in row if name not in HIDDEN} for row in listed]
    if as_json:
        print_json(rows)
    else:
        print_table([{**row, "controllers": " ".join(row["controllers"])} for row in rows])


@stacks_command.command("build")
@click.argument("names", nargs=-1, metavar="[STACK ...]")
def build(names: tuple[str, ...]) -> int:
    """Build the drivers of all stacks, or of the named ones.

    Builds in parallel if memory allows. All stacks are those that package registries have; a
    program that you build yourself is named. STACK@VERSION is a released version of a stack:
    quinn@0.8.4 (a version of the crate quinn-proto) or aioquic@1.2.0.
    """
    from qbkit import stacks
    from qbkit.stacks.external.launcher import External
    from qbkit.stacks.toolchains.make_ready import build_all

    packaged = [stack for stack in stacks.all_stacks() if not isinstance(stack, External)]
    chosen = [stacks.get(name) for name in names] or packaged
    failed = 0
    for stack, problem in build_all(chosen, say):
        failed |= bool(problem)
        click.echo(f"{stack.name}: {problem or 'ready'}", err=bool(problem))
    return failed


@click.command("new-stack")
@click.argument("name")
@click.option(
    "--program",
    type=options.PATH,
    help="Your program. [default: an example, copied to the folder]",
)
@click.option("--python", "as_class", is_flag=True, help="Write a Python package instead.")
@click.option("--folder", type=options.PATH, help="Folder to write. [default: ./NAME]")
def new_stack_command(name: str, program: Path | None, as_class: bool, folder: Path | None) -> None:
    """Add a stack NAME that works, to be changed into yours.

    By default: a table in stacks.toml, for a program with a command line of its own. With --python:
    a package with a class, for anything else.
    """
    from qbkit.stacks.external.scaffold import add_table, write_package

    if as_class and program:
        raise click.UsageError("--python brings its own driver; leave --program out")
    target = folder or Path(name)
    if as_class:
        place = write_package(name, target)
        click.echo(f"wrote the package {place}; then: pip install -e {place}")
    else:
        file, started = add_table(name, program, target)
        click.echo(f"added [stack.{name}] to {file}, which starts {started}")
        if program:
            click.echo("edit its lines controllers, connect and listen")
    click.echo(f"then: qbkit check-stack {name}")


@click.command("check-stack")
@click.argument("name")
@options.as_json
def check_stack_command(name: str, as_json: bool) -> int:
    """Check that the stack NAME keeps the contract.

    It fills a link, stops on time, repeats and reports. NAME:CC checks one controller; a program's
    path needs it, as in ./build/mine:cubic. Exits with 1 if something is missing.
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
