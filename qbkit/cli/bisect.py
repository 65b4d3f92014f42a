"""``qbkit bisect``: which version is the first that behaves differently, and why?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_frame, print_json


@click.command("bisect")
@click.option("--good", required=True, metavar="STACK@VERSION", help="The earlier version.")
@click.option("--bad", required=True, metavar="STACK@VERSION", help="The later one, which differs.")
@click.option(
    "--metric",
    default="share",
    show_default=True,
    help="share, conformance, loss_percent, beta, packet_bytes …",
)
@click.option("--controller", default="cubic", show_default=True, help="Of both versions.")
@click.option("--reference", default="tcp:cubic", show_default=True, help="The flow beside them.")
@click.option("--seeds", type=int, default=5, show_default=True, help="Runs of each version.")
@click.option("--clone", type=click.Path(path_type=Path), help="Bisect commits of this clone.")
@click.option("--build", metavar="COMMAND", help="Builds a commit, in the clone's folder.")
@network_options
@options.as_json
def command(good: str, bad: str, as_json: bool, **params: Any) -> None:
    """Find the first version that differs as the bad one does, and say what most likely changed.

    Versions are the releases that the registry has between both, or with --clone and --build the
    commits of a stack of your own. One that cannot be built is skipped and named. Runs and builds
    are stored: a bisection that was stopped goes on where it was.
    """
    from qbkit.studies.bisection import bisect

    def say(text: str) -> None:
        click.echo(text, err=True)

    link = bottleneck(params)
    found = bisect(good, bad, bottleneck=link, progress=not as_json, say=say, **params)
    frame = found.frame()
    if as_json:
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        print_json({"lines": found.lines, "versions": rows, "cause": found.explained.to_dict()})
        return
    print_frame(frame)
    click.echo(found)
