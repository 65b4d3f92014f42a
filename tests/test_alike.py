"""Flows that are compared send as much, the same way; others are refused before the first run."""

from __future__ import annotations

import pytest

import qbkit as qb
from qbkit.errors import SpecError
from qbkit.studies.alike import require_same
from qbkit.studies.gate.gate import gate

COMPARING = {
    "conformance": lambda text: qb.conformance_study(text, "tcp:cubic"),
    "explain": lambda text: qb.explain(text, "tcp:cubic"),
    "evaluate": lambda text: qb.evaluate(text, quick=True),
    "hunt": qb.hunt,
    "bbr-draft": lambda text: qb.judge_cases(text.replace("cubic", "bbr")),
    "gate": lambda text: gate(text, "tcp:cubic"),
}


@pytest.mark.guest  # whose kernel is part of a run's name
@pytest.mark.parametrize("study", COMPARING)
@pytest.mark.parametrize("what", ["bytes=400000", "direction=reverse", "app=rate mbps=4"])
def test_flows_that_send_otherwise_are_no_comparison(study: str, what: str):
    with pytest.raises(SpecError) as raised:
        COMPARING[study](f"quinn:cubic?{what}")
    said = str(raised.value)
    if "app" in what and study in ("conformance", "explain"):
        assert "give a reference of the same kind" in said
    else:
        assert f" has {what} and tcp:" in said and f"leave out {what.partition('=')[0]}" in said


def test_flows_that_send_alike_are_compared():
    one, other = (qb.Flow(f"{name}?bytes=5000&direction=reverse") for name in ("a:b", "c:d"))
    require_same(one, [other])
    with pytest.raises(SpecError, match="a:b has bytes=5000 and tcp:cubic has no bytes, so they"):
        require_same(one, [other, qb.Flow("tcp:cubic")])
