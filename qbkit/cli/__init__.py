"""The command ``qbkit``."""

from qbkit.cli.commands import main

__all__ = ["main"]
