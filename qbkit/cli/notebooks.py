"""``qbkit notebooks``: the notebooks and the published data, as files to work on."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

WHAT = ("notebooks", "data")


@click.group("notebooks")
def command() -> None:
    """List the notebooks, or copy them with the published data that they open."""


@command.command("list")
def listing() -> None:
    """List the notebooks by name; `qbkit notebook NAME` executes one."""
    for path in sorted(_source("notebooks").glob("*.ipynb")):
        click.echo(path.stem)


@command.command("copy")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("qbkit"))
def copy(folder: Path) -> None:
    """Copy notebooks and data into FOLDER, by default ./qbkit; existing files are kept."""
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
