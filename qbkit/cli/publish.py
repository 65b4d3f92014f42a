"""Results as files to show: ``qbkit plot``, ``qbkit report`` and ``qbkit atlas``."""

from __future__ import annotations

from pathlib import Path

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.extras import require

TABLES = (".csv", ".tex")


@click.command("plot")
@click.argument("results", metavar="RUN|STUDY|SWEEP")
@click.option("--kind", help="Figure to draw, or: table. [default: the first that results have]")
@click.option(
    "--out",
    type=options.PATH,
    required=True,
    help=".pdf, .svg, .png, .html or .json; a table: .csv or .tex.",
)
@click.option(
    "--width",
    type=click.Choice(["column", "text", "screen"]),
    default="column",
    show_default=True,
    help="241 or 506 points for a paper, or as in a notebook.",
)
def plot_command(results: str, kind: str | None, out: Path, width: str) -> None:
    """Draw results that exist; nothing is run.

    RUN is a file or the name of a stored run, STUDY the folder of a published study, SWEEP the
    folder of a sweep or the SPEC.yaml that it is published beside.
    """
    from qbkit.execution.runner import check_writable
    from qbkit.plots.drawing.paper import TooNarrow
    from qbkit.studies.results import figure, table

    opened = qb.open_results(results)
    check_writable(out)
    if kind == "table" or (kind is None and out.suffix in TABLES):
        click.echo(str(qb.save_table(table(opened), out)))
        return
    # An interactive page has the width of its window.
    paper = None if width == "screen" or out.suffix == ".html" else width
    try:
        click.echo(str(qb.plots.save_chart(figure(opened, kind), out, width=paper)))
    except TooNarrow as error:
        wider = " or ".join(f"--width {name}" for name in (*error.fitting, "screen"))
        raise click.UsageError(
            f"the chart has too many columns for --width {width}; give {wider}"
        ) from None


@click.command("report")
@click.argument("results", metavar="RUN|STUDY|SWEEP")
@click.option("--out", type=options.PATH, required=True, help="HTML file to write.")
def report_command(results: str, out: Path) -> None:
    """Write a report: one HTML file that opens offline.

    It has the verdict, charts, parameters, suspects and provenance.
    """
    from qbkit.execution.runner import check_writable

    opened = qb.open_results(results)
    check_writable(out)
    click.echo(str(qb.save_report(opened, out)))


@click.command("atlas")
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=options.FOLDER, required=True, help="Folder to write.")
def atlas_command(data: Path, out: Path) -> None:
    """Write a site of published sweeps and studies.

    They are in the folder DATA. The site opens offline.
    """
    require("nbconvert", to="write the atlas")
    from qbkit.atlas import write_atlas

    click.echo(str(write_atlas(data, out)))
