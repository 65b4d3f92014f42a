"""nginx: HTTP/2 by the kernel's TCP, HTTP/3 by its own QUIC, whose controller is a NewReno."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.from_debian import FromDebian, serve, with_file
from qbkit.stacks.web.site import MOUNT, Site

PROGRAM = "usr/sbin/nginx"
TLS = (
    f"ssl_ecdh_curve X25519; ssl_certificate {CERTIFICATE_MOUNT}/browser-cert.pem; "
    f"ssl_certificate_key {CERTIFICATE_MOUNT}/browser-key.pem;"
)
"""One group, as in the other servers, and the test certificate."""


class Nginx(FromDebian, WebServer):
    """One process with nginx's defaults, except for one TLS group, as in the other servers."""

    name: ClassVar[str] = "nginx"
    source: ClassVar[str] = "package nginx of Debian trixie"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    debian: ClassVar[DebianPrograms] = DebianPrograms("nginx", "trixie", ("nginx",), (PROGRAM,))

    def controllers(self) -> tuple[str, ...]:
        """The only one of nginx 1.26."""
        return ("reno",)

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """Both listeners, whichever protocol is asked for."""
        listen = f"listen {address} ssl; listen {address} quic; http2 on; {TLS}"
        return serve(address, command(self.debian, listen, site, out))


def command(debian: DebianPrograms, listen: str, site: Site, out: str) -> list[str]:
    """nginx as a server of the site's files; ``listen`` is where and how."""
    endings = {PurePosixPath(file.path).suffix[1:]: file.content_type for file in site.files()}
    types = " ".join(f"{kind} {ending};" for ending, kind in sorted(endings.items()) if ending)
    return start(debian, f"types {{ {types} }} server {{ {listen} root {MOUNT}; }}", out)


def start(debian: DebianPrograms, http: str, out: str) -> list[str]:
    """nginx as one process, with this text in the block ``http`` of its configuration."""
    folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{name}_temp_path {out}/{name};" for name in folders)
    text = (
        f"daemon off; master_process off; pid {out}/nginx.pid; error_log stderr;\n"
        "events {}\n"
        f"http {{ access_log off; {temporary} default_type application/octet-stream; {http} }}\n"
    )
    file = f"{out}/nginx.conf"
    return with_file(file, text, [*debian.command(PROGRAM), "-e", "stderr", "-p", out, "-c", file])


register_server(Nginx())
