"""Web servers, one file each; `qbkit.stacks.web` describes their interface."""

from qbkit.stacks.servers import envoy, go

__all__ = ["envoy", "go"]
