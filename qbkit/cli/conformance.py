"""``qbkit conformance``: does a stack behave like the reference? And a gate for CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import plain, print_frame, print_json

BELOW_MINIMUM = 3
"""Exit status if the implementation does not reach ``--min``."""


@click.command("conformance")
@click.argument("test", metavar="STACK:CC")
@click.option("--reference", default="tcp:cubic", show_default=True, help="What to conform to.")
@network_options
@options.engine
@options.as_json
@click.option("--seeds", type=int, default=5, show_default=True, help="Trials of each side.")
@click.option("--definition", default="imc22", show_default=True, help="imc22|refined|quicbench.")
@click.option("--min", "minimum", type=float, help="Exit with 3 below this conformance.")
@click.option("--explain", "explaining", is_flag=True, help="Say what most likely sets it apart.")
def command(
    test: str,
    reference: str,
    definition: str,
    minimum: float | None,
    explaining: bool,
    as_json: bool,
    **params: Any,
) -> int:
    """Does STACK:CC behave like the reference? (Performance Envelope, IMC'22)."""
    from qbkit.metrics import DEFINITIONS

    if definition not in DEFINITIONS:
        raise click.BadParameter(f"choose from {', '.join(DEFINITIONS)}", param_hint="--definition")
    link = bottleneck(params)
    how = {"bottleneck": link, "progress": not as_json, **params}
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
    else:
        click.echo(f"{test} against {reference}: {result.verdict}")
        for name, value in report.items():
            if name not in ("test", "reference", "outcome", "verdict"):
                click.echo(f"{name:32} {plain(value)}")
    if explained and not as_json:
        print_frame(explained.frame().drop(columns="parameter"))
        click.echo(explained.sentence)
    return 0 if minimum is None else gate(result.conformance, result.conformance_ci, minimum)


def gate(conformance: float, interval: Sequence[float], minimum: float) -> int:
    """Exit status: 0 if the lower bound of the interval reaches the minimum, otherwise 3.

    A NaN bound, as with one seed, does not reach it. A failure is reported on stderr.
    """
    low = interval[0]
    if low >= minimum:
        return 0
    shown = f"{low:.2f}" if low == low else "unknown (one seed)"
    click.echo(
        f"qbkit: conformance {conformance:.2f} (lower bound {shown}) is not shown to "
        f"reach {minimum:g}",
        err=True,
    )
    return BELOW_MINIMUM
