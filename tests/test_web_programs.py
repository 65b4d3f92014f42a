"""Every web server and client loads one object over each protocol that it claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import qbkit as qb
from qbkit.cli.web.command import web_command
from qbkit.errors import StackNotReady
from qbkit.spec.web import WebLoad
from qbkit.stacks.toolchains.apt import private_apt
from qbkit.stacks.toolchains.debian import DebianPrograms
from qbkit.stacks.web import base as web
from qbkit.stacks.web.servers import nginx
from qbkit.stacks.web.site import MOUNT, Site

LINK = qb.Bottleneck(rate_mbps=10, rtt_ms=20, buffer_packets=50)
SIZE_BYTES = 100_000


def claims(programs: list) -> list[tuple[str, str]]:
    return [(program.name, protocol) for program in programs for protocol in program.protocols]


def assert_loads(server: str, client: str, protocol: str) -> None:
    """The object arrives whole, by that protocol, after the round trips that it takes."""
    for program in (web.server(server), web.client(client)):
        try:
            program.build()
        except StackNotReady as error:
            pytest.skip(f"{program.name}: {error}")
    controller = web.server(server).controllers()[0] if protocol == "h3" else "cubic"
    fields = {"server": f"{server}:{controller}", "client": client, "protocol": protocol}
    run = qb.run_web(WebLoad(bottleneck=LINK, object_bytes=SIZE_BYTES, limit_s=20, **fields))
    assert run.attrs["protocol"] == protocol
    assert run.qb.warnings == []
    least_s = (2 if protocol == "h3" else 3) * 0.020 + SIZE_BYTES * 8 / 10e6
    assert least_s < float(run.time_to_last_byte_s) < least_s + 0.3
    arrived = int(run.packet_size_bytes.values[run.packet_fate.values == 0].sum())
    assert SIZE_BYTES < arrived < 1.15 * SIZE_BYTES


@pytest.mark.guest
@pytest.mark.parametrize(("server", "protocol"), claims(web.servers()))
def test_servers(server: str, protocol: str):
    assert_loads(server, "curl-http3", protocol)


@pytest.mark.guest
@pytest.mark.parametrize(
    ("client", "protocol"), claims([client for client in web.clients() if not client.pages])
)
def test_clients(client: str, protocol: str):
    assert_loads("nginx", client, protocol)


@pytest.mark.guest
def test_the_command_runs_loads_on_workers_and_then_opens_what_they_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path))
    arguments = ["--server", "go:cubic", "--object", "1KB", "--json"]
    first, again = (CliRunner().invoke(web_command, arguments) for _ in range(2))
    assert first.exit_code == 0, first.output
    loads = json.loads(again.stdout)
    assert [load["protocol"] for load in loads] == ["h2", "h3"]
    assert all(load["time_to_last_byte_s"] > 0.1 for load in loads)
    assert first.stdout == again.stdout
    assert len(list(tmp_path.glob("*.nc"))) == 2


@pytest.mark.guest
@pytest.mark.parametrize("server", ["caddy:cubic", "envoy:cubic", "quiche:cubic"])
def test_early_data_save_a_round_trip(server: str):
    rtt_s, spec = 0.1, {"client": "aioquic", "protocol": "h3", "object_bytes": 1000}
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=100)
    try:
        web.server(server.partition(":")[0]).build()
    except StackNotReady as error:
        pytest.skip(str(error))
    plain, early = (
        qb.run_web(WebLoad(bottleneck=link, server=server, zero_rtt=zero_rtt, **spec))
        for zero_rtt in (False, True)
    )
    assert float(plain.time_to_last_byte_s) == pytest.approx(2 * rtt_s, abs=0.02)
    assert float(early.time_to_last_byte_s) == pytest.approx(rtt_s, abs=0.02)
    assert json.loads(early.attrs["client_report"])["early_data_accepted"] is True


@pytest.mark.guest
def test_quiche_serves_a_page_in_the_order_of_its_urgency():
    for program in (web.server("quiche"), web.client("headless-shell")):
        if not program.status().ready:
            pytest.skip(f"{program.name}: {program.status().reason}")
    deep = qb.Bottleneck(rate_mbps=10, rtt_ms=20, buffer_packets=2000)
    fields = {"server": "quiche:cubic", "client": "headless-shell", "protocol": "h3"}
    run = qb.run_web(WebLoad(bottleneck=deep, page="small", limit_s=20, **fields))
    assert set(run.resource_protocol.values) == {"h3"} and run.sizes["resource"] == 17
    assert 0.04 + 470_000 * 8 / 10e6 < float(run.page_load_time_s) < 0.9
    # The browser asks for the fonts (urgency 2) after the first images (3), and has them first.
    ends_s = {
        kind: run.resource_end_s.values[run.resource_type.values == kind].max()
        for kind in ("font", "image")
    }
    assert ends_s["font"] < ends_s["image"]


def test_nginx_knows_the_types_of_a_site(tmp_path: Path):
    for name in ("index.html", "a.css", "b.css", "100000"):
        (tmp_path / name).touch()
    debian = web.server("nginx").debian
    words = nginx.command(debian, "listen 1;", Site(tmp_path, "/"), "/out")
    text = next(word for word in words if word.startswith("daemon off"))
    assert "types { text/css css; text/html html; }" in text
    assert f"listen 1; root {MOUNT};" in text
    assert words[-1] == "/out/nginx.conf"


def test_a_private_apt_knows_only_the_suites_asked_for(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("QBKIT_DEBIAN_MIRROR", "http://mirror.example/debian")
    config = private_apt(tmp_path, "trixie trixie-backports").read_text()
    sources = (tmp_path / "parts/debian.sources").read_text()
    assert "URIs: http://mirror.example/debian\nSuites: trixie trixie-backports\n" in sources
    assert all(str(tmp_path) in line for line in config.splitlines() if "State" in line)


def test_without_apt_a_debian_program_says_so(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = DebianPrograms("x", "trixie", ("x",), ("usr/bin/x",))
    with pytest.raises(StackNotReady, match="there is no apt here"):
        absent.build(lambda _: None)
    assert not absent.ready


def test_what_cannot_be_built_is_named():
    done = CliRunner().invoke(web_command, ["--build", "apache"])
    assert done.exit_code
    assert "there is no server or client 'apache'; known are " in str(done.exception)
