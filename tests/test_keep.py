"""Captures and logs are kept on request, beside the run."""

from __future__ import annotations

import pytest

from qbkit.execution.runner import kept_folder
from qbkit.spec import Experiment


@pytest.mark.guest
def test_pcaps_are_kept_and_a_kept_run_is_found_again(tmp_path):
    out = tmp_path / "run.nc"
    experiment = Experiment(flows=["tcp:cubic"], duration_s=2)
    first = experiment.run(engine="virtual", out=out, keep="pcap")
    names = {path.name for path in kept_folder(out).iterdir()}
    assert names == {"before.pcap", "after.pcap"}
    again = experiment.run(engine="virtual", out=out, keep="pcap")
    assert again.attrs["created"] == first.attrs["created"]


@pytest.mark.guest
def test_qlog_is_kept(tmp_path):
    out = tmp_path / "run.nc"
    experiment = Experiment(flows=["aioquic:reno"], duration_s=2)
    experiment.run(engine="virtual", out=out, keep=("qlog",))
    assert list((kept_folder(out) / "flows/0").glob("*.sqlog"))


@pytest.mark.guest
def test_a_later_run_keeps_what_the_first_did_not(tmp_path):
    out = tmp_path / "run.nc"
    experiment = Experiment(flows=["tcp:cubic"], duration_s=1)
    names = {"qlog": {"flows"}, "pcap": {"before.pcap", "after.pcap"}}
    created = []
    for keep, there in (
        ("qlog", names["qlog"]),
        (("pcap", "qlog"), names["pcap"] | names["qlog"]),
        ("pcap", names["pcap"] | names["qlog"]),
    ):
        experiment.run(out=out, keep=keep, rerun=keep == "pcap")
        created.append(out.stat().st_mtime_ns)
        assert {path.name for path in kept_folder(out).iterdir()} == there
    assert len(set(created)) == 3
    # Captures of one run are never left beside another.
    other = experiment.model_copy(update={"seed": 2})
    other.run(out=out, force=True)
    assert not kept_folder(out).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"run.nc"}
