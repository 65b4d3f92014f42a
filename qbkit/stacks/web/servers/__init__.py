"""Web servers, one file each; `qbkit.stacks.web.base` describes their interface."""

from qbkit.stacks.web.servers import caddy, envoy, go, haproxy, hypercorn, nginx, ngtcp2, quiche

__all__ = ["caddy", "envoy", "go", "haproxy", "hypercorn", "nginx", "ngtcp2", "quiche"]
