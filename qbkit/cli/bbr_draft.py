"""``qbkit bbr-draft``: the test cases of draft-ietf-ccwg-bbr."""

from __future__ import annotations

from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_frame


@click.command("bbr-draft")
@click.argument("sender", metavar="STACK:CC")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True)
@options.engine
@options.scheduler
@options.as_json
def command(sender: str, as_json: bool, **params: Any) -> int:
    """Does STACK:CC do what the draft of BBR says? (draft-ietf-ccwg-bbr, test cases)

    Each case is an experiment, judged by what the link shows and the sender's own state. Exit
    status: 0 if no case differs, 3 if one does, 4 if seeds disagree and no case differs.
    """
    from qbkit.studies.evaluation.cases import DIFFERS, VARIES, judge_cases

    report = judge_cases(sender, progress=not as_json, **params)
    if as_json:
        click.echo(report.to_json())
    else:
        print_frame(report.frame().drop(columns="command"))
    return 3 if DIFFERS in report.answers else 4 if VARIES in report.answers else 0
