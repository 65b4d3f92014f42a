"""``qbkit runs``: list the stored runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table

SHOWN = ("flows", "rate_mbps", "rtt_ms", "qdisc", "duration_s", "seed", "created", "file")
VERSION = "measurement_version"


@click.command("runs")
@click.option("--stale", is_flag=True, help="Only runs of another measurement version.")
@options.as_json
def command(stale: bool, as_json: bool) -> None:
    """List the stored runs; files that cannot be read become warnings with the reason."""
    from qbkit import measurement
    from qbkit.store import default_folder, list_runs

    # Through JSON, which turns NaN into null and NumPy numbers into Python numbers.
    rows = json.loads(list_runs().to_json(orient="records"))
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
    for row in rows:
        if row["problem"]:
            click.echo(f"warning: {row['problem']}", err=True)
    what = f"runs of another measurement version than {measurement.VERSION}" if stale else "runs"
    count = sum(not row["problem"] for row in rows) if stale else len(rows)
    click.echo(f"{count} {what} in {default_folder()}")
