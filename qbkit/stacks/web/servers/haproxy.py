"""HAProxy: HTTP/2 by the kernel's TCP, HTTP/3 by its own QUIC; the files come from nginx behind it.

HAProxy serves no files. It takes them over HTTP/1.1 from an nginx on the same host.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.from_debian import FromDebian, serve, with_file
from qbkit.stacks.web.servers import nginx
from qbkit.stacks.web.site import Site

PROGRAM = "usr/sbin/haproxy"
ORIGIN = "127.0.0.1:8080"
NAMES = {"cubic": "cubic", "reno": "newreno"}
"""Controller → HAProxy's name of it."""
CONFIG = """\
global
  nbthread 1
  limited-quic
  expose-experimental-directives
  log stderr format raw local0 err
crt-store
  load crt "{keys}/browser-cert.pem" key "{keys}/browser-key.pem" alias "web"
defaults
  mode http
  timeout connect 5s
  timeout client 10m
  timeout server 10m
backend origin
  server origin {origin}
frontend web
  default_backend origin
"""
"""All but the addresses that it listens on."""
SETTLE_S = 2
"""HAProxy 3.0.11 has its ports up to a second before it answers an Initial."""
KEYS = 'ssl crt "@/web" curves X25519'


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
        listen = [f"{address} alpn h2", f"quic4@{address} alpn h3 quic-cc-algo {algorithm}"]
        origin = nginx.command(self.debian, f"listen {ORIGIN};", site, out)
        haproxy = start(self.debian, listen, ORIGIN, out)
        return serve(address, origin, haproxy, settle_s=SETTLE_S)


def start(debian: DebianPrograms, listen: list[str], origin: str, out: str) -> list[str]:
    """HAProxy in front of a server; ``listen`` is where and how, an address each."""
    text = CONFIG.format(keys=CERTIFICATE_MOUNT, origin=origin)
    text += "".join(f"  bind {where} {KEYS}\n" for where in listen)
    file = f"{out}/haproxy.cfg"
    return with_file(file, text, [*debian.command(PROGRAM), "-db", "-f", file])


register_server(HAProxy())
