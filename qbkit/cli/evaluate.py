"""A controller along a book of cases: ``qbkit evaluate``, ``bbr-draft`` and ``hunt``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.output import print_frame, print_json, print_warnings

DEFAULT_OUT = "evaluation.html"

UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
EXIT = {"more": 3, "differs": 3, "undecided": 4, "varies": 4, "not run": 4}
"""The worst answer → exit status; 0 for others."""
NOT_CONFIRMED = 4
"""Exit status if new seeds do not show the finding."""


def reports(default: str = "") -> Callable[..., Any]:
    """The files ``--out``, and what is said of their default."""
    about = f"Report: .html, .md or .json; may be given more than once.{default}"
    return click.option("--out", type=options.PATH, multiple=True, help=about)


@click.command("evaluate")
@click.argument("sender", metavar="STACK:CC")
@click.option(
    "--book",
    default="rfc9743",
    show_default=True,
    help="rfc9743, bbr-draft, c4, shares, or a YAML file.",
)
@click.option("--quick", is_flag=True, help="Few settings and three seeds: about ten minutes.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Seeds of each setting, at least 2 but of test cases. [default: 5; 3 of each test case]",
)
@reports(f" [default: {DEFAULT_OUT}]")
@options.engine
@options.scheduler
@options.as_json
def evaluate_command(sender: str, out: tuple[Path, ...], as_json: bool, **params: Any) -> int:
    """Does STACK:CC do more harm than standard controllers?

    These are the questions of RFC 9743. Each question of the book gets an answer, beside the
    kernel's Reno and CUBIC. Runs are stored, so an evaluation that was interrupted goes on where it
    was. Exit status: 0 if it is worse nowhere, 3 if it is worse somewhere, 4 if something is
    undecided, or runs failed, and nothing is worse. For a book of test cases they are those of
    `qbkit bbr-draft`.
    """
    targets = out or (() if as_json else (Path(DEFAULT_OUT),))
    return _evaluated(sender, targets, as_json, **params)


@click.command("bbr-draft")
@click.argument("sender", metavar="STACK:CC")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True)
@reports()
@options.engine
@options.scheduler
@options.as_json
def bbr_draft_command(sender: str, out: tuple[Path, ...], as_json: bool, **params: Any) -> int:
    """Does STACK:CC do what the draft of BBR says?

    These are the test cases of draft-ietf-ccwg-bbr. Each case is an experiment, judged by what the
    link shows and the sender's own state. Short for `qbkit evaluate STACK:CC --book bbr-draft`.
    Exit status: 0 if no case differs, 3 if one does, 4 if seeds disagree, or runs failed, and no
    case differs.
    """
    return _evaluated(sender, out, as_json, book="bbr-draft", **params)


def _evaluated(sender: str, targets: Sequence[Path], as_json: bool, **params: Any) -> int:
    """Evaluate, write the reports, print the answers, and return the exit status."""
    from qbkit.execution.runner import check_writable
    from qbkit.studies.evaluation.saving import as_json as to_json
    from qbkit.studies.evaluation.saving import require_name

    for target in targets:
        require_name(target)
        check_writable(target)
    result = qb.evaluate(sender, progress=not as_json, **params)
    for target in targets:
        qb.save_evaluation(result, target)
    if as_json:
        click.echo(to_json(result), nl=False)
    else:
        summary = result.summary()  # a question's sentence begins with its answer
        print_frame(summary.drop(columns="answer") if "sentence" in summary else summary)
        for target in targets:
            click.echo(f"written: {target}")
    print_warnings(f"a run failed: {reason}" for reason in dict.fromkeys(result.failed))
    return EXIT.get(result.worst, 0)


class Budget(click.ParamType):
    """Processor time: ``90s``, ``30m`` or ``2h``."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", value)
        if not found:
            self.fail(f"{value!r} is no time; write 90s, 30m or 2h", param, ctx)
        return float(found[1]) * UNIT_S[found[2]]


@click.command("hunt")
@click.argument("sender", metavar="STACK:CC")
@click.option("--metric", default="share", show_default=True, help="share, utilisation or delay.")
@click.option(
    "--budget", type=Budget(), default="30m", show_default=True, help="Processor time, about."
)
@click.option("--out", type=options.PATH, help="Case to write (YAML).")
@options.engine
@options.scheduler
@options.as_json
def hunt_command(
    sender: str, metric: str, budget: float, out: Path | None, as_json: bool, **how: Any
) -> int:
    """Where is STACK:CC at its worst?

    Compares it with the kernel's controller: searches networks, shrinks the worst to the simplest
    that shows the same, runs it with new seeds, and writes a case that `qbkit evaluate STACK:CC
    --book CASE.yaml` runs again. Runs are stored, so a hunt that was interrupted goes on. Exit
    status: 0, or 4 if new seeds do not show it.
    """
    from qbkit.execution.runner import check_writable
    from qbkit.spec.spec_file import YAML

    if out is not None:
        if out.suffix not in YAML:
            raise click.UsageError(f"a case cannot be saved as {out.name}; write CASE.yaml")
        check_writable(out)
    found = qb.hunt(sender, metric=metric, budget_s=budget, progress=not as_json, **how)
    path = out or Path(f"{found.book.name}-{metric}.yaml")
    found.save(path)
    if as_json:
        print_json({**found.to_dict(), "case": str(path)})
    else:
        click.echo(found.verdict)
        click.echo(f"written: {path}")
    print_warnings(f"a run failed: {reason}" for reason in found.failed)
    return 0 if found.confirmed else NOT_CONFIRMED
