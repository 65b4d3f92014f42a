"""The command ``qbkit``: thin wrappers of the Python functions, by subject."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from importlib import import_module
from typing import ClassVar

import click

from qbkit.errors import QbkitError
from qbkit.suggestions import did_you_mean


class Commands(click.Group):
    """Imports the module of a command when the command or its help is requested."""

    modules: ClassVar[dict[str, str]] = {
        "run": "run",
        "runs": "runs",
        "sweep": "run",
        "web": "web.command",
        "notebook": "notebooks",
        "notebooks": "notebooks",
        "conformance": "conformance",
        "gate": "conformance",
        "evaluate": "evaluate",
        "hunt": "evaluate",
        "identify": "compare",
        "bbr-draft": "evaluate",
        "bisect": "compare",
        "compare": "compare",
        "plot": "publish",
        "packets": "runs",
        "replay": "reproduce",
        "report": "publish",
        "reproduce": "reproduce",
        "atlas": "publish",
        "stacks": "stacks",
        "new-stack": "stacks",
        "check-stack": "stacks",
        "kernel": "machine",
        "doctor": "machine",
        "import-pcaps": "runs",
    }
    """Command → its module in this package; there ``run_command`` is the command ``run``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order in which a newcomer needs them."""
        return list(self.modules)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with; UsageError names the nearest one."""
        name = args[0]
        if name not in self.modules and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{did_you_mean(name, self.modules)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None for an unknown name."""
        if cmd_name not in self.modules:
            return None
        module = import_module(f"qbkit.cli.{self.modules[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(package_name="qbkit")
@click.pass_context
def group(context: click.Context) -> None:
    """Measure congestion control of real QUIC and TCP stacks, in virtual time."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """Entry point: expected failures become one sentence on stderr and a non-zero exit."""
    atexit.register(gc.freeze)  # the interpreter's last collection of garbage would take 0.3 s
    gc.set_threshold(5_000)  # imports make many objects and hardly any garbage
    # NumPy's library of linear algebra would keep a thread busy that no command has work for.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
    try:
        status = group.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        sys.exit(0)
    except click.ClickException as error:
        click.echo(f"qbkit: {error.format_message()} (see --help)", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        said = "interrupted; what was finished is stored, and the same command does the rest"
        click.echo(f"qbkit: {said}", err=True)
        sys.exit(130)
    except QbkitError as error:
        click.echo(f"qbkit: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else 0)
