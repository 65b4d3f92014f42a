"""``qbkit replay``: a second of a stored or published run, packet by packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_json
from qbkit.cli.reproduce import points_with, wanted_fields


@click.command("replay")
@click.argument("run", metavar="RUN")
@click.option("--at", "around_s", type=float, required=True, help="Time of the run, in seconds.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Sequence diagram: .html, .png, .svg, .pdf or .json.",
)
@options.of_points
@options.as_json
def command(
    run: str,
    around_s: float,
    out: Path,
    where: tuple[str, ...],
    as_json: bool,
    **fields: str | None,
) -> None:
    """Run a stored or published run again, and draw a second of it packet by packet.

    RUN is a file, the name of a stored run, or a published sweep or table, of which the other
    options choose a run as in `qbkit reproduce`. The command says whether the run gives the same
    bytes as before, and else what differs.
    """
    from qbkit import plots
    from qbkit.plots.drawing.export import WRITERS
    from qbkit.studies.replay import replay

    if out.suffix.lower().removeprefix(".") not in WRITERS:
        endings = ", ".join("." + name for name in WRITERS)
        raise click.UsageError(f"a diagram cannot be saved as {out.name}; choose from {endings}")
    found = replay(_chosen(run, wanted_fields({**fields, "where": where})), around_s, progress=True)
    path = plots.save_chart(found.chart(), out)
    if as_json:
        texts = {"verdict": found.verdict, "inputs": found.inputs, "shown": found.counts}
        print_json({**texts, "run": found.run.encoding["source"], "out": str(path)})
        return
    click.echo(found)
    click.echo(str(path))


def _chosen(run: str, wanted: dict[str, str]) -> Any:
    """The stored or published run, or the published point; a usage error for several points."""
    from qbkit import store
    from qbkit.studies.results import is_cube

    for path in (Path(run), store.path_of(run)):
        if not wanted and path.suffix == ".nc" and path.is_file():
            found = store.load_run(path)
            if not is_cube(found):
                return found
    if not Path(run).exists():
        raise click.UsageError(
            f"there is no run {run}; give FILE.nc, a name of `qbkit runs`, or published data"
        )
    points = points_with(Path(run), wanted)
    if len(points) > 1:
        raise click.UsageError(
            f"{run} has {len(points)} such points; choose one by --flow, --rtt-ms, --seed …; one "
            f"is {points[0].name}"
        )
    return points[0]
