"""Writes the table of stacks and the help of all commands, as qbkit itself prints them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import click
from sphinx.application import Sphinx

from qbkit.cli.group import group
from qbkit.cli.network import HELP
from qbkit.stacks.about.listing import markdown_table

GENERATED = Path(__file__).parents[1] / "_generated"
WIDTH = 84
"""Characters of a line that the page shows without a break."""
NETWORK = "\nThe options of the network are those of [`qbkit run`](#qbkit-run).\n"


def helps(command: click.Command = group, name: str = "qbkit", level: int = 1) -> Iterator[str]:
    """A section of Markdown for each command: what ``--help`` prints.

    The options of the network, which many commands have, are those of ``qbkit run`` alone.
    """
    shown = copy.copy(command)
    if name != "qbkit run":
        shown.params = [option for option in command.params if option.name not in HELP]
    context = click.Context(shown, info_name=name, terminal_width=WIDTH, **group.context_settings)
    if level > 1:
        yield f"{'#' * level} {name}\n"
    yield f"```text\n{shown.get_help(context)}\n```\n"
    if len(shown.params) < len(command.params):
        yield NETWORK
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found
            yield from helps(found, f"{name} {each}", level + 1)


def write_pages(_app: Sphinx) -> None:
    """Write what docs/reference/stacks.md and docs/reference/cli.md include."""
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "stacks.md").write_text(markdown_table() + "\n")
    (GENERATED / "cli.md").write_text("\n".join(helps()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
