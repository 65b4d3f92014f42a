"""``qbkit sweep``: run every combination of the values of an experiment's fields."""

from __future__ import annotations

from pathlib import Path

import click

from qbkit.cli import options
from qbkit.cli.output import print_json


@click.command("sweep")
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.yaml")
@click.option("--out", help="Folder or fsspec URL for the results; a dry run needs none.")
@options.scheduler
@options.engine
@click.option("--extend", is_flag=True, help="Run only what is not published beside SPEC.yaml yet.")
@click.option("--dry-run", is_flag=True, help="Show the number of runs and their cost only.")
@options.as_json
def command(
    spec: Path,
    out: str | None,
    scheduler: str | None,
    engine: str | None,
    extend: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run every combination of the values in SPEC.yaml that has no result in the folder yet."""
    from qbkit.execution.sweeps import estimate, run_sweep
    from qbkit.spec.sweep import Sweep
    from qbkit.store.published import load_published

    sweep = Sweep.from_file(spec)
    published = load_published(spec) if extend else None
    if dry_run:
        report = estimate(sweep, out, engine, published=published)
        if as_json:
            print_json(report)
        else:
            click.echo(
                f"{report['runs']} runs, {report['missing']} to do, about "
                f"{report['cpu_s'] / 3600:.1f} processor hours"
            )
        return 0
    if out is None:
        raise click.UsageError("give the folder for the results with --out, or use --dry-run")
    outcome = run_sweep(
        sweep, out, engine=engine, scheduler=scheduler, progress=not as_json, published=published
    )
    failures = [{"run": f.name, "reason": f.reason} for f in outcome.failures]
    if as_json:
        counts = {"runs": outcome.runs, "ran": outcome.ran, "ended_early": outcome.ended_early}
        print_json({**counts, "failures": failures, "out": out})
    else:
        early = f", {outcome.ended_early} ended early" if outcome.ended_early else ""
        click.echo(f"{outcome.runs} runs, {outcome.ran} now{early}, {len(failures)} failed: {out}")
    for failure in failures:
        click.echo(f"{failure['run']}: {failure['reason']}", err=True)
    return 1 if failures else 0
