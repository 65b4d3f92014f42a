"""``qbkit compare``: two runs, versions or option sets side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_frame, print_json


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@network_options
@options.engine
@options.as_json
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of flows that are run.")
@click.option("--out", type=click.Path(path_type=Path), help="File for a chart of both.")
def command(
    first: str, second: str, as_json: bool, out: Path | None, engine: str | None, **params: Any
) -> None:
    """Compare two runs or two studies, or run two flows alone and compare them.

    A and B are results (as for `qbkit plot`), or flows such as quinn:cubic, each of which is run
    alone on the link that the options describe.
    """
    import json

    from qbkit.plots import save_chart
    from qbkit.studies.compare import compare
    from qbkit.studies.results import Results, open_results

    link = bottleneck(params)

    def opened(text: str) -> Results:
        if ":" not in text or "://" in text or Path(text).exists():
            return open_results(text)
        from qbkit.execution.runner import run
        from qbkit.spec import Experiment, Flow

        experiment = Experiment(bottleneck=link, flows=(Flow(text),), **params)
        return run(experiment, engine=engine, progress=not as_json)

    found = compare(opened(first), opened(second), names=(first, second))
    table, different = found.frame(), found.made_differently()
    if as_json:
        rows = json.loads(table.to_json(orient="records"))
        print_json({"numbers": rows, "made_differently": different.to_dict("records")})
    else:
        for line in found.verdicts:
            click.echo(line)
        print_frame(table)
        click.echo("What differs in how they were made:" if len(different) else "Made alike.")
        if len(different):
            print_frame(different)
    if out:
        click.echo(str(save_chart(found.chart(), out)), err=as_json)
