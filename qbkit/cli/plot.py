"""``qbkit plot``: a figure or a table of results, for a paper."""

from __future__ import annotations

from pathlib import Path

import click

TABLES = (".csv", ".tex")


@click.command("plot")
@click.argument("results", metavar="RUN|STUDY|SWEEP")
@click.option("--kind", help="Figure to draw, or: table. [default: the first that results have]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
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
def command(results: str, kind: str | None, out: Path, width: str) -> None:
    """Draw results that exist; nothing is run.

    RUN is a file or the name of a stored run, STUDY the folder of a published study, SWEEP the
    folder of a sweep or the SPEC.yaml that it is published beside.
    """
    from qbkit import plots
    from qbkit.store.paper_tables import save_table
    from qbkit.studies.results import figure, open_results, table

    opened = open_results(results)
    if kind == "table" or (kind is None and out.suffix in TABLES):
        click.echo(str(save_table(table(opened), out)))
        return
    # An interactive page has the width of its window.
    paper = None if width == "screen" or out.suffix == ".html" else width
    click.echo(str(plots.save_chart(figure(opened, kind), out, width=paper)))
