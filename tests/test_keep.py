"""Captures and logs are kept on request, beside the run."""

from __future__ import annotations

import pytest

from qbkit.runner import kept_folder
from qbkit.spec import Experiment


@pytest.mark.guest
def test_pcaps_are_kept_and_a_kept_run_is_found_again(tmp_path):
    out = tmp_path / "run.nc"
    experiment = Experiment(flows=["tcp:cubic"], duration_s=2)
    first = experiment.run(engine="virtual", out=out, keep="pcap")
    names = {path.name for path in kept_folder(out).iterdir()}
    assert names == {"before.pcap", "behind.pcap"}
    again = experiment.run(engine="virtual", out=out, keep="pcap")
    assert again.attrs["created"] == first.attrs["created"]


@pytest.mark.guest
def test_qlog_is_kept(tmp_path):
    out = tmp_path / "run.nc"
    experiment = Experiment(flows=["aioquic:reno"], duration_s=2)
    experiment.run(engine="virtual", out=out, keep=("qlog",))
    assert list((kept_folder(out) / "flows/0").glob("*.sqlog"))
