"""Caddy: HTTP/2 by Go's server and the kernel's TCP, HTTP/3 by quic-go."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.from_debian import FromDebian, serve, with_file
from qbkit.stacks.web.site import MOUNT, Site

PROGRAM = "usr/bin/caddy"


class Caddy(FromDebian, WebServer):
    """Caddy's file server with one TLS group, as in the other servers."""

    name: ClassVar[str] = "caddy"
    source: ClassVar[str] = "package caddy of Debian trixie-backports"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    zero_rtt: ClassVar[bool] = True
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "caddy", "trixie-backports", ("caddy",), (PROGRAM,)
    )

    def controllers(self) -> tuple[str, ...]:
        """The default of quic-go, which Caddy does not change."""
        return ("cubic",)

    def env(self) -> dict[str, str]:
        """One processor, as the guest has, and a place for Caddy's own files."""
        return {**super().env(), "GOMAXPROCS": "1", "XDG_DATA_HOME": "/run", "HOME": "/run"}

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """Both listeners, whichever protocol is asked for."""
        file = f"{out}/caddy.json"
        start = [*self.debian.command(PROGRAM), "run", "--config", file]
        return serve(address, with_file(file, json.dumps(_config(address)), start))


def _config(address: str) -> dict[str, Any]:
    """A server of the site's folder, with no redirection, administration or ACME."""
    keys = {
        "certificate": f"{CERTIFICATE_MOUNT}/browser-cert.pem",
        "key": f"{CERTIFICATE_MOUNT}/browser-key.pem",
    }
    server = {
        "listen": [address],
        "routes": [{"handle": [{"handler": "file_server", "root": MOUNT}]}],
        "tls_connection_policies": [{"curves": ["x25519"]}],
        "automatic_https": {"disable": True},
        "protocols": ["h2", "h3"],
    }
    return {
        "admin": {"disabled": True, "config": {"persist": False}},
        "logging": {"logs": {"default": {"level": "ERROR"}}},
        "apps": {
            "http": {"servers": {"web": server}},
            "tls": {"certificates": {"load_files": [keys]}},
        },
    }


register_server(Caddy())
