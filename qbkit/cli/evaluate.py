"""``qbkit evaluate``: a controller along a book of questions, such as RFC 9743."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_frame

DEFAULT_OUT = "evaluation.html"


@click.command("evaluate")
@click.argument("sender", metavar="STACK:CC")
@click.option("--book", default="rfc9743", show_default=True, help="rfc9743, c4, or a YAML file.")
@click.option("--quick", is_flag=True, help="Few settings and three seeds: about ten minutes.")
@click.option("--seeds", type=click.IntRange(min=2), help="Seeds of each setting. [default: 5]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    multiple=True,
    help=f"Report: .html, .md or .json; may be given more than once. [default: {DEFAULT_OUT}]",
)
@options.engine
@options.scheduler
@options.as_json
def command(sender: str, out: tuple[Path, ...], as_json: bool, **params: Any) -> int:
    """Does STACK:CC do more harm than standard controllers? (RFC 9743)

    Each question of the book gets an answer, beside the kernel's Reno and CUBIC. Runs are stored,
    so an evaluation that was interrupted goes on where it was. Exit status: 0 if it is worse
    nowhere, 3 if it is worse somewhere, 4 if something is undecided and nothing is worse.
    """
    from qbkit.studies.evaluation.evaluate import evaluate
    from qbkit.studies.evaluation.report import as_json as to_json
    from qbkit.studies.evaluation.report import require_name, save_evaluation

    targets = out or (() if as_json else (Path(DEFAULT_OUT),))
    for target in targets:
        require_name(target)
    result = evaluate(sender, progress=not as_json, **params)
    for target in targets:
        save_evaluation(result, target)
    if as_json:
        click.echo(to_json(result), nl=False)
    else:
        print_frame(result.summary().drop(columns="answer"))
        for target in targets:
            click.echo(f"written: {target}")
    for reason in dict.fromkeys(result.failed):
        click.echo(f"warning: a run failed: {reason}", err=True)
    answers = {result.answer(criterion) for criterion in result.book.criteria}
    return 3 if "more" in answers else 4 if "undecided" in answers else 0
