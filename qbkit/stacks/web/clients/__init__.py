"""Web clients, one file each; `qbkit.stacks.web.base` describes their interface."""

from qbkit.stacks.web.clients import aioquic, chromium, curl, curl_http3, firefox, go, ngtcp2

__all__ = ["aioquic", "chromium", "curl", "curl_http3", "firefox", "go", "ngtcp2"]
