"""What a load waited for: real loads whose limit is known, and what the command prints of them."""

from __future__ import annotations

import json

import pytest
import xarray as xr
from click.testing import CliRunner

import qbkit as qb
from qbkit.cli.web.command import web_command
from qbkit.errors import MetricError
from qbkit.metrics import limits_sentence, load_limits
from qbkit.stacks.web import base as web

needs_haproxy = pytest.mark.skipif(
    not web.server("haproxy").status().ready, reason=web.server("haproxy").status().reason
)
HAPROXY_BUFFERS_BYTES = 30 * 16_384
"""HAProxy 3.0's default: QUIC has up to 30 buffers of data that are not acknowledged."""


def load(
    size_bytes: int, rate_mbps: float = 100, rtt_ms: float = 50, server: str = "envoy:cubic", **more
) -> xr.Dataset:
    link = qb.Bottleneck(
        rate_mbps=rate_mbps, rtt_ms=rtt_ms, loss_percent=more.pop("loss_percent", 0)
    )
    given = {"bottleneck": link, "server": server, "client": "go", "protocol": "h3"}
    return qb.run_web(qb.WebLoad(**{**given, "object_bytes": size_bytes, **more}))


@pytest.mark.guest
@pytest.mark.parametrize(
    ("fields", "name", "least_part"),
    [
        # 10 MB take 4 s at 20 Mbit/s, whatever else happens.
        pytest.param({"size_bytes": 10_000_000, "rate_mbps": 20}, "link", 0.9, id="link"),
        pytest.param({"size_bytes": 10_000_000, "loss_percent": 1}, "loss", 0.9, id="loss"),
        # 800 kB are 7 windows of 10 packets, which doubles, at a hundredth of the link's rate.
        pytest.param(
            {"size_bytes": 800_000, "rate_mbps": 900, "protocol": "h2", "rtt_ms": 100},
            *("slow start", 0.5),
            id="slow-start",
        ),
        # Connection, TLS and request take three of the four round trips.
        pytest.param({"size_bytes": 1000, "protocol": "h2"}, "handshake", 0.45, id="handshake"),
        pytest.param(
            {"size_bytes": 1_000_000, "client": "aioquic", "zero_rtt": True, "rate_mbps": 5},
            *("link", 0.9),
            id="early-data",
        ),
    ],
)
def test_the_longest_part_is_what_limits_a_load(fields: dict, name: str, least_part: float):
    run = load(**fields)
    parts = load_limits(run)
    assert parts.index[0] == name
    assert parts.iloc[0] > least_part * parts.sum()
    assert parts.sum() == pytest.approx(float(run.time_to_last_byte_s))
    assert parts["handshake"] == pytest.approx(float(run.handshake_s))
    assert limits_sentence(run).startswith(f"{parts.sum():.4g} s: {name} ")


@needs_haproxy
@pytest.mark.guest
def test_a_senders_buffer_is_told_from_the_network():
    fields = {"size_bytes": 50_000_000, "rtt_ms": 95, "server": "haproxy:cubic"}
    h2, h3 = load(**fields, protocol="h2"), load(**fields)
    assert load_limits(h2).index[0] == "link"
    parts = load_limits(h3)
    assert parts.index[0] == "sender's buffer" and parts.iloc[0] > 0.9 * parts.sum()
    # One buffer per round trip, and some at the beginning.
    buffered_s = 50_000_000 / HAPROXY_BUFFERS_BYTES * 0.095
    assert float(h3.time_to_last_byte_s) == pytest.approx(buffered_s, rel=0.1)
    sentence = limits_sentence(h3)
    in_flight_kb = float(sentence.partition("kept ")[2].partition(" kB")[0])
    frames = 1.02, 1.1  # bytes of frames for each byte of data
    low, high = (HAPROXY_BUFFERS_BYTES / 1e3 * factor for factor in frames)
    assert low < in_flight_kb < high
    assert sentence.endswith("the sender's buffer limits the load, not the network.")
    # Of a client whose flow control may be smaller, the packets cannot say which it was.
    either = load_limits(h3.assign_attrs(client_limits=1)).index[0]
    assert either == "sender's buffer or receiver's window"


@needs_haproxy
@pytest.mark.guest
@pytest.mark.parametrize("window", [10, 20])
def test_small_packets_of_a_server_are_part_of_its_window(window: int):
    """HAProxy begins with settings and tickets, and the kernel counts packets."""
    fields = {"server": "haproxy:cubic", "protocol": "h2", "tcp_initial_window_packets": window}
    assert qb.metrics.infer(load(500_000, **fields))["initial_window_packets"].value == window


def test_a_run_that_is_no_load_has_no_limits():
    with pytest.raises(MetricError, match="no load with time_to_last_byte_s, handshake_s"):
        load_limits(xr.Dataset())


@pytest.mark.guest
def test_the_command_prints_more_than_one_number():
    words = ["--object", "1MB", "--rate-mbps", "10", "--rtt-ms", "40"]
    runner = CliRunner()
    done = runner.invoke(web_command, [*words, "--json", "--explain"])
    found = json.loads(done.stdout)
    assert [row["protocol"] for row in found["loads"]] == ["h2", "h3"]
    for row, trips in zip(found["loads"], (2, 1), strict=True):
        assert row["handshake_s"] == pytest.approx(trips * 0.040, abs=0.004)
        assert (trips + 1) * 0.040 <= row["first_byte_s"] < row["time_to_last_byte_s"]
        assert 0 <= row["loss_percent"] < 100 and row["limited_by"].startswith("link (")
        assert sum(row["limits_s"].values()) == pytest.approx(row["time_to_last_byte_s"], abs=1e-5)
    frame = {row["parameter"]: row for row in found["explanation"]["parameters"]}
    assert frame["full frame"]["unit"] == "B" and int(frame["full frame"]["h2"]) == 1514
    text = runner.invoke(web_command, [*words, "--explain"]).stdout
    assert "h3: " in text and "limited_by" in text and "initial window" in text
    assert "limits_s" not in text
    assert "loads" not in runner.invoke(web_command, [*words, "--json"]).stdout


def test_a_url_has_nothing_to_explain():
    words = ["https://test.example/", "--explain"]
    done = CliRunner().invoke(web_command, words)
    assert done.exit_code == 2 and "--explain is for loads in virtual time" in done.output
