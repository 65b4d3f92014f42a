"""``qbkit conformance`` and ``qbkit gate``: does a stack behave like the reference? For CI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_frame, print_json, print_warnings

GATES = ("min_conformance", "max_delta_throughput_mbps", "max_delta_delay_ms")


@click.command("conformance")
@click.argument("test", metavar="STACK:CC")
@click.option("--reference", default="tcp:cubic", show_default=True, help="What to conform to.")
@network_options
@options.engine
@options.as_json
@options.seeds("Trials of each side.")
@click.option("--definition", default="imc22", show_default=True, help="imc22|refined|quicbench.")
@click.option(
    "--min",
    "min_conformance",
    type=options.Least(),
    help="Gate: least conformance, from 0 to 1; floor: the noise floor less 0.1.",
)
@click.option("--max-delta-throughput-mbps", type=float, help="Gate: largest Δ-throughput.")
@click.option("--max-delta-delay-ms", type=float, help="Gate: largest Δ-delay.")
@click.option("--explain", "explaining", is_flag=True, help="Say what most likely sets it apart.")
@click.option("--details", is_flag=True, help="Print the numbers, intervals and p-values as well.")
def conformance_command(
    test: str,
    reference: str,
    definition: str,
    explaining: bool,
    details: bool,
    as_json: bool,
    **params: Any,
) -> int:
    """Does STACK:CC behave like the reference?

    By the Performance Envelope of IMC '22. Gates look at the 95 % interval over the seeds. Exit
    status: 0 if all gates are met (or none is given), 3 if one fails, 4 if one is undecided and
    none fails: more seeds would decide it. Errors exit with 1 or 2.
    """
    from qbkit.metrics.envelopes.envelope import require_hull  # slow to load

    bounds = _bounds(params)

    if definition not in qb.metrics.DEFINITIONS:
        raise click.BadParameter(
            f"choose from {', '.join(qb.metrics.DEFINITIONS)}", param_hint="--definition"
        )
    link = bottleneck(params)
    how = {"bottleneck": link, "progress": not as_json, **params}
    explained = None
    if explaining:
        explained = qb.explain(test, reference, definition=definition, **how)
        study = explained.study
    else:
        require_hull(definition, params["duration_s"], link.rtt_ms)
        study = qb.conformance_study(test, reference, **how)
    result = study.assess(definition=definition)
    verdict = explained.verdict if explained else study.verdict(definition=definition)
    gates = study.gates(definition=definition, **bounds)
    answer = qb.metrics.answer_of(gates)
    if as_json:
        report = {"test": test, "reference": reference, **result.to_dict()}
        report |= {"verdict": str(verdict), "faults": [f._asdict() for f in study.faults]}
        if gates:
            report |= {"answer": answer, "gates": [gate.to_dict() for gate in gates]}
        print_json({**report, "explanation": explained.to_dict()} if explained else report)
    else:
        click.echo(str(verdict))
        for line in explained.next_lines if explained else ():
            click.echo(line)
        for gate in gates:
            click.echo(f"gate {gate.sentence}")
        if details:
            _print_details(study, result, explained)
    print_warnings(result.warnings)
    return options.STATUS[answer]


def _print_details(
    study: qb.Study, result: qb.metrics.Assessment, explained: qb.Explanation | None
) -> None:
    """The numbers of the verdict, the known faults, and what differs in the packets."""
    from qbkit.metrics.verdicts.reasons import sentence

    for fault in study.faults:
        click.echo(f"\nKnown fault, {fault}")
    click.echo(f"\n{sentence(result.reasons)}")
    print_frame(result.frame())
    if explained:
        click.echo(f"\n{sentence(explained.reasons)}")
        print_frame(explained.frame().drop(columns="parameter"))


def _bounds(params: dict[str, Any]) -> dict[str, Any]:
    """The gates' bounds, taken out of ``params``; SpecError for an impossible one."""
    from qbkit.metrics.verdicts.gates import require_bounds

    bounds = {name: params.pop(name) for name in GATES}
    require_bounds(*bounds.values())
    return bounds


@click.command("gate", context_settings={"default_map": {"duration_s": 60.0}})
@click.argument("sender", metavar="STACK:CC")
@click.option("--reference", help="What to conform to. [default: the kernel's of the family]")
@options.flows(
    "--beside",
    "Rival for a share of the link; repeat it. [default: tcp:cubic, tcp:reno and tcp:bbr]",
)
@options.seeds("Trials of each pair.")
@click.option(
    "--min",
    "min_conformance",
    type=options.Least(),
    default="floor",
    show_default=True,
    help="Least conformance, from 0 to 1; floor: the noise floor less 0.1.",
)
@click.option("--max-share", "max_share_percent", type=float, help="Most it may take, in %.")
@click.option(
    "--baseline",
    type=options.PATH,
    help="baseline.zip of an earlier gate: did this build change anything?",
)
@click.option("--bbr-draft", is_flag=True, help="Also the test cases of the draft of BBR.")
@click.option("--evaluate", "evaluation", is_flag=True, help="Also the quick evaluation.")
@options.folder("gate", "summary.md, its pictures, junit.xml and baseline.zip")
@network_options
@options.engine
@options.as_json
def gate_command(
    sender: str, beside: tuple[str, ...], out: Path, as_json: bool, **params: Any
) -> int:
    """Check a build of STACK:CC, as in CI.

    It may be a program's path: ./build/mine:cubic. Does it conform to the reference, what does it
    take beside other controllers, and did it change since a baseline? Exit status: 0 if all checks
    are met, 3 if one fails, 4 if one is undecided and none fails. Errors exit with 1 or 2.
    """
    from qbkit.studies.gate import RIVALS, gate, save_gate
    from qbkit.studies.gate.report import make_folder, to_dict

    link = bottleneck(params)
    make_folder(out)
    gated = gate(sender, rivals=beside or RIVALS, bottleneck=link, progress=not as_json, **params)
    summary = save_gate(gated, out)
    if as_json:
        print_json({**to_dict(gated), "summary": str(summary)})
    else:
        for check in gated.checks:
            click.echo(f"{check.name}: {check.answer}: {check.sentence}")
        click.echo(str(summary))
    return options.STATUS[gated.answer]
