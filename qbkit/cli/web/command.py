"""``qbkit web``: load an object or a page from a server over HTTP/2 and HTTP/3, and compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_json, print_table, print_warnings, say

if TYPE_CHECKING:
    from qbkit.execution.web.load import WebOutcome

DEFAULT_OBJECT_BYTES = 1_000_000
UNITS = {"": 1, "B": 1, "kB": 1_000, "KB": 1_000, "MB": 1_000_000}


class Size(click.ParamType):
    """A number of bytes, as ``100KB`` or ``1MB`` (units of 1000)."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """The number of bytes; UsageError for anything else."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKM]?B?)", str(value))
        if found is None or found[2] not in UNITS:
            self.fail(f"{value!r} is not a size; write 100KB or 1MB", param, ctx)
        return round(float(found[1]) * UNITS[found[2]])


@click.command("web")
@click.argument("urls", nargs=-1, metavar="[URL ...]")
@click.option("--list", "as_list", is_flag=True, help="List the servers and clients.")
@click.option("--build", metavar="NAME,...|all", help="Fetch or build servers and clients.")
@click.option("--server", default="envoy:cubic", show_default=True, help="SERVER:CONTROLLER.")
@click.option("--client", help="The client.  [default: go, or headless-shell for a page]")
@click.option("--object", "object_bytes", type=Size(), help="Size of the object.  [default: 1MB]")
@click.option(
    "--page",
    metavar="small|medium|large|PATH",
    help="Load a page instead: generated, or recorded (.har, .wprgo or a folder).",
)
@click.option("--protocol", default="h2,h3", show_default=True, help="h2, h3 or both.")
@click.option(
    "--repeat", type=click.IntRange(1), default=1, show_default=True, help="Seeds 1 to N."
)
@click.option("--zero-rtt", is_flag=True, help="Resume a session with early data (h3).")
@click.option(
    "--explain", "explaining", is_flag=True, help="Say what took the time, and infer parameters."
)
@click.option("--out", type=options.PATH, help="URLs: file to write (netCDF).")
@click.option("--force", is_flag=True, help="URLs: overwrite the file of --out.")
@click.option("--insecure", is_flag=True, help="URLs: accept any certificate.")
@network_options
@options.as_json
@click.pass_context
def web_command(
    context: click.Context,
    urls: tuple[str, ...],
    as_list: bool,
    build: str | None,
    as_json: bool,
    protocol: str,
    repeat: int,
    out: Path | None,
    force: bool,
    insecure: bool,
    explaining: bool,
    **params: Any,
) -> int:
    """Load an object or a page over HTTP/2 and HTTP/3.

    Loads run in virtual time, and the command prints the times they took.

    "limited_by" is what most of the time went to: the handshake, the first byte, the link, slow
    start, loss, the sender's buffer. A load whose connection or server dies is kept, and a warning
    says who ended it, and why. A load that takes longer than --duration-s fails.

    With URLs, load these instead, from this machine, in real time, over its own network: protocols
    alternate, nothing is emulated, and a response by another protocol does not count.
    """
    if urls and (as_list or build is not None):
        raise click.UsageError("--list and --build load nothing; leave the URLs out")
    if as_list:
        _print_list(as_json)
        return 0
    if build is not None:
        return _build(build)
    if urls:
        from qbkit.cli.web.urls import measure

        return measure(context, urls, protocol.split(","), out=out, force=force, as_json=as_json)
    if out or force or insecure:
        raise click.UsageError("--out, --force and --insecure are for URLs")
    fields = _completed(params)
    words = protocol.split(",")
    if len(set(words)) < len(words):
        raise click.UsageError(f"--protocol {protocol}: give h2, h3 or both, each once")
    loads = [
        qb.WebLoad(**{**fields, "protocol": word, "seed": seed})
        for seed in range(1, repeat + 1)
        for word in words
    ]
    outcomes = qb.run_web_all(loads, progress=not as_json)
    _print_outcomes(outcomes, as_json, explaining)
    return int(any(outcome.error is not None for outcome in outcomes))


def _print_outcomes(outcomes: Sequence[WebOutcome], as_json: bool, explaining: bool) -> None:
    """Print a row of each load, and why they took their time; warnings and errors on stderr."""
    from qbkit.cli.web.rows import explanation, load_row, print_explanation  # slow to import
    from qbkit.traces.run.attributes import run_warnings

    rows = [load_row(outcome.load, outcome.run) for outcome in outcomes]
    runs = [outcome.run for outcome in outcomes if outcome.run is not None]
    explained = explanation(runs) if explaining else None
    if as_json:
        print_json({"loads": rows, "explanation": explained} if explained else rows)
    else:
        shown = [{k: v for k, v in row.items() if k not in ("limits_s", "ended")} for row in rows]
        print_table(shown)
        print_explanation(explained)
    print_warnings(dict.fromkeys(warning for run in runs for warning in run_warnings(run)))
    for outcome in outcomes:
        if outcome.error is not None:
            click.echo(f"qbkit: {outcome.load.name}: {outcome.reason}", err=True)


def _completed(params: dict[str, Any]) -> dict[str, Any]:
    """The fields of a load, from the options of the command and their defaults."""
    fields = dict(params)
    if fields["page"] is None and fields["object_bytes"] is None:
        fields["object_bytes"] = DEFAULT_OBJECT_BYTES
    if fields["client"] is None:
        fields["client"] = "headless-shell" if fields["page"] else "go"
    link = bottleneck(fields)
    limit_s = fields.pop("duration_s")
    return {**fields, "limit_s": limit_s, "bottleneck": link}


def _build(names: str) -> int:
    """Make the named programs ready; 1 if one cannot be."""
    from qbkit.errors import StackNotReady
    from qbkit.stacks.web.base import programs

    failed = 0
    for program in programs(names):
        try:
            program.build(say)
            click.echo(f"{program.name}: ready")
        except StackNotReady as error:
            failed = 1
            click.echo(f"{program.name}: {error}", err=True)
    return failed


def _print_list(as_json: bool) -> None:
    from qbkit import stacks  # noqa: F401  (registers the servers and clients)
    from qbkit.stacks.web.base import web_rows

    rows = web_rows()
    if as_json:
        print_json(rows)
        return
    words = ("protocols", "controllers")
    print_table([{**row, **{name: " ".join(row[name]) for name in words}} for row in rows])
