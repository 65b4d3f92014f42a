"""``qbkit packets``: the packets of a run around a time, with their header fields."""

from __future__ import annotations

import json

import click

from qbkit.cli import options
from qbkit.cli.output import print_frame, print_json


@click.command("packets")
@click.argument("run", metavar="RUN")
@click.option("--around-s", type=float, required=True, help="Time of the run, in seconds.")
@click.option("--flow", help="Label of the only flow to show. [default: all]")
@click.option("--count", type=int, default=50, show_default=True, help="Number of packets.")
@options.as_json
def command(run: str, around_s: float, flow: str | None, count: int, as_json: bool) -> None:
    """Show the packets of a run nearest to a time, with their header fields.

    RUN is a file or the name of a stored run that was made with --keep pcap.
    """
    import xarray as xr

    from qbkit.studies.results import is_cube, open_results

    opened = open_results(run)
    if not isinstance(opened, xr.Dataset) or is_cube(opened):
        raise click.UsageError(f"{run} is no run; give FILE.nc, or a name of `qbkit runs`")
    found = opened.qb.packets(around_s, flow=flow, count=count).reset_index()
    if as_json:
        print_json(json.loads(found.to_json(orient="records")))
        return
    texts = {"time_s": "{:.6f}", "queue_delay_ms": "{:.3f}"}
    for name in found.columns.intersection([*texts]):
        found[name] = [texts[name].format(value) for value in found[name]]
    print_frame(found.astype(object).where(found.notna(), ""))
