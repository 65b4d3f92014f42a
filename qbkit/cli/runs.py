"""What is stored: ``qbkit runs``, ``qbkit packets`` and ``qbkit import-pcaps``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.output import print_frame, print_json, print_run, print_table, print_warnings

SHOWN = ("flows", "rate_mbps", "rtt_ms", "qdisc", "duration_s", "seed", "created", "file")
VERSION = "measurement_version"


@click.command("runs")
@click.option("--stale", is_flag=True, help="Only runs of another measurement version.")
@options.as_json
def runs_command(stale: bool, as_json: bool) -> None:
    """List the stored runs, the newest last.

    Files that cannot be read become warnings with the reason.
    """
    from qbkit import measurement
    from qbkit.store import default_folder

    # Through JSON, which turns NaN into null and NumPy numbers into Python numbers.
    rows = json.loads(qb.list_runs().to_json(orient="records"))
    rows.sort(key=lambda row: row["created"] or "")  # the newest stands last
    if stale:
        versions = {None, measurement.VERSION}  # none: imported captures, and unreadable files
        rows = [row for row in rows if row["problem"] or row[VERSION] not in versions]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        row["file"] = Path(row["path"]).name  # the last line names the folder of all
    shown = (VERSION, *SHOWN) if stale else SHOWN
    print_table([{name: row[name] for name in shown} for row in rows if not row["problem"]])
    print_warnings(row["problem"] for row in rows if row["problem"])
    what = f"runs of another measurement version than {measurement.VERSION}" if stale else "runs"
    count = sum(not row["problem"] for row in rows)
    click.echo(f"{count} {what} in {default_folder()}")


@click.command("packets")
@click.argument("run", metavar="RUN")
@options.around
@click.option("--flow", help="Label of the only flow to show. [default: all]")
@click.option("--count", type=int, default=50, show_default=True, help="Number of packets.")
@options.as_json
def packets_command(run: str, around_s: float, flow: str | None, count: int, as_json: bool) -> None:
    """Show the packets around a time, with their headers.

    RUN is a file or the name of a stored run that was made with --keep pcap.
    """
    import xarray as xr

    from qbkit.studies.results import is_cube

    opened = qb.open_results(run)
    if not isinstance(opened, xr.Dataset) or is_cube(opened):
        raise click.UsageError(f"{run} is no run; give FILE.nc, or a name of `qbkit runs`")
    if _is_published(opened):
        again = f"qbkit replay {shlex.quote(run)} --at {around_s:g} --out FILE.html"
        raise click.UsageError(
            f"{run} is a published run, and these have no packets; `{again}` runs it again and "
            "draws them"
        )
    found = opened.qb.packets(around_s, flow=flow, count=count).reset_index()
    if as_json:
        print_json(json.loads(found.to_json(orient="records")))
        return
    texts = {"time_s": "{:.6f}", "queue_delay_ms": "{:.3f}"}
    for name in found.columns.intersection([*texts]):
        found[name] = [texts[name].format(v) if v == v else "" for v in found[name]]
    print_frame(found.astype(object).where(found.notna(), ""))


def _is_published(run: Any) -> bool:
    """Whether a run of flows, opened whole, has no packets, as those that are published."""
    return "packet_flow" not in run and "spec" in run.attrs and "web_load" not in run.attrs


@click.command("import-pcaps")
@click.argument("before", type=options.PATH)
@click.argument("after", type=options.PATH)
@click.option("--flow", "flows", multiple=True, required=True, metavar="PORT=LABEL")
@click.option(
    "--sender",
    multiple=True,
    help="IP address that sends the data; repeatable. "
    "[default: the end that sends most bytes of a port]",
)
@click.option("--rtt-ms", type=float, help="Base RTT. [default: that of the handshakes]")
@click.option("--propagation-ms", type=float, default=0.0, help="Delay between the captures.")
@click.option("--out", type=options.PATH, required=True, help="File to write.")
@options.force
@options.as_json
def import_pcaps_command(
    before: Path,
    after: Path,
    flows: tuple[str, ...],
    out: Path,
    force: bool,
    as_json: bool,
    **params: Any,
) -> None:
    """Turn captures of both sides of a queue into a run.

    They may be made elsewhere.
    """
    from qbkit.store import require_free, require_run_name

    named = {}
    for text in flows:
        port, equals, label = text.partition("=")
        if not (equals and label and port.isdecimal()):
            raise click.BadParameter(f"{text!r} is not PORT=LABEL", param_hint="--flow")
        if int(port) in named:
            raise click.BadParameter(f"port {port} has two labels; keep one", param_hint="--flow")
        named[int(port)] = label
    require_run_name(out)
    if not force:
        require_free(out)
    sender = list(params.pop("sender"))
    dataset = qb.read_pcaps(before, after, flows=named, sender=sender, **params)
    qb.save_run(dataset, out)
    print_run(qb.load_run(out), as_json)
