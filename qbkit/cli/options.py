"""Options that several commands share."""

from __future__ import annotations

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
engine = click.option(
    "--engine", help="virtual (default), physical (the same guest in real time), or host."
)
force = click.option(
    "--force", is_flag=True, help="Overwrite --out even if it holds another experiment's run."
)
scheduler = click.option("--scheduler", help="Address of a Dask scheduler. [default: this machine]")
