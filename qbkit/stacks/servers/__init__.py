"""Web servers, one file each; `qbkit.stacks.web` describes their interface."""

from qbkit.stacks.servers import caddy, envoy, go, haproxy, nginx

__all__ = ["caddy", "envoy", "go", "haproxy", "nginx"]
