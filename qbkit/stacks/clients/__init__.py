"""Web clients, one file each; `qbkit.stacks.web` describes their interface."""

from qbkit.stacks.clients import aioquic, chromium, curl, curl_http3, firefox, go, ngtcp2

__all__ = ["aioquic", "chromium", "curl", "curl_http3", "firefox", "go", "ngtcp2"]
