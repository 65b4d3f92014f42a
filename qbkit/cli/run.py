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
OF_RUN = ("flows", "engine", "out", "keep", "rerun", "as_json")
"""What may stand beside a file, which says all the rest."""


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
@click.option("--out", type=click.Path(path_type=Path), help="File to write (netCDF).")
@click.option("--keep", multiple=True, help="Keep pcap or qlog files beside it.")
@click.option("--rerun", is_flag=True, help="Run again what exists already.")
@click.pass_context
def command(context: click.Context, flows: tuple[str, ...], as_json: bool, **words: Any) -> None:
    """Run flows over one bottleneck and store the dataset.

    SPEC.yaml (or .json) holds a whole experiment instead: fields of Experiment, with start times,
    extra RTTs, options and labels of its flows, and the topology.
    """
    how = {name: words.pop(name) for name in OF_RUN if name in words}
    if any(text.endswith(SPEC_ENDINGS) for text in flows):
        experiment = _experiment_in(context, flows)
    else:
        experiment = _experiment_of(flows, words)
    _leave_dask_out()
    from qbkit.execution.runner import run  # heavy, so only for an experiment that can be

    print_run(run(experiment, progress=not as_json, **how), as_json)


def _experiment_in(context: click.Context, flows: tuple[str, ...]) -> Experiment:
    """The experiment in the one file; all that it could contradict is refused."""
    if len(flows) > 1:
        raise click.UsageError(f"give one SPEC.yaml, or flows; not {' '.join(flows)}")
    for name in context.params.keys() - set(OF_RUN):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} belongs into {flows[0]}, which holds the experiment")
    return Experiment.from_file(flows[0])


def _experiment_of(flows: tuple[str, ...], words: dict[str, Any]) -> Experiment:
    """The experiment that the command line describes."""
    given = {name: words[name] for name in OF_EXPERIMENT if words[name] is not None}
    reverse = [Flow(text, direction="reverse") for text in words["reverse"]]
    fields: dict[str, Any] = {"flows": [*flows, *reverse], **given}
    return Experiment(bottleneck=bottleneck(words), **fields)


def _leave_dask_out() -> None:
    """Let xarray believe that Dask is not installed, in a process that has not used either.

    It would load Dask (0.5 s) to see that the arrays of a run are none of Dask's.
    """
    if "xarray" not in sys.modules:
        sys.modules["dask"] = None  # type: ignore[assignment]  # what import takes for "not there"
