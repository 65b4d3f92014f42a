"""Tables that the documentation includes. One benchmark writes each file in ``tables/``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

TABLES = Path(__file__).parent / "tables"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; numbers have two decimals, unless they are whole."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def publish(name: str, text: str) -> None:
    """Write one table's file, and show it."""
    (TABLES / f"{name}.md").write_text(text)
    print(text, end="")


def _cell(value: object) -> str:
    return f"{round(value, 2) + 0.0:.2f}" if isinstance(value, float) else str(value)
