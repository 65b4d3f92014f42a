"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a table of texts; a | in a cell is no border, and a line break a space."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
