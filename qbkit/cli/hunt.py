"""``qbkit hunt``: where an implementation is at its worst, as a case that repeats it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_json

UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
NOT_CONFIRMED = 4
"""Exit status if new seeds do not show the finding."""


class Budget(click.ParamType):
    """Processor time: ``90s``, ``30m`` or ``2h``."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", value)
        if not found:
            self.fail(f"{value!r} is no time; write 90s, 30m or 2h", param, ctx)
        return float(found[1]) * UNIT_S[found[2]]


@click.command("hunt")
@click.argument("sender", metavar="STACK:CC")
@click.option("--metric", default="share", show_default=True, help="share, utilisation or delay.")
@click.option(
    "--budget", type=Budget(), default="30m", show_default=True, help="Processor time, about."
)
@click.option("--out", type=click.Path(path_type=Path), help="Case to write (YAML).")
@options.engine
@options.scheduler
@options.as_json
def command(
    sender: str, metric: str, budget: float, out: Path | None, as_json: bool, **how: Any
) -> int:
    """Where is STACK:CC at its worst, compared with the kernel's controller?

    Searches networks, shrinks the worst to the simplest that shows the same, runs it with new
    seeds, and writes a case that `qbkit evaluate STACK:CC --book CASE.yaml` runs again. Runs are
    stored, so a hunt that was interrupted goes on. Exit status: 0, or 4 if new seeds do not show
    it.
    """
    from qbkit.studies.hunt.hunt import hunt

    found = hunt(sender, metric=metric, budget_s=budget, progress=not as_json, **how)
    path = out or Path(f"{found.book.name}-{metric}.yaml")
    found.save(path)
    if as_json:
        print_json({**found.to_dict(), "case": str(path)})
    else:
        click.echo(found.verdict)
        click.echo(f"written: {path}")
    for reason in found.failed:
        click.echo(f"warning: a run failed: {reason}", err=True)
    return 0 if found.confirmed else NOT_CONFIRMED
