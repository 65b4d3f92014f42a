"""The command ``qbkit``."""

from qbkit.cli.group import group, main

__all__ = ["group", "main"]
