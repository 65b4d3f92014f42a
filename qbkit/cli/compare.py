"""What differs, and who is it: ``qbkit compare``, ``bisect`` and ``identify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_frame, print_json, say
from qbkit.json_words import plain_rows

UNDECIDED = 4
"""Exit status if the controller of a flow is unknown."""


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@network_options
@options.engine
@options.as_json
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of flows that are run.")
@click.option("--out", type=options.PATH, help="File for a chart of both.")
@click.pass_context
def compare_command(
    context: click.Context,
    first: str,
    second: str,
    as_json: bool,
    out: Path | None,
    engine: str | None,
    **params: Any,
) -> None:
    """Compare two runs, two studies, or two flows alone.

    A and B are results (as for `qbkit plot`), or flows such as quinn:cubic, each of which is run
    alone on the link that the options describe.
    """
    import json

    from qbkit.execution.many import run_every
    from qbkit.execution.runner import check_writable
    from qbkit.plots.drawing.export import ending_of

    if out:
        ending_of(out)
        check_writable(out)
    flows = [text for text in dict.fromkeys((first, second)) if _is_flow(text)]
    if not flows:
        _refuse_settings(context)
    link = bottleneck(params)
    wanted = [qb.Experiment(bottleneck=link, flows=(qb.Flow(text),), **params) for text in flows]
    opened = {text: qb.open_results(text) for text in (first, second) if text not in flows}
    runs = run_every(wanted, engine=engine, progress=not as_json) if wanted else []
    opened |= dict(zip(flows, runs, strict=True))
    found = qb.compare(opened[first], opened[second], names=(first, second))
    table, different = found.frame(), found.made_differently()
    if as_json:
        rows = json.loads(table.to_json(orient="records"))
        print_json({"numbers": rows, "made_differently": different.to_dict("records")})
    else:
        for line in filter(None, (*found.verdicts, found.pairing)):
            click.echo(line)
        print_frame(table)
        click.echo("What differs in how they were made:" if len(different) else "Made alike.")
        if len(different):
            print_frame(different)
    if out:
        click.echo(str(qb.plots.save_chart(found.chart(), out)), err=as_json)


def _is_flow(text: str) -> bool:
    return ":" in text and "://" not in text and not Path(text).exists()


def _refuse_settings(context: click.Context) -> None:
    """UsageError for an option that says how flows are run, where none is."""
    for name, flag in options.given(context).items():
        if name not in ("as_json", "out"):
            raise click.UsageError(f"{flag} is for flows that are run; both of these are results")


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
@options.seeds("Runs of each version.")
@click.option("--clone", type=options.PATH, help="Bisect commits of this clone.")
@click.option("--build", metavar="COMMAND", help="Builds a commit, in the clone's folder.")
@network_options
@options.as_json
def bisect_command(good: str, bad: str, as_json: bool, **params: Any) -> None:
    """Find the first version that differs as the bad one does.

    It also says what most likely changed. Versions are the releases that the registry has between
    both, or with --clone and --build the commits of a stack of your own. One that cannot be built
    is skipped and named. Runs and builds are stored: a bisection that was stopped goes on where it
    was.
    """
    link = bottleneck(params)
    found = qb.bisect(good, bad, bottleneck=link, progress=not as_json, say=say, **params)
    frame = found.frame()
    if as_json:
        rows = plain_rows(frame.to_dict("records"))
        cause = {**found.explained.to_dict(), "next": found.next_lines}
        print_json({"lines": found.lines, "versions": rows, "cause": cause})
        return
    print_frame(frame)
    for line in (found, *found.next_lines):
        click.echo(line)


@click.command("identify")
@click.argument("source", metavar="CAPTURE|RUN")
@click.option("--flow", help="Label of the only flow of a run. [default: all]")
@click.option("--keylog", type=options.PATH, help="TLS secrets of a QUIC capture.")
@click.option("--sender", help="ADDRESS or ADDRESS:PORT that sends. [default: who sends more]")
@click.option("--port", type=int, help="Port of the connection. [default: that with most bytes]")
@click.option("--details", is_flag=True, help="Print what each feature counts as well.")
@options.as_json
def identify_command(
    source: str, flow: str | None, details: bool, as_json: bool, **choice: str | int | Path | None
) -> int:
    """Which congestion controller is this? From packets alone.

    CAPTURE is a pcap made at the sender or in front of the queue (TCP; QUIC with --keylog), or a
    qlog; RUN is a file or a name of `qbkit runs`. Exit status: 0, or 4 if a flow's controller is
    unknown.
    """
    from qbkit.studies.identify import UNKNOWN

    given: dict[str, Any] = {name: value for name, value in choice.items() if value is not None}
    found = qb.identify(source, flow, **given)
    if as_json:
        print_json(found.to_dict())
    else:
        print_frame(found.frame())
        for label, one in found.items() if details else ():
            click.echo(f"\n{label}")
            print_frame(one.evidence.rename_axis("feature").reset_index())
    answers = {one.answer for one in found.values()}
    return UNDECIDED if UNKNOWN in answers else 0
