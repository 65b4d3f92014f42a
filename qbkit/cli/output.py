"""What the commands print: one JSON document, or a plain table."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import Any

import click

import qbkit as qb

UNFOLDED = 1000
"""Width of a table that no terminal shows, in characters: no row is as long."""
LITERAL: dict[str, Any] = {"markup": False, "emoji": False}
"""Cells are printed as they are: an IPv6 address in brackets is no style."""


def print_json(document: object) -> None:
    """Print a document as JSON on one line; ValueError for NaN, which JSON does not have."""
    click.echo(json.dumps(document, allow_nan=False))


def say(text: str) -> None:
    """Print a line on stderr."""
    click.echo(text, err=True)


def print_warnings(sentences: Iterable[str]) -> None:
    """Print each sentence as a warning, on stderr."""
    for sentence in sentences:
        say(f"warning: {sentence}")


def print_run(dataset: Any, as_json: bool) -> None:
    """Print the flows of a stored run, its warnings (on stderr), what it keeps, and its path."""
    from qbkit.metrics.flows.summary import without_zeros
    from qbkit.traces.run.attributes import run_warnings

    attrs, path = dataset.attrs, dataset.encoding["source"]
    kept = {"kept": str(folder)} if (folder := dataset.qb.kept_folder).exists() else {}
    if as_json:
        cost = {name: attrs.get(name) for name in ("hash", "wall_s", "cpu_s")}
        flows = qb.metrics.flow_summaries(dataset)
        print_json(
            {
                **{"path": path, **cost, "virtual_s": attrs["duration_s"]},
                **{"flows": flows, "warnings": run_warnings(dataset), **kept},
            }
        )
        return
    table = without_zeros(qb.metrics.summary(dataset))
    print_frame(table.drop(columns=["stack", "controller"]))
    print_warnings(run_warnings(dataset))
    click.echo("\n".join([*kept.values(), str(path)]))


def print_frame(frame: Any) -> None:
    """Print the rows of a data frame, without its index."""
    print_table(frame.reset_index(drop=True).to_dict("records"))


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print a plain table: folded in a narrow terminal, one line a row in a pipe or a file."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in rows[0] if rows else []:
        table.add_column(str(name), overflow="fold")
    for row in rows:
        table.add_row(*(plain(value) for value in row.values()))
    if sys.stdout.isatty():
        Console(**LITERAL).print(table)
        return
    whole = Console(width=UNFOLDED, **LITERAL)
    with whole.capture() as printed:
        whole.print(table)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def plain(value: Any) -> str:
    """A value as a table shows it: four digits, an interval with two dots, a dash if unknown."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return " .. ".join(plain(v) for v in value)
    return str(value)
