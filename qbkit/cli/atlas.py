"""``qbkit atlas``: a static site of published data."""

from __future__ import annotations

from pathlib import Path

import click

from qbkit.extras import require


@click.command("atlas")
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
def command(data: Path, out: Path) -> None:
    """Write a site of the published sweeps and studies in the folder DATA; it opens offline."""
    require("nbconvert", to="write the atlas")
    from qbkit.atlas import write_atlas

    click.echo(str(write_atlas(data, out)))
