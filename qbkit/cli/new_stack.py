"""``qbkit new-stack``: a working stack of one's own, to be changed."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("new-stack")
@click.argument("name")
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    help="Your program. [default: an example, copied to the folder]",
)
@click.option("--python", "as_class", is_flag=True, help="Write a Python package instead.")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Folder to write. [default: ./NAME]"
)
def command(name: str, program: Path | None, as_class: bool, folder: Path | None) -> None:
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
