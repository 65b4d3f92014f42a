"""What a study says before it starts, and what the demo says after it ended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import qbkit as qb
from qbkit.cli import demo
from qbkit.execution.preflight import announcement, cpu_s
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
    names = ("quic-go:cubic", "tcp:cubic")
    found = assess(study.tests, study.references, bootstrap=1, names=names)
    document = {"test": "quic-go:cubic", "reference": "tcp:cubic", **found.to_dict()}
    demo._report(json.loads(json.dumps(document)), Path("a.ipynb"), Path("a.html"), 9)
    assert capsys.readouterr().out.splitlines()[:4] == [
        "quic-go's CUBIC and the kernel's: no difference detected.",
        "Conformance 0.74 (two trials of the kernel's: 0.74).",
        "5 seeds detect 2.7 Mbit/s or more.",
        f"datasets      {qb.store.default_folder()}",
    ]
