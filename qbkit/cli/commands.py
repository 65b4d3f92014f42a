"""The command ``qbkit``: a thin skin on the Python functions of the same names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from qbkit.cli.output import plain, print_frame, print_json, print_run, print_table
from qbkit.errors import QbkitError
from qbkit.spec import Bottleneck, Experiment, Flow, Qdisc

Command = TypeVar("Command", bound=Callable[..., Any])

RUN_WORDS = ("duration_s", "seed", "jitter_ms", "start_window_s")
"""Options of ``run`` that are fields of the experiment."""
BELOW_MINIMUM = 3
"""Exit status of ``conformance --min`` when the implementation does not reach it."""


def main() -> None:
    """Entry point: expected failures become one sentence on stderr and a non-zero exit."""
    warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
    try:
        status = group.main(standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"qbkit: {error.format_message()} (see --help)", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("qbkit: interrupted; nothing half-written was left", err=True)
        sys.exit(130)
    except QbkitError as error:
        click.echo(f"qbkit: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else 0)


def _network_options(command: Command) -> Command:
    """The options that describe the bottleneck and the length, shared by the commands."""
    for option in reversed(
        [
            click.option("--rate-mbps", type=float, default=20, show_default=True, help="Rate."),
            click.option("--rtt-ms", type=float, default=50, show_default=True, help="Base RTT."),
            click.option("--buffer-bdp", type=float, help="Buffer in BDP. [default: 1]"),
            click.option("--buffer-bytes", type=int, help="Buffer in bytes."),
            click.option("--buffer-packets", type=int, help="Buffer in packets."),
            click.option(
                "--qdisc",
                type=click.Choice(get_args(Qdisc)),
                default="fifo",
                show_default=True,
                help="Queue discipline.",
            ),
            click.option("--loss-percent", type=float, default=0, help="Random loss."),
            click.option(
                "--duration-s", type=float, default=120, show_default=True, help="Length."
            ),
            click.option("--engine", help="virtual (default), or host: in real time."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        ]
    ):
        command = option(command)
    return command


def _bottleneck(words: dict[str, Any]) -> Bottleneck:
    """Take the bottleneck's options out of the command's words."""
    given = {name: words.pop(name) for name in list(words) if name in Bottleneck.model_fields}
    return Bottleneck(**{name: value for name, value in given.items() if value is not None})


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qbkit")
def group() -> None:
    """Measure congestion control of real QUIC and TCP stacks, in virtual time."""


def _leave_dask_out() -> None:
    """Let xarray believe that Dask is not installed, in a process that has not used either.

    It would load Dask (0.5 s) to see that the arrays of a run are none of Dask's.
    """
    if "xarray" not in sys.modules:
        sys.modules["dask"] = None  # type: ignore[assignment]  # what import takes for "not there"


@group.command("run")
@click.argument("flows", nargs=-1, required=True, metavar="STACK:CC [STACK:CC ...]")
@_network_options
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all randomness.")
@click.option("--jitter-ms", type=float, help="Half-width of the senders' jitter.")
@click.option(
    "--start-window-s", type=float, help="Window of the flows' starts. [default: 10 base RTTs]"
)
@click.option("--out", type=click.Path(path_type=Path), help="File to write (netCDF).")
@click.option("--keep", multiple=True, help="Keep pcap or qlog files beside it.")
@click.option("--rerun", is_flag=True, help="Run again what exists already.")
def run_command(flows: tuple[str, ...], as_json: bool, **words: Any) -> None:
    """Run flows over one bottleneck and store the dataset."""
    link = _bottleneck(words)
    spec = {name: words.pop(name) for name in RUN_WORDS}
    experiment = Experiment(
        bottleneck=link,
        flows=tuple(Flow(text) for text in flows),
        **{name: value for name, value in spec.items() if value is not None},
    )
    _leave_dask_out()
    from qbkit.execution.runner import run  # heavy, so only for an experiment that can be

    dataset = run(experiment, progress=not as_json, **words)
    print_run(dataset, as_json)


@group.command("sweep")
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.yaml")
@click.option("--out", required=True, help="Folder, or URL that fsspec knows, for the results.")
@click.option("--scheduler", help="Address of a Dask scheduler. [default: this machine]")
@click.option("--engine", help="virtual (default), or host: in real time.")
@click.option("--dry-run", is_flag=True, help="Say how many runs it has and what they cost.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def sweep_command(
    spec: Path, out: str, scheduler: str | None, engine: str | None, dry_run: bool, as_json: bool
) -> int:
    """Run the product of the values in SPEC.yaml; what is in the folder is not run again."""
    from qbkit.execution.sweeps import estimate, run_sweep
    from qbkit.spec.sweep import Sweep

    sweep = Sweep.from_file(spec)
    if dry_run:
        report = estimate(sweep, out, engine)
        if as_json:
            print_json(report)
        else:
            click.echo(
                f"{report['runs']} runs, {report['missing']} to do, about "
                f"{report['cpu_s'] / 3600:.1f} processor hours"
            )
        return 0
    outcome = run_sweep(sweep, out, engine=engine, scheduler=scheduler, progress=not as_json)
    failures = [{"run": f.name, "reason": f.reason} for f in outcome.failures]
    if as_json:
        counts = {"runs": outcome.runs, "ran": outcome.ran}
        print_json({**counts, "failures": failures, "out": out})
    else:
        click.echo(f"{outcome.runs} runs, {outcome.ran} now, {len(failures)} failed: {out}")
    for failure in failures:
        click.echo(f"{failure['run']}: {failure['reason']}", err=True)
    return 1 if failures else 0


@group.command("notebook")
@click.argument("name")
@click.option(
    "-p",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="A parameter; given several times with the same name, a grid.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("executed"),
    show_default=True,
    help="Folder for what was executed.",
)
@click.option("--scheduler", help="Address of a Dask scheduler. [default: this machine]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def notebook_command(
    name: str,
    parameters: tuple[tuple[str, str], ...],
    out: Path,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Execute the notebook whose name begins with NAME, as 01, and write its HTML beside it."""
    import yaml

    from qbkit.execution.notebooks import execute_grid, to_html

    grid: dict[str, list[Any]] = {}
    for key, value in parameters:
        grid.setdefault(key, []).append(yaml.safe_load(value))
    done, failed = execute_grid(
        name, out.resolve(), grid, scheduler=scheduler, progress=not as_json
    )
    pages = [to_html(path) for path in done]
    if as_json:
        print_json(
            {
                "notebooks": [str(p) for p in done],
                "html": [str(p) for p in pages],
                "failures": [{"notebook": n, "reason": r} for n, r in failed.items()],
            }
        )
    else:
        for page in pages:
            click.echo(str(page))
    for stem, reason in failed.items():
        click.echo(f"{stem}: {reason}", err=True)
    return 1 if failed else 0


@group.command("conformance")
@click.argument("test", metavar="STACK:CC")
@click.option("--reference", default="tcp:cubic", show_default=True, help="What to conform to.")
@_network_options
@click.option("--seeds", type=int, default=5, show_default=True, help="Trials of each side.")
@click.option("--definition", default="imc22", show_default=True, help="imc22|refined|quicbench.")
@click.option("--min", "minimum", type=float, help="Exit with 3 below this conformance.")
@click.option("--explain", "explaining", is_flag=True, help="Say what most likely sets it apart.")
def conformance_command(
    test: str,
    reference: str,
    definition: str,
    minimum: float | None,
    explaining: bool,
    as_json: bool,
    **words: Any,
) -> int:
    """Does STACK:CC behave like the reference? (Performance Envelope, IMC'22)."""
    from qbkit.metrics import DEFINITIONS

    if definition not in DEFINITIONS:
        raise click.BadParameter(f"choose from {', '.join(DEFINITIONS)}", param_hint="--definition")
    link = _bottleneck(words)
    how = {"bottleneck": link, "progress": not as_json, **words}
    explained = None
    if explaining:
        from qbkit.studies.explain import explain

        explained = explain(test, reference, definition=definition, **how)
        result = explained.assessment
    else:
        from qbkit.studies.conformance import conformance_study

        result = conformance_study(test, reference, **how).assess(definition=definition)
    report = {"test": test, "reference": reference, **result.to_dict()}
    if as_json:
        print_json({**report, "explanation": explained.to_dict()} if explained else report)
        return _gate(report, minimum)
    click.echo(f"{test} against {reference}: {result.verdict}")
    for name, value in report.items():
        if name not in ("test", "reference", "outcome", "verdict"):
            click.echo(f"{name:32} {plain(value)}")
    if explained:
        print_frame(explained.frame().drop(columns="parameter"))
        click.echo(explained.sentence)
    return _gate(report, minimum)


def _gate(report: dict[str, Any], minimum: float | None) -> int:
    """0, or 3 when the conformance is below the minimum or cannot be told from it."""
    if minimum is None:
        return 0
    low = (report["conformance_ci"] or [None])[0]
    if low is not None and low >= minimum:
        return 0
    shown = "unknown (one seed)" if low is None else f"{low:.2f}"
    click.echo(
        f"qbkit: conformance {report['conformance']:.2f} (lower bound {shown}) does not surely "
        f"reach {minimum:g}",
        err=True,
    )
    return BELOW_MINIMUM


@group.group("stacks", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the README's table.")
@click.pass_context
def stacks_command(context: click.Context, as_json: bool, as_markdown: bool) -> None:
    """List the stacks: controllers, version, ready or how to make it ready."""
    from qbkit.stacks.table import markdown_table, stack_rows

    if context.invoked_subcommand:
        return
    if as_markdown:
        click.echo(markdown_table())
        return
    rows = [{name: row[name] for name in row if name != "options"} for row in stack_rows()]
    if as_json:
        print_json(rows)
    else:
        print_table([{**row, "controllers": " ".join(row["controllers"])} for row in rows])


@stacks_command.command("build")
@click.argument("names", nargs=-1, metavar="[STACK ...]")
def stacks_build_command(names: tuple[str, ...]) -> int:
    """Build the drivers of all stacks, or of those named, side by side where memory allows."""
    from qbkit import stacks
    from qbkit.stacks.make_ready import build_all

    chosen = [stacks.get(name) for name in names] or stacks.all_stacks()
    failed = 0
    for stack, problem in build_all(chosen, lambda text: click.echo(text, err=True)):
        failed |= bool(problem)
        click.echo(f"{stack.name}: {problem or 'ready'}", err=bool(problem))
    return failed


@group.command("kernel")
@click.option("--build", "do_build", is_flag=True, help="Build it, if it is not built yet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def kernel_command(do_build: bool, as_json: bool) -> None:
    """Show the virtual-time kernel, or build it."""
    from qbkit.testbed import engines, kernel

    if do_build:
        kernel.build(lambda text: click.echo(text, err=True))
    found = kernel.require()
    engines.run_in_guest(["/bin/true"])
    facts = {"path": str(found.path), "version": found.version, "patches": found.patches}
    if as_json:
        print_json(facts)
    else:
        missing = f" without {', '.join(found.missing_patches)}" if found.missing_patches else ""
        click.echo(f"Linux {found.version}{missing} boots: {found.path}")


@group.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor_command(as_json: bool) -> int:
    """Say what works here, what is missing, and the command that mends it."""
    from qbkit.cli.doctor import examine

    checks = [check.to_dict() for check in examine()]
    if as_json:
        print_json(checks)
    else:
        print_table([{**c, "ok": "yes" if c["ok"] else "NO"} for c in checks])
    essential = ("cache folder", "guest memory", "mininet", "virtual-time kernel", "stack tcp")
    broken = [str(c["check"]) for c in checks if not c["ok"] and c["check"] in essential]
    if broken:
        click.echo(f"qbkit: not working here: {', '.join(broken)}", err=True)
    return 1 if broken else 0


@group.command("import-pcaps")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("behind", type=click.Path(path_type=Path))
@click.option("--flow", "flows", multiple=True, required=True, metavar="PORT=LABEL")
@click.option("--sender", required=True, multiple=True, help="IP address of the sender.")
@click.option("--rtt-ms", type=float, help="Base RTT of the path.")
@click.option("--propagation-ms", type=float, default=0.0, help="Delay between the captures.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def import_command(
    before: Path, behind: Path, flows: tuple[str, ...], out: Path, as_json: bool, **words: Any
) -> None:
    """Turn captures of both sides of a queue, made elsewhere, into a run dataset."""
    from qbkit import store, traces

    named = {}
    for text in flows:
        port, equals, label = text.partition("=")
        if not (equals and label and port.isdigit()):
            raise click.BadParameter(f"{text!r} is not PORT=LABEL", param_hint="--flow")
        named[int(port)] = label
    sender = list(words.pop("sender"))
    dataset = traces.read_pcaps(before, behind, flows=named, sender=sender, **words)
    store.save_run(dataset, out)
    print_run(store.load_run(out), as_json)
