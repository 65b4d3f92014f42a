"""A load whose guest stands still is run once more, like any run."""

from __future__ import annotations

from pathlib import Path

import pytest
from distributed import LocalCluster

import qbkit as qb
from qbkit.stacks.web import base as web
from qbkit.stacks.web.clients.go import GoClient
from qbkit.testbed import engines

SPIN = "while :; do :; done\n"


class Stalling(GoClient):
    """Go's client behind a shell that first does what a file says."""

    name = "stalling"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mounts(self) -> dict[str, Path]:
        return {**super().mounts(), "/run/qb/stalling": self.folder}

    def argv(self, **fields) -> list[str]:
        return [
            "/bin/sh",
            "-c",
            '. "$0/first"; exec "$@"',
            "/run/qb/stalling",
            *super().argv(**fields),
        ]


@pytest.mark.guest
@pytest.mark.parametrize("stalls", [1, 2])
def test_a_load_that_stands_still_is_run_again_once(
    stalls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    left = [SPIN] * (stalls - 1) + [""] * (3 - stalls)
    (tmp_path / "first").write_text(SPIN)

    def carry_out(engine, plan, folder, seed, silence_s, on_progress):
        spins = (tmp_path / "first").read_text() == SPIN
        try:
            return real(engine, plan, folder, seed, 3.0 if spins else silence_s, on_progress)
        finally:
            (tmp_path / "first").write_text(left.pop(0))

    real = engines.carry_out
    monkeypatch.setattr(engines, "carry_out", carry_out)
    monkeypatch.setitem(web._clients, "stalling", Stalling(tmp_path))
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=20, buffer_packets=50)
    fields = {"server": "go:cubic", "client": "stalling", "protocol": "h3", "object_bytes": 1000}
    load = qb.WebLoad(bottleneck=link, limit_s=20, **fields)
    # Its worker is a thread of this process, so that it has this test's client.
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as cluster:
        if stalls == 1:
            with pytest.warns(UserWarning, match="over h3, seed 1 was run again and passed; .*3 s"):
                (outcome,) = qb.run_web_all([load], scheduler=cluster.scheduler_address)
            assert outcome.run.attrs["protocol"] == "h3" and not outcome.reason
        else:
            (outcome,) = qb.run_web_all([load], scheduler=cluster.scheduler_address)
            assert outcome.run is None
            assert "its clock stood still for 3 s" in outcome.reason
    assert not left
