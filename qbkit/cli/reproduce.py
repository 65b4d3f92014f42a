"""``qbkit reproduce``: run published points again, and compare."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import click

from qbkit.cli import options
from qbkit.cli.output import print_json, print_table

MOST_POINTS = 20
FIELDS = ("flow", "rate_mbps", "rtt_ms", "buffer_bdp", "seed")
DIFFERENT = 3
"""Exit status if a number came out differently."""


@click.command("reproduce")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--flow", help="Only this implementation, as STACK:CC; of web loads, the server.")
@click.option("--rate-mbps", help="Only this rate.")
@click.option("--rtt-ms", help="Only this base RTT.")
@click.option("--buffer-bdp", help="Only this buffer.")
@click.option("--seed", help="Only this seed.")
@click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Any other field; repeatable.")
@click.option("--sample", type=click.IntRange(min=1), help="A random sample of this many points.")
@click.option("--sample-seed", type=int, default=1, show_default=True, help="Seed of the sample.")
@options.as_json
def command(
    path: Path,
    where: tuple[str, ...],
    sample: int | None,
    sample_seed: int,
    as_json: bool,
    **fields: str | None,
) -> int:
    """Run published points again and say "the same", or what differs and by how much.

    PATH is a sweep's YAML, a table, or a folder of published data. Exit status: 0 if all points
    that can run here are the same, 3 if one differs, 1 or 2 for errors.
    """
    from qbkit.studies.reproduction import reproduce

    wanted = {name: value for name in FIELDS if (value := fields.get(name)) is not None}
    for text in where:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--where {text} should be FIELD=VALUE, as in --where qdisc=fq")
        wanted[name] = value
    rows = []
    for point in _chosen(path, wanted, sample, sample_seed):
        found = reproduce(point)
        rows.append(found)
        if not as_json:
            click.echo(f"{found.point.name}: {found.verdict}", err=True)
    _print(rows, as_json)
    return DIFFERENT if any(found.verdict == "differs" for found in rows) else 0


def _chosen(path: Path, wanted: dict[str, str], sample: int | None, seed: int) -> list[Any]:
    """The points to run; a usage error if there is none, or if there are too many."""
    import random

    from qbkit.studies.reproduction import published_points

    points = [point for point in published_points(path) if point.has(wanted)]
    if not points:
        given = ", ".join(f"{name} {value}" for name, value in wanted.items())
        some = "; ".join(point.name for point in islice(published_points(path), 2))
        raise click.UsageError(f"{path} has no point with {given}; it has, for example, {some}")
    if sample is not None:
        return random.Random(seed).sample(points, min(sample, len(points)))
    if len(points) > MOST_POINTS:
        raise click.UsageError(
            f"{path} has {len(points)} such points; name one by --flow, --rtt-ms, --seed …, or "
            "take a sample: --sample 20"
        )
    return points


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
