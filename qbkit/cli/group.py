"""The command ``qbkit``: a thin skin on the Python functions of the same names, one file each."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import ClassVar

import click

from qbkit.errors import QbkitError


class Commands(click.Group):
    """Imports the file of a command when the command is called, or asked for its help."""

    homes: ClassVar[dict[str, str]] = {
        "run": "run",
        "runs": "runs",
        "sweep": "sweep",
        "notebook": "notebook",
        "conformance": "conformance",
        "stacks": "stacks",
        "kernel": "kernel",
        "doctor": "doctor",
        "import-pcaps": "import_pcaps",
    }
    """Command → its module beside this one, which has it under the name ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a newcomer meets them."""
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None where there is none."""
        if cmd_name not in self.homes:
            return None
        command: click.Command = import_module(f"qbkit.cli.{self.homes[cmd_name]}").command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qbkit")
def group() -> None:
    """Measure congestion control of real QUIC and TCP stacks, in virtual time."""


def main() -> None:
    """Entry point: expected failures become one sentence on stderr and a non-zero exit."""
    warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
    try:
        status = group.main(standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"qbkit: {error.format_message()} (see --help)", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("qbkit: interrupted; nothing half-written was left", err=True)
        sys.exit(130)
    except QbkitError as error:
        click.echo(f"qbkit: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else 0)
