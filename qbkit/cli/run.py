"""``qbkit run``: flows over one bottleneck, or a whole experiment from a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_run
from qbkit.spec import Experiment, Flow

SPEC_ENDINGS = (".yaml", ".yml", ".json")
OF_EXPERIMENT = ("duration_s", "seed", "jitter_ms", "start_window_s")
"""Options that are fields of the experiment."""
OF_RUN = ("flows", "engine", "out", "keep", "rerun", "force", "as_json")
"""Parameters that may accompany a spec file, which holds everything else."""


@click.command("run")
@click.argument("flows", nargs=-1, required=True, metavar="STACK:CC [STACK:CC ...] | SPEC.yaml")
@network_options
@options.engine
@options.as_json
@click.option(
    "--reverse",
    multiple=True,
    metavar="STACK:CC",
    help="A flow in the other direction; repeatable.",
)
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
@click.option("--out", type=click.Path(path_type=Path), help="File to write (netCDF).")
@click.option("--keep", multiple=True, help="Keep pcap or qlog files beside it.")
@click.option("--rerun", is_flag=True, help="Run again even if the run is stored.")
@options.force
@click.pass_context
def command(context: click.Context, flows: tuple[str, ...], as_json: bool, **params: Any) -> None:
    """Run flows over one bottleneck and store the dataset.

    SPEC.yaml (or .json) describes a whole experiment instead: the fields of Experiment, including
    the topology and each flow's start time, extra RTT, options and label. On the command line they
    follow a question mark, in quotation marks: 'quinn:cubic?initial_window_packets=20&start_s=5'.
    """
    how = {name: params.pop(name) for name in OF_RUN if name in params}
    if any(text.endswith(SPEC_ENDINGS) for text in flows):
        experiment = _experiment_in(context, flows)
    else:
        experiment = _experiment_of(flows, params)
    _leave_dask_out()
    from qbkit.execution.runner import run  # slow to import, so after the experiment is valid

    print_run(run(experiment, progress=not as_json, **how), as_json)


def _experiment_in(context: click.Context, flows: tuple[str, ...]) -> Experiment:
    """The experiment in the file; UsageError for options that belong into the file."""
    if len(flows) > 1:
        raise click.UsageError(f"give one SPEC.yaml or flows, not {' '.join(flows)}")
    for name in context.params.keys() - set(OF_RUN):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} belongs in {flows[0]}, which holds the experiment")
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
