"""Golden runs give the recorded values, bit by bit, unless results change on purpose."""

from __future__ import annotations

from pathlib import Path

import golden_runs as golden
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qbkit import measurement, stacks
from qbkit.spec import QDISC_OPTIONS, Experiment
from qbkit.store.digests import digest

RUNS = golden.golden_runs()
EXPERIMENTS = {
    n: Experiment(**g) for n, g in RUNS.items() if g.keys().isdisjoint({"web", "imported"})
}


@pytest.mark.guest
@pytest.mark.parametrize("name", RUNS)
def test_golden_run(name: str, tmp_path: Path):
    ds = golden.result(RUNS[name], tmp_path / "run.nc")
    before, now = golden.recorded()["runs"][name], golden.facts(ds)
    moved = golden.moved(before["sha256"], golden.digests(ds))
    if moved and now["processor"] != before["processor"]:
        known = golden.document()["may_differ_by_processor"]
        if not {name, *known_names(before)}.isdisjoint(known):
            pytest.xfail(f"{name} may differ by processor: {', '.join(moved)} moved")
    changed = {key: (before[key], now[key]) for key in now if before[key] != now[key]}
    also = f"; other inputs than recorded: {changed}" if changed else ""
    assert not moved, f"{name}: {', '.join(moved)} moved; {golden.ADVICE}{also}"


def known_names(recorded: dict) -> set[str]:
    """The stacks of a recorded run, a web load's server and client; an imported one has none."""
    return {name for both in recorded["stacks"] for name in both.split(" and ")}


def test_the_digests_are_of_this_measurement_version_and_of_all_runs():
    document = golden.recorded()
    assert document["measurement_version"] == measurement.VERSION
    assert list(document["runs"]) == list(RUNS)


def test_every_stack_that_registries_have_has_a_golden_run():
    used = {flow.stack for experiment in EXPERIMENTS.values() for flow in experiment.flows}
    built = {s.name for s in stacks.all_stacks() if not s.source.startswith("external")}
    assert built <= used


def test_every_kind_of_setting_has_a_golden_run():
    links = [experiment.bottleneck for experiment in EXPERIMENTS.values()]
    assert {link.qdisc for link in links} == set(QDISC_OPTIONS)
    losing = [link for link in links if link.mean_loss_percent]
    assert {link.loss_direction for link in losing} == {"to_receivers", "to_senders", "both"}
    assert {type(link.loss_model).__name__ for link in losing} == {
        *("str", "GilbertElliott", "TimedBursts")
    }
    assert {e.ip_version for e in EXPERIMENTS.values()} == {4, 6}
    assert {e.topology for e in EXPERIMENTS.values()} == {"dumbbell", "parking_lot"}
    flows = [flow for experiment in EXPERIMENTS.values() for flow in experiment.flows]
    assert {flow.direction for flow in flows} == {"forward", "reverse"}
    webs = [g["web"] for g in RUNS.values() if "web" in g]
    assert any("page" in w for w in webs) and any("object_bytes" in w for w in webs)


@given(arrays.arrays(st.sampled_from(["f8", "f4", "i8", "u2", "?"]), st.integers(1, 20)))
def test_a_digest_is_of_values_and_not_of_how_they_lie_in_memory(values: np.ndarray):
    known = digest(values)
    assert digest(values.astype(values.dtype.newbyteorder(">"))) == known
    assert digest(np.repeat(values, 2)[::2]) == known
    assert digest(values.reshape(1, -1)) != known
    other = values.copy()
    other.view("u1")[0] ^= 1
    same = np.array_equal(other, values, equal_nan=values.dtype.kind == "f")
    if not same:  # 0.0 and -0.0 are equal, and have different bits
        assert digest(other) != known


def test_what_moved_is_named():
    ds = xr.Dataset({"a": ("x", [1.0, np.nan]), "b": ("y", ["é"]), "c": ("y", [0])})
    changed = ds.drop_vars("c").assign(a=("x", [1.0, 2.0]))
    assert golden.moved(golden.digests(ds), golden.digests(changed)) == ["a", "c"]
    assert golden.moved(golden.digests(ds), golden.digests(ds.assign_attrs(cpu_s=1))) == []
