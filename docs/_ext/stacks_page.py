"""Writes the table of stacks, as `qbkit stacks --markdown` prints it."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from qbkit.stacks.about.listing import markdown_table

TABLE = Path(__file__).parents[1] / "_generated" / "stacks.md"


def write_table(_app: Sphinx) -> None:
    """Write the table where docs/reference/stacks.md includes it from."""
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(markdown_table() + "\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_table)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
