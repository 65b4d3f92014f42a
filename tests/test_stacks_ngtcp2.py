"""ngtcp2: the command lines, what is kept of its qlog, and a transfer over the loopback."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from loopback import Bench, free_port, succeed

from qbkit import stacks
from qbkit.stacks import ngtcp2 as module
from qbkit.stacks.base import Stack, Transfer
from qbkit.traces.run.telemetry import COLUMNS

MIB = 1 << 20


def upload() -> ModuleType:
    """The script that the guest runs."""
    spec = importlib.util.spec_from_file_location("upload", module.DRIVER / "upload.py")
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def event(time_ms: int, name: str, **data: int) -> bytes:
    fields = ",".join(f'"{key}":{value}' for key, value in data.items())
    return f'\x1e{{"time":{time_ms},"name":"{name}","data":{{{fields}}}}}\n'.encode()


def metrics(time_ms: int, window: int, **more: int) -> bytes:
    return event(
        time_ms, "recovery:metrics_updated", smoothed_rtt=333, congestion_window=window, **more
    )


def test_the_last_metrics_of_every_10_ms_are_kept(tmp_path: Path):
    log = upload().Log(tmp_path / "copy")
    parts = [
        b'\x1e{"qlog_format":"JSON-SEQ"}\n',
        metrics(0, 1000, bytes_in_flight=1200),
        event(3, "transport:packet_received"),
        metrics(11, 2000, min_rtt=9, bytes_in_flight=7),
        event(12, "recovery:packet_lost"),
        metrics(19, 3000, min_rtt=8, bytes_in_flight=6, ssthresh=5),
    ]
    whole = b"".join(parts)
    # The first part was written late, the second at once: the connection began at 1 s.
    log.add(whole[:-20], 1_040_000_000)
    log.add(whole[-20:], 1_019_000_000)
    log.save(tmp_path / "sender.csv")
    assert log.answered
    assert (tmp_path / "copy").read_bytes() == whole
    assert (tmp_path / "sender.csv").read_text().splitlines() == [
        "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,min_rtt_ms,"
        "lost_packets",
        "1000000000,1000,1200,,,,,0",
        "1019000000,3000,6,5,333,,8,1",
    ]


@pytest.fixture(params=["ngtcp2", "ngtcp2-0.12"])
def ngtcp2(request: pytest.FixtureRequest) -> Stack:
    return stacks.get(request.param)


def test_the_command_lines(ngtcp2: Stack):
    receive = ngtcp2.recv_argv(address="10.2.0.1:4001", out="/out", options={"qlog": True})
    words = " ".join(receive)
    assert "serve.py 4001 -- " in words
    for name in ("data", "stream-data-bidi-remote", "window", "stream-window"):
        assert f"--max-{name}=128M" in words
    assert "--qlog-dir=/out 10.2.0.1 4001 /run/qb/certificate/key.pem" in words
    options = {"ack_every_packets": 10, "pmtud": False}
    slow = ngtcp2.recv_argv(address="10.2.0.1:4001", out="/out", options=options)
    assert "--ack-thresh=10" in slow

    def send(**options: object) -> str:
        return " ".join(
            ngtcp2.send_argv(
                Transfer(
                    address="10.2.0.1:4001",
                    controller="bbr",
                    out="/out",
                    duration_s=None if options else 2.5,
                    size_bytes=7 if options else None,
                    options=options,
                )
            )
        )

    assert "--out /out --duration-s 2.5 -- " in send()
    assert "--cc=bbr " in send()
    assert "--no-pmtud" not in send()
    assert "--out /out --bytes 7 --qlog -- " in send(qlog=True, pmtud=False)
    assert "--no-pmtud 10.2.0.1 4001 https://10.2.0.1:4001/" in send(qlog=True, pmtud=False)


def test_without_its_programs_it_says_how_to_fetch_them(
    ngtcp2: Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    assert ngtcp2.status().reason == f"qbkit stacks build {ngtcp2.name}"
    assert ngtcp2.version().startswith("not fetched, driver ")


@pytest.fixture
def bench(bench: Bench, ngtcp2: Stack) -> Bench:
    if not ngtcp2.status().ready:
        pytest.skip(ngtcp2.status().reason)
    return bench


def test_its_controllers_are_those_of_its_help(bench: Bench, ngtcp2: Stack):
    help_words, _ = bench.start(ngtcp2, [*ngtcp2.program(), "--help"]).communicate(timeout=10)
    found = re.search(r"--cc=\(([\w|]+)\)", help_words)
    assert found and tuple(found[1].split("|")) == ngtcp2.controllers()


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"duration_s": 1.0}, {"size_bytes": 3 * MIB + 7}])
def test_an_upload_leaves_its_table(bench: Bench, ngtcp2: Stack, limit: dict[str, float]):
    address = f"127.0.0.1:{free_port()}"
    server = bench.receive(ngtcp2, address, {})
    succeed(bench.send(ngtcp2, address, "cubic", **limit))
    server.terminate()
    assert server.wait(30) == 0
    rows = bench.rows("sender.csv")
    assert set(rows[0]) <= {"time_ns", *COLUMNS}
    times_ns = [int(row["time_ns"]) for row in rows]
    assert times_ns == sorted(times_ns)
    assert int(rows[0]["cwnd_bytes"]) >= 10 * 1200  # RFC 9002, 7.2
    assert rows[-1]["min_rtt_ms"] != ""
    assert not (bench.folder / "upload").exists()
