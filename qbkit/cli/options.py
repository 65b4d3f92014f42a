"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource


class NamedPath(click.Path):
    """A path that has a name: the empty one would be the folder where the command runs."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path; UsageError for an empty one."""
        if not str(value):
            self.fail("it is empty; give the name of a file or folder", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)
FOLDER = NamedPath(path_type=Path, file_okay=False)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
engine = click.option(
    "--engine", help="virtual (default), physical (the same guest in real time), or host."
)
force = click.option(
    "--force", is_flag=True, help="Overwrite --out even if it holds another experiment's run."
)
around = click.option(
    *("--at", "--around-s", "around_s"),
    type=float,
    required=True,
    help="Time of the run, in seconds.",
)
scheduler = click.option("--scheduler", help="Address of a Dask scheduler. [default: this machine]")


def flows(name: str, about: str) -> Callable[..., Any]:
    """A repeatable option that names flows."""
    return click.option(name, multiple=True, metavar="STACK:CC", help=about)


def folder(default: str, about: str) -> Callable[..., Any]:
    """The folder ``--out``, which has a default."""
    return click.option(
        "--out", type=FOLDER, default=Path(default), show_default=True, help=f"Folder for {about}."
    )


def seeds(about: str) -> Callable[..., Any]:
    """The number of runs with other seeds."""
    return click.option("--seeds", type=int, default=5, show_default=True, help=about)


OF_POINTS = (
    click.option("--flow", help="Only this implementation, as STACK:CC; of web loads, the server."),
    click.option("--rate-mbps", help="Only this rate."),
    click.option("--rtt-ms", help="Only this base RTT."),
    click.option("--buffer-bdp", help="Only this buffer."),
    click.option("--seed", help="Only this seed."),
    click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Any other; repeatable."),
)


def of_points(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose published points by the fields of their experiments."""
    for option in reversed(OF_POINTS):
        command = option(command)
    return command


def given(context: click.Context) -> dict[str, str]:
    """Name → flag of each option that stands on the command line, in the order of its help."""
    typed = ParameterSource.COMMANDLINE
    options = (p for p in context.command.params if isinstance(p, click.Option) and p.name)
    return {
        str(p.name): p.opts[-1] for p in options if context.get_parameter_source(p.name) is typed
    }


STATUS = {"meets": 0, "shown": 0, "fails": 3, "undecided": 4}
"""Answer of gates and checks → exit status. 1 (something failed) and 2 (a wrong command line) are
errors: there is no answer."""


class Least(click.ParamType):
    """A conformance, or "floor"."""

    name = "number|floor"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number, or the text for `require_bounds` to judge."""
        try:
            return float(value)
        except ValueError:
            return value.lower()  # the help writes FLOOR
