"""Engine physical: the guest on the machine's clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conservation import assert_conserved

import qbkit as qb
from qbkit.testbed import engines

pytestmark = [pytest.mark.guest, pytest.mark.slow]
DURATION_S = 4


def run(out: Path):
    link = qb.Bottleneck(rate_mbps=5, rtt_ms=50, buffer_bdp=1)
    wanted = qb.Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=DURATION_S, seed=1)
    return wanted.run(out=out, engine="physical")


def test_a_run_takes_as_long_as_it_lasts_and_obeys_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """How much of the link is filled is left open: it depends on the machine's load."""
    monkeypatch.setattr(engines, "MOST_PROCESSOR_SHARE", 1.0)
    before = time.monotonic()
    ds = run(tmp_path / "run.nc")
    assert time.monotonic() - before > DURATION_S
    assert ds.attrs["engine"] == "physical"
    assert 0 < float(ds.throughput_mbps.isel(time=slice(10, None)).mean()) < 1.01 * 5
    assert float(ds.base_rtt_ms[0]) == pytest.approx(50)
    assert_conserved(ds)


def test_a_guest_that_needs_too_much_of_its_processor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(engines, "MOST_PROCESSOR_SHARE", 0.01)
    why = r"the guest used \d+ % of its processor.*allowed are 1 %: lower rate_mbps"
    with pytest.raises(qb.RunFailed, match=why):
        run(tmp_path / "run.nc")
    assert not (tmp_path / "run.nc").exists()
