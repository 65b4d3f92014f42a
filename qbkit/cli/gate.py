"""``qbkit gate``: everything that CI asks of a build, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.network import bottleneck, network_options
from qbkit.cli.output import print_json


@click.command("gate", context_settings={"default_map": {"duration_s": 60.0}})
@click.argument("sender", metavar="STACK:CC")
@click.option("--reference", help="What to conform to. [default: the kernel's of the family]")
@click.option(
    "--beside",
    multiple=True,
    metavar="STACK:CC",
    help="Rival for a share of the link; repeat it. [default: tcp:cubic, tcp:reno and tcp:bbr]",
)
@click.option("--seeds", type=int, default=5, show_default=True, help="Trials of each pair.")
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
    type=click.Path(path_type=Path),
    help="baseline.zip of an earlier gate: did this build change anything?",
)
@click.option("--bbr-draft", is_flag=True, help="Also the test cases of the draft of BBR.")
@click.option("--evaluate", "evaluation", is_flag=True, help="Also the quick evaluation.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("gate"),
    show_default=True,
    help="Folder for summary.md, its pictures, junit.xml and baseline.zip.",
)
@network_options
@options.engine
@options.as_json
def command(sender: str, beside: tuple[str, ...], out: Path, as_json: bool, **params: Any) -> int:
    """Check a build of STACK:CC, which may be a program's path: ./build/mine:cubic.

    Does it conform to the reference, what does it take beside other controllers, and did it change
    since a baseline? Exit status: 0 if all checks are met, 3 if one fails, 4 if one is undecided
    and none fails. Errors exit with 1 or 2.
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
