"""What a study says before it starts, and what the demo says after it ended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import qbkit as qb
from qbkit.cli import demo
from qbkit.execution.cost import announcement, cpu_s
from qbkit.metrics import assess


def runs(count: int, stack: str) -> list[qb.Experiment]:
    flows = [f"{stack}:cubic", "tcp:cubic"]
    return [qb.Experiment(flows=flows, duration_s=120, seed=seed) for seed in range(count)]


def test_minutes_by_hand(monkeypatch: pytest.MonkeyPatch):
    # 20 Mbit/s for 120 s, half of it each: 1200 Mbit at 0.006 and 0.001 s, and 0.5 s.
    (one,) = runs(1, "quic-go")
    assert cpu_s(one) == pytest.approx(0.5 + 1200 * 0.007)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    # 50 of 8.9 s on two processors: 3.7 minutes.
    assert announcement(runs(50, "quic-go"), 60) == (
        "10 of 60 runs are stored, the others take about 4 min on 2 processors"
    )
    assert announcement([one], 1).endswith("take about 1 min on 1 processor")
    real_time = announcement(runs(2, "tcp"), 2, "host")
    assert real_time.endswith("take about 4 min on 1 processor")
    assert announcement(runs(50, "quic-go"), 50, scheduler="tcp://x").endswith("8 processor min")


def test_the_demo_leads_with_the_verdict(capsys: pytest.CaptureFixture[str]):
    study = qb.load_study(Path(__file__).parents[1] / "data/envelope")
    found = assess(study.tests, study.references, bootstrap=1)
    document = {"test": "quic-go:cubic", "reference": "tcp:cubic", **found.to_dict()}
    demo._report(json.loads(json.dumps(document)), Path("a.ipynb"), Path("a.html"), 9)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == (
        "quic-go:cubic against tcp:cubic: no difference detected: conformance 0.74 [0.54, 0.94], "
        "noise floor 0.74 [0.55, 0.94], mean throughput difference -1.45 Mbit/s, mean delay "
        "difference -0.16 ms (p = 0.15); 5 and 5 trials detect 2.7 Mbit/s (28 %) or 0.83 ms (2 %) "
        "four times in five, and do not show that the test is within 10 % of the reference's"
    )
    assert not any("conformance" in line for line in others)
