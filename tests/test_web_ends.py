"""Web loads whose connection or server dies before they are complete (real guests)."""

from __future__ import annotations

import numpy as np
import pytest
from test_ends import end_of
from test_web import load_of

import qbkit as qb
from qbkit.cli.web.rows import load_row
from qbkit.errors import MetricError, RunFailed
from qbkit.metrics import load_limits, web_table
from qbkit.spec.web import WebLoad
from qbkit.stacks.web import base as web
from qbkit.stacks.web.servers.go import GoServer

BYTES = 8_000_000
"""More than 6 s at 10 Mbit/s."""
KILLED = 'exec timeout -s KILL 3 "$@"'
STOPPED = '"$@" & sleep 3; kill -STOP $!; wait'


class Dying(GoServer):
    """Go's server below a shell that ends or stops it after 3 s."""

    name = "dying"

    def __init__(self, script: str) -> None:
        self.script = script

    def argv(self, **fields) -> list[str]:
        return ["/bin/sh", "-c", self.script, "sh", *super().argv(**fields)]


@pytest.fixture
def dying(monkeypatch):
    """A load from a server that a script ends."""

    def made(script: str, **fields: object) -> WebLoad:
        monkeypatch.setitem(web._servers, "dying", Dying(script))
        return load_of(server="dying:cubic", **{"object_bytes": BYTES, **fields})

    return made


@pytest.mark.guest
@pytest.mark.parametrize(
    ("client", "protocol"), [("go", "h2"), ("go", "h3"), ("curl", "h2"), ("aioquic", "h3")]
)
def test_a_load_whose_server_is_killed_is_kept(dying, client: str, protocol: str):
    load = dying(KILLED, client=client, protocol=protocol)
    run = qb.run_web(load, keep="pcap")
    assert end_of(run) == {"by": "sender-program", "code": 9, "name": "SIGKILL", "reason": ""}
    at_s = float(run.ended_s[0])
    sentence = (
        f"{protocol} dying:cubic ended at {at_s:.1f} s: the sender's program ended with SIGKILL"
    )
    assert run.qb.warnings[0] == sentence
    assert np.isnan(float(run.time_to_last_byte_s))
    delivered = run.packet_size_bytes[run.packet_departure_s < at_s].sum()
    assert 0.2 * BYTES < int(delivered) < BYTES
    assert {file.name for file in run.qb.kept_folder.iterdir()} == {"before.pcap", "after.pcap"}
    assert qb.run_web(load).attrs["created"] == run.attrs["created"], "it is stored"
    row = load_row(load, run)
    assert (row["time_to_last_byte_s"], row["limited_by"]) == (None, None)
    assert row["ended"] == sentence.partition(": ")[2]
    with pytest.raises(MetricError, match=r"the load is not complete: .*SIGKILL"):
        load_limits(run)


@pytest.mark.guest
def test_a_client_that_hears_nothing_more_reports_a_timeout(dying):
    run = qb.run_web(dying(STOPPED, client="go", protocol="h3"))
    said = end_of(run)
    assert (said["by"], said["code"]) == ("timeout", said["code"])
    assert "no recent network activity" in said["reason"]
    assert 60 < float(run.ended_s[0]) < 65  # the idle timeout of the driver after the last packet


@pytest.mark.guest
def test_tables_leave_incomplete_loads_out_and_say_so(dying):
    runs = [qb.run_web(dying(KILLED, client="curl", protocol="h2")), qb.run_web(load_of())]
    with pytest.warns(UserWarning, match="1 of 2 loads ended before they were complete and are"):
        table = web_table(runs)
    assert list(table.server) == ["envoy:cubic"]


@pytest.mark.guest
def test_a_client_that_fails_otherwise_is_a_failed_load(monkeypatch):
    class Lost(GoServer):
        name = "lost"

        def argv(self, **fields) -> list[str]:
            return [word.replace("/run/qb/site", "/run/qb/run") for word in super().argv(**fields)]

    monkeypatch.setitem(web._servers, "lost", Lost())
    with pytest.raises(RunFailed, match="404"):
        qb.run_web(load_of(server="lost:cubic", client="curl", protocol="h2"))
