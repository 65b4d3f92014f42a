"""``qbkit runs``: list the stored runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table

SHOWN = ("flows", "rate_mbps", "rtt_ms", "qdisc", "duration_s", "seed", "created", "file")


@click.command("runs")
@options.as_json
def command(as_json: bool) -> None:
    """List the stored runs; files that cannot be read become warnings with the reason."""
    from qbkit.store import default_folder, list_runs

    # Through JSON, which turns NaN into null and NumPy numbers into Python numbers.
    rows = json.loads(list_runs().to_json(orient="records"))
    if as_json:
        print_json(rows)
        return
    for row in rows:
        row["file"] = Path(row["path"]).name  # the last line names the folder of all
    print_table([{name: row[name] for name in SHOWN} for row in rows if not row["problem"]])
    for row in rows:
        if row["problem"]:
            click.echo(f"warning: {row['problem']}", err=True)
    click.echo(f"{len(rows)} runs in {default_folder()}")
