"""Web clients, one file each; `qbkit.stacks.web` describes their interface."""

from qbkit.stacks.clients import curl, go

__all__ = ["curl", "go"]
