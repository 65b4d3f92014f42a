"""``qbkit report``: everything that results say, in one HTML file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("results", metavar="RUN|STUDY|SWEEP")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="HTML file to write.")
def command(results: str, out: Path) -> None:
    """Write one HTML file that opens offline: verdict, charts, parameters, suspects, provenance."""
    from qbkit.studies.report import save_report
    from qbkit.studies.results import open_results

    click.echo(str(save_report(open_results(results), out)))
