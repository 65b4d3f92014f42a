"""Causes of released BBRs whose fault is known (`data/faults.csv`), from real runs."""

from __future__ import annotations

import pytest
from causes import SETS, judged

RELEASED = {case.flow: case for case in SETS["causes"] if case.kind == "released"}


@pytest.mark.guest
@pytest.mark.parametrize("flow", ["tquic:bbr3", "msquic:bbr", "quinn:bbr", "picoquic:bbr1"])
def test_the_fault_of_a_released_bbr_is_its_first_cause(flow):
    """Of lsquic's, which has little room for aggregated ACKs, two seeds do not decide."""
    (row,) = judged(RELEASED[flow], "causes")
    assert row["outcome"] == row["exchanged"] == "right"
