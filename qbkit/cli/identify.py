"""``qbkit identify``: which congestion controller a capture or a run shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_frame, print_json

UNDECIDED = 4
"""Exit status if the controller of a flow is unknown."""


@click.command("identify")
@click.argument("source", metavar="CAPTURE|RUN")
@click.option("--flow", help="Label of the only flow of a run. [default: all]")
@click.option("--keylog", type=click.Path(path_type=Path), help="TLS secrets of a QUIC capture.")
@click.option("--sender", help="ADDRESS or ADDRESS:PORT that sends. [default: who sends more]")
@click.option("--port", type=int, help="Port of the connection. [default: that with most bytes]")
@click.option("--details", is_flag=True, help="Print what each feature counts as well.")
@options.as_json
def command(
    source: str, flow: str | None, details: bool, as_json: bool, **choice: str | int | Path | None
) -> int:
    """Which congestion controller is this? From packets alone.

    CAPTURE is a pcap made at the sender or in front of the queue (TCP; QUIC with --keylog), or a
    qlog; RUN is a file or a name of `qbkit runs`. Exit status: 0, or 4 if a flow's controller is
    unknown.
    """
    from qbkit.studies.identify import UNKNOWN, identify

    given: dict[str, Any] = {name: value for name, value in choice.items() if value is not None}
    found = identify(source, flow, **given)
    if as_json:
        print_json(found.to_dict())
    else:
        print_frame(found.frame())
        for label, one in found.items() if details else ():
            click.echo(f"\n{label}")
            print_frame(one.evidence.rename_axis("feature").reset_index())
    answers = {one.answer for one in found.values()}
    return UNDECIDED if UNKNOWN in answers else 0
