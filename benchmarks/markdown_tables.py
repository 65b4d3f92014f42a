"""Tables in ``tables/``, each written by one benchmark: texts include or quote them.

A table that is computed is written whole by `publish`. The rows of a measurement join the table by
`record`, as one run measures some of them only; ``--write`` asks for that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

TABLES = Path(__file__).parent / "tables"
SEPARATOR = " | "


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; numbers have two decimals, unless they are whole."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {SEPARATOR.join(line)} |\n" for line in lines)


def publish(name: str, text: str) -> None:
    """Write one table's file, and show it."""
    (TABLES / f"{name}.md").write_text(text)
    print(text, end="")


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a table's file, as column → cell; none without a file."""
    path = TABLES / f"{name}.md"
    if not path.exists():
        return []
    head, _, *rows = (line[2:-2].split(SEPARATOR) for line in path.read_text().splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def joined(
    old: Iterable[Mapping[str, object]], new: Iterable[Mapping[str, object]], keys: Sequence[str]
) -> str:
    """A table of old rows with the cells of new ones in place of theirs.

    Rows with the same cells in the columns ``keys`` are the same one.

    >>> print(joined([{"a": 1, "b": 2}], [{"a": 1, "c": 3}, {"a": 4, "c": 5}], ["a"]), end="")
    | a | b | c |
    | --- | --- | --- |
    | 1 | 2 | 3 |
    | 4 |  | 5 |
    """
    rows: dict[tuple[str, ...], dict[str, object]] = {}
    for row in [*old, *new]:
        rows.setdefault(tuple(_cell(row[key]) for key in keys), {}).update(row)
    head = list(dict.fromkeys(column for row in rows.values() for column in row))
    return table(head, ([row.get(column, "") for column in head] for row in rows.values()))


def record(
    name: str, rows: Iterable[Mapping[str, object]], keys: Sequence[str], write: bool
) -> None:
    """Show measured rows; if asked to, put them into a table's file, where other rows stay."""
    measured = list(rows)
    print(joined([], measured, keys), end="", flush=True)
    if write:
        (TABLES / f"{name}.md").write_text(joined(rows_of(name), measured, keys))


def arguments(about: str) -> argparse.ArgumentParser:
    """A parser of a benchmark's arguments, with the option of `add_write`."""
    parser = argparse.ArgumentParser(description=about)
    add_write(parser)
    return parser


def add_write(parser: argparse.ArgumentParser) -> None:
    """The option that writes what was measured into ``tables/``."""
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/tables")


def _cell(value: object) -> str:
    return f"{round(value, 2) + 0.0:.2f}" if isinstance(value, float) else str(value)
