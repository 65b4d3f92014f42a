"""HAProxy: HTTP/2 by the kernel's TCP, HTTP/3 by its own QUIC; the files come from nginx behind it.

HAProxy serves no files. It takes them over HTTP/1.1 from an nginx on the same host.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.debian import DebianPrograms
from qbkit.stacks.from_debian import FromDebian, serve, with_file
from qbkit.stacks.servers import nginx
from qbkit.stacks.site import Site
from qbkit.stacks.web import WebServer, register_server

PROGRAM = "usr/sbin/haproxy"
ORIGIN = "127.0.0.1:8080"
NAMES = {"cubic": "cubic", "reno": "newreno"}
"""Controller → HAProxy's name of it."""
CONFIG = """\
global
  nbthread 1
  limited-quic
  log stderr format raw local0 err
crt-store
  load crt "{keys}/browser-cert.pem" key "{keys}/browser-key.pem" alias "web"
defaults
  mode http
  timeout connect 5s
  timeout client 10m
  timeout server 10m
frontend web
  bind {address} ssl crt "@/web" alpn h2 curves X25519
  bind quic4@{address} ssl crt "@/web" alpn h3 curves X25519 quic-cc-algo {algorithm}
  default_backend origin
backend origin
  server nginx {origin}
"""


class HAProxy(FromDebian, WebServer):
    """One thread with HAProxy's defaults, except for one TLS group, as in the other servers."""

    name: ClassVar[str] = "haproxy"
    source: ClassVar[str] = "packages haproxy and nginx of Debian trixie"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    debian: ClassVar[DebianPrograms] = DebianPrograms(
        "haproxy", "trixie", ("haproxy", "nginx"), (PROGRAM, nginx.PROGRAM)
    )

    def controllers(self) -> tuple[str, ...]:
        """Those of HAProxy 3.0."""
        return tuple(NAMES)

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """nginx and HAProxy; over HTTP/2 the controller is the kernel's."""
        algorithm = NAMES.get(controller, "cubic")
        words = {"address": address, "algorithm": algorithm, "origin": ORIGIN}
        text = CONFIG.format(**words, keys=CERTIFICATE_MOUNT)
        file = f"{out}/haproxy.cfg"
        start = [*self.debian.command(PROGRAM), "-db", "-f", file]
        origin = nginx.command(self.debian, f"listen {ORIGIN};", site, out)
        return serve(address, origin, with_file(file, text, start))


register_server(HAProxy())
