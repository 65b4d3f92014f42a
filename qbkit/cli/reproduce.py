"""``qbkit reproduce`` and ``qbkit replay``: published and stored runs again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

import qbkit as qb
from qbkit.cli import options
from qbkit.cli.output import print_json, print_table
from qbkit.suggestions import did_you_mean

MOST_POINTS, MOST_VALUES = 20, 12
FIELDS = ("flow", "rate_mbps", "rtt_ms", "buffer_bdp", "seed")
PUBLISHED = Path("data")
"""Where a clone, and `qbkit notebooks copy`, have the published data."""
DIFFERENT = 3
"""Exit status if a number came out differently."""


@click.command("reproduce")
@click.argument("path", type=options.PATH)
@options.of_points
@click.option("--sample", type=click.IntRange(min=1), help="Only a random sample of this size.")
@click.option("--sample-seed", type=int, default=1, show_default=True, help="Seed of the sample.")
@options.as_json
def reproduce_command(
    path: Path,
    where: tuple[str, ...],
    sample: int | None,
    sample_seed: int,
    as_json: bool,
    **fields: str | None,
) -> int:
    """Run published points again, and compare.

    Says "the same", or what differs and by how much. PATH is a sweep's YAML, a table, or a folder
    of published data. Exit status: 0 if all points that can run here are the same, 3 if one
    differs, 1 if one failed, 2 for a wrong command line.
    """
    from qbkit.studies.reproduction import reproduce, without_points
    from qbkit.testbed import engines

    wanted = wanted_fields({**fields, "where": where})
    points = _chosen(path, wanted, sample, sample_seed)
    if not wanted:
        for file, reason in without_points(path):
            click.echo(f"no point: {file}: {reason}", err=True)
    engines.choose()  # without an engine, one sentence rather than a table of it
    if not as_json:
        click.echo(_announced(points), err=True)
    rows = []
    for i, point in enumerate(points):
        if not as_json:
            click.echo(f"{i + 1} of {len(points)}: {point.name}: ", nl=False, err=True)
        rows.append(reproduce(point))
        if not as_json:
            click.echo(rows[-1].verdict, err=True)
    _print(rows, as_json)
    verdicts = {found.verdict for found in rows}
    return DIFFERENT if "differs" in verdicts else int("failed" in verdicts)


def _announced(points: list[Any]) -> str:
    """How many runs the points have, and what they cost; loads of a page or object cost little."""
    from qbkit.execution.preflight import cpu_s

    specs = [spec for point in points for spec in point.recipe.specs]
    minutes = math.ceil(sum(cpu_s(s) for s in specs if isinstance(s, qb.Experiment)) / 60)
    return f"runs: {len(specs)}; those that are not stored take up to about {minutes} processor min"


def wanted_fields(options: Mapping[str, Any]) -> dict[str, str]:
    """The fields of an experiment that the options choose, and their values."""
    wanted = {name: value for name in FIELDS if (value := options.get(name)) is not None}
    for text in options["where"]:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--where {text} should be FIELD=VALUE, as in --where qdisc=fq")
        if wanted.setdefault(name, value) != value:
            raise click.UsageError(f"{name} is {wanted[name]} and {value}; give it once")
    return wanted


def _chosen(path: Path, wanted: dict[str, str], sample: int | None, seed: int) -> list[Any]:
    """The points to run; a usage error if there is none, or if there are too many."""
    points = points_with(path, wanted)
    if sample is not None:
        return _drawn(points, path, sample, seed)
    if len(points) > MOST_POINTS:
        raise click.UsageError(
            f"{path} has {len(points)} such points; name one by --flow, --rtt-ms, --seed …, or "
            "take a sample: --sample 20"
        )
    return points


def points_with(path: Path, wanted: dict[str, str]) -> list[Any]:
    """The published points with the wanted fields; a usage error if there is none."""
    from qbkit.studies.reproduction import published_points

    every = list(published_points(path))
    points = [point for point in every if point.has(wanted)]
    if not points:
        raise click.UsageError(f"{path} has no such point: {_why_none(every, wanted)}")
    return points


def _why_none(points: list[Any], wanted: dict[str, str]) -> str:
    """The wanted value that no point has, and those that there are; or that none has them all."""
    for name, value in wanted.items():
        if not any(point.has({name: value}) for point in points):
            found = {value for point in points for value in point.known(name)}
            known = sorted(found, key=lambda text: (len(text), text))  # numbers in their order
            shown = ", ".join(known[:MOST_VALUES]) + (", …" if len(known) > MOST_VALUES else "")
            return f"none has {name} {value}{did_you_mean(value, known)}; there are {shown}"
    given = ", ".join(f"{name} {value}" for name, value in wanted.items())
    return f"none has {given} together; one is {points[0].name}"


def _drawn(points: list[Any], path: Path, count: int, seed: int) -> list[Any]:
    """A random sample that takes the files and folders of a folder in turn."""
    import random

    draw = random.Random(seed)
    draw.shuffle(points)
    groups: dict[str, list[Any]] = {}
    for point in points:
        inside = point.source.relative_to(path).parts if path.is_dir() else ()
        groups.setdefault(inside[0] if inside else "", []).append(point)
    names = draw.sample(sorted(groups), len(groups))
    turns = zip_longest(*(groups[name] for name in names))
    return [point for turn in turns for point in turn if point is not None][:count]


def _print(rows: list[Any], as_json: bool) -> None:
    table = [
        {
            "point": found.point.name,
            "verdict": found.verdict,
            "reason": found.reason,
            "inputs that differ": found.inputs_text,
        }
        for found in rows
    ]
    if as_json:
        print_json(table)
        return
    print_table(table)
    counts = Counter(found.verdict for found in rows)
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


@click.command("replay")
@click.argument("run", metavar="RUN")
@options.around
@click.option(
    "--out",
    type=options.PATH,
    required=True,
    help="Sequence diagram: .html, .png, .svg, .pdf or .json.",
)
@options.of_points
@options.as_json
def replay_command(
    run: str,
    around_s: float,
    out: Path,
    where: tuple[str, ...],
    as_json: bool,
    **fields: str | None,
) -> None:
    """Run a run again, and draw a second packet by packet.

    RUN is a file, the name of a stored run or of a published one in the folder data, or a published
    sweep or table, of which the other options choose a run as in `qbkit reproduce`. The command
    says whether the run gives the same bytes as before, and else what differs.
    """
    from qbkit.execution.runner import check_writable
    from qbkit.plots.drawing.export import ending_of

    ending_of(out)
    check_writable(out)
    found = qb.replay(
        _run_or_point(run, wanted_fields({**fields, "where": where})), around_s, progress=True
    )
    path = qb.plots.save_chart(found.chart(), out)
    if as_json:
        texts = {"verdict": found.verdict, "inputs": found.inputs, "way_back": found.way_back}
        texts["shown"] = found.counts
        print_json({**texts, "run": found.run.encoding["source"], "out": str(path)})
        return
    click.echo(found)
    click.echo(str(path))


def _run_or_point(run: str, wanted: dict[str, str]) -> Any:
    """The stored or published run, or the published point; a usage error for several points."""
    from qbkit import store
    from qbkit.studies.results import is_cube

    named = sorted(path for path in PUBLISHED.rglob("*.nc") if path.stem == run)
    if len(named) > 1:
        several = ", ".join(map(str, named))
        raise click.UsageError(f"{run} is published more than once: {several}; give one of these")
    for path in (Path(run), store.path_of(run), *named):
        if not wanted and path.suffix == ".nc" and path.is_file():
            found = store.load_run(path)
            if not is_cube(found):
                return found
    if wanted and (store.path_of(run).is_file() or named):
        raise click.UsageError(
            f"{run} is one run; leave out {', '.join(wanted)}, which chooses among several"
        )
    if not Path(run).exists():
        raise click.UsageError(
            f"there is no run {run}; give FILE.nc, a name of `qbkit runs`, published data, or a "
            "name in the folder data here"
        )
    points = points_with(Path(run), wanted)
    if len(points) > 1:
        raise click.UsageError(
            f"{run} has {len(points)} such points; choose one by --flow, --rtt-ms, --seed …; one "
            f"is {points[0].name}"
        )
    return points[0]
