"""``qbkit notebook`` executes one; ``qbkit notebooks`` lists and copies them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_json

WHAT = ("notebooks", "data", "docs/_static/pictures", "docs/howto")
"""Folders that go together: notebooks open data, show pictures and link to guides."""


@click.command("notebook")
@click.argument("name")
@click.option(
    "-p",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="A parameter; repeat a name to make a grid.",
)
@options.folder("executed", "the executed notebooks")
@click.option(
    "--pictures", is_flag=True, help="Charts as PNG, which GitHub and nbviewer show, not HTML."
)
@options.scheduler
@options.as_json
def notebook_command(
    name: str,
    parameters: tuple[tuple[str, str], ...],
    out: Path,
    pictures: bool,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Execute a notebook, and write its HTML page.

    NAME is how its name begins, such as 01.
    """
    from qbkit.execution.notebooks import execute_grid, to_html

    grid: dict[str, list[Any]] = {}
    for key, value in parameters:
        grid.setdefault(key, []).append(_value(key, value))
    done, failed = execute_grid(
        name,
        out.resolve(),
        grid,
        pictures=pictures,
        scheduler=scheduler,
        progress=not as_json,
    )
    pages = [to_html(path) for path in done]
    if as_json:
        print_json(
            {
                "notebooks": [str(p) for p in done],
                "html": [str(p) for p in pages],
                "failures": [{"notebook": n, "reason": r} for n, r in failed.items()],
            }
        )
    else:
        for page in pages:
            click.echo(str(page))
    for stem, reason in failed.items():
        click.echo(f"{stem}: {reason}", err=True)
    return 1 if failed else 0


def _value(key: str, text: str) -> Any:
    """The value of a parameter, in YAML; UsageError for a text that is none."""
    import yaml

    if re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", text):
        return float(text)  # as 1e9, which YAML 1.1 takes for a text
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        raise click.UsageError(
            f"-p {key} {text}: it is no YAML; put a text in quotation marks, as in '\"[1\"'"
        ) from None


@click.group("notebooks")
def notebooks_command() -> None:
    """List the notebooks, or copy them with what they open.

    They open data, pictures and guides.
    """


@notebooks_command.command("list")
def listing() -> None:
    """List the notebooks by name; `qbkit notebook NAME` executes one."""
    for path in sorted(_source("notebooks").glob("*.ipynb")):
        click.echo(path.stem)


@notebooks_command.command("copy")
@click.argument("folder", type=options.FOLDER, default=Path("qbkit"))
def copy(folder: Path) -> None:
    """Copy notebooks and what they open to FOLDER.

    FOLDER is ./qbkit by default. Existing files are kept.
    """
    from qbkit.files import writing

    with writing(folder):
        for name in WHAT:
            source = _source(name)
            for path in sorted(file for file in source.rglob("*") if file.is_file()):
                target = folder / name / path.relative_to(source)
                if not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
    click.echo(f"copied to {folder}; then: jupyter lab {folder / 'notebooks'}")


def _source(name: str) -> Path:
    from qbkit.errors import StoreError
    from qbkit.settings import shipped

    place = shipped(name)
    if not place.exists():
        raise StoreError(
            f"the {name} are not installed here; install them with: pip install qbkit-notebooks"
        )
    return place
