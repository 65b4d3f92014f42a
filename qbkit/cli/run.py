"""``qbkit run`` and ``qbkit sweep``: one experiment, or every combination of its values."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_json, print_run
from qbkit.spec import Experiment, Flow
from qbkit.spec.spec_file import ENDINGS

OF_EXPERIMENT = ("duration_s", "seed", "jitter_ms", "start_window_s", "ip_version")
"""Options that are fields of the experiment."""
OF_RUN = ("flows", "engine", "out", "keep", "rerun", "force", "as_json")
"""Parameters that may accompany a spec file, which holds everything else."""


@click.command("run")
@click.argument("flows", nargs=-1, required=True, metavar="STACK:CC [STACK:CC ...] | SPEC.yaml")
@network_options
@options.engine
@options.as_json
@options.flows("--reverse", "A flow in the other direction; repeatable.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all randomness.")
@click.option("--jitter-ms", type=float, help="Half-width of the senders' jitter.")
@click.option(
    "--start-window-s", type=float, help="Window of the flows' starts. [default: 10 base RTTs]"
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    metavar="'SECONDS KIND WHERE'",
    help="Forge packets, as in '5 reset on-path' or '5 too-big 600 off-path'; repeatable.",
)
@click.option("--ipv6", "ip_version", flag_value=6, type=int, help="Run over IPv6.")
@click.option("--out", type=options.PATH, help="File to write (netCDF).")
@click.option("--keep", multiple=True, help="Keep pcap or qlog in a folder beside it; repeatable.")
@click.option("--rerun", is_flag=True, help="Run again even if the run is stored.")
@options.force
@click.pass_context
def run_command(
    context: click.Context, flows: tuple[str, ...], as_json: bool, **params: Any
) -> None:
    """Run flows over one bottleneck and store the dataset.

    SPEC.yaml (or .json) describes a whole experiment instead: the fields of Experiment, including
    the topology and each flow's start time, extra RTT, options and label. On the command line they
    follow a question mark, in quotation marks: 'quinn:cubic?initial_window_packets=20&start_s=5'.
    """
    how = {name: params.pop(name) for name in OF_RUN if name in params}
    if any(text.endswith(ENDINGS) for text in flows):
        experiment = _experiment_in(context, flows)
    else:
        experiment = _experiment_of(flows, params)
    _leave_dask_out()
    print_run(qb.run(experiment, progress=not as_json, **how), as_json)


def _experiment_in(context: click.Context, flows: tuple[str, ...]) -> Experiment:
    """The experiment in the file; UsageError for options that belong into the file."""
    if len(flows) > 1:
        raise click.UsageError(f"give one SPEC.yaml or flows, not {' '.join(flows)}")
    for name, flag in options.given(context).items():
        if name not in OF_RUN:
            raise click.UsageError(f"{flag} belongs in {flows[0]}, which holds the experiment")
    return Experiment.from_file(flows[0])


def _experiment_of(flows: tuple[str, ...], params: dict[str, Any]) -> Experiment:
    """The experiment that the command line describes."""
    given = {name: params[name] for name in OF_EXPERIMENT if params[name] is not None}
    reverse = [Flow(text, direction="reverse") for text in params["reverse"]]
    fields: dict[str, Any] = {"flows": [*flows, *reverse], **given}
    if params["attacks"]:
        fields["attacks"] = params["attacks"]
    return Experiment(bottleneck=bottleneck(params), **fields)


def _leave_dask_out() -> None:
    """Make xarray treat Dask as not installed, unless this process has imported xarray already.

    xarray would load Dask (0.5 s) to find that the arrays of a run are not Dask arrays.
    """
    if "xarray" not in sys.modules:
        sys.modules["dask"] = None  # type: ignore[assignment]  # import then fails


@click.command("sweep")
@click.argument("spec", type=options.PATH, metavar="SPEC.yaml")
@click.option("--out", help="Folder or fsspec URL for the results; a dry run needs none.")
@options.scheduler
@options.engine
@click.option("--extend", is_flag=True, help="Run only what is not published beside SPEC.yaml yet.")
@click.option("--dry-run", is_flag=True, help="Show the number of runs and their cost only.")
@options.as_json
def sweep_command(
    spec: Path,
    out: str | None,
    scheduler: str | None,
    engine: str | None,
    extend: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run every combination of the values in SPEC.yaml.

    One that has a result in the folder is not run again.
    """
    from qbkit.execution.sweeps import estimate
    from qbkit.store.published import load_published

    sweep = qb.Sweep.from_file(spec)
    published = load_published(spec) if extend else None
    if dry_run:
        report = estimate(sweep, out, engine, published=published)
        if as_json:
            print_json(report)
        else:
            click.echo(
                f"{report['runs']} runs, {report['missing']} to do, about "
                f"{math.ceil(report['cpu_s'] / 60)} processor min"
            )
        return 0
    if out is None:
        raise click.UsageError("give the folder for the results with --out, or use --dry-run")
    outcome = qb.run_sweep(
        sweep, out, engine=engine, scheduler=scheduler, progress=not as_json, published=published
    )
    failures = outcome.report()
    if as_json:
        counts = {"runs": outcome.runs, "ran": outcome.ran, "ended_early": outcome.ended_early}
        print_json({**counts, "failures": failures, "out": out})
    else:
        early = f", {outcome.ended_early} ended early" if outcome.ended_early else ""
        click.echo(f"{outcome.runs} runs, {outcome.ran} now{early}, {len(failures)} failed: {out}")
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for failure in failures:
        by_reason.setdefault(failure["reason"], []).append(failure)
    for reason, (first, *others) in by_reason.items():
        point = ", ".join(f"{field} = {value}" for field, value in first["point"].items())
        more = f", and {len(others)} more" if others else ""
        click.echo(f"{first['run']} ({point}){more}: {reason}", err=True)
    return 1 if failures else 0
