"""Notebook 05, executed by papermill on real flows, and where nothing can be run."""

from __future__ import annotations

import pytest
from notebook_cells import shown

from qbkit.errors import EngineError
from qbkit.execution import notebooks

SHORT = {"rate_mbps": 10.0, "rtt_ms": 20.0, "duration_s": 5.0, "transfers": 4, "study_seeds": 0}


@pytest.mark.guest
def test_every_chart_of_a_short_run(tmp_path):
    executed = notebooks.execute("05", tmp_path, {**SHORT, "test": "quic-go:cubic"}).read_text()
    for words in (
        "Congestion window",
        "Ahead: bytes ACKed minus those of tcp:cubic at that time.",
        "First retransmission and transfer time",
        "Bandwidth of tcp:cubic: the delivery rate that the stack reports.",
        "Handshake of quic-go:cubic",
        "Losses and recovery",
        "What happened, and when",
    ):
        assert words in executed
    assert executed.count("qbkit-chart") >= 7


@pytest.mark.slow
def test_where_nothing_can_be_run_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_KERNEL", str(tmp_path / "no-kernel-here"))
    nowhere = {"published": str(tmp_path / "nowhere")}
    with pytest.raises(EngineError, match="or set test_log and reference_log to your logs"):
        shown("05", nowhere)
