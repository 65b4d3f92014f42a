"""Hunts: the box of networks, the search, the way back, the case."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run

import qbkit as qb
from qbkit.cli import group
from qbkit.errors import SpecError
from qbkit.metrics.evaluation.harm import Comparison
from qbkit.metrics.evaluation.measures import MEASURES, Part
from qbkit.studies.evaluation.shelf import open_book
from qbkit.studies.hunt import hunt as hunting
from qbkit.studies.hunt import network as networks
from qbkit.studies.hunt import search as searching
from qbkit.studies.hunt.found import book_of
from qbkit.studies.hunt.metric import METRICS
from qbkit.studies.hunt.network import BOUNDS, RIVALS, Network
from qbkit.studies.hunt.search import Spent, first_networks, search, shrink

ROOT = Path(__file__).parents[1]
PART = st.floats(0.0, 1.0)
ODD = Network(13.0, 7.3, 4.8, "codel", 0.13, 0.37, 12.0, "tcp:bbr", -4.4)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[PART] * len(BOUNDS)), st.sampled_from([m.rivals for m in METRICS.values()]))
def test_every_point_of_the_box_is_a_network_that_can_run(point, rivals):
    network = Network.of(point, rivals)
    scenario = network.scenario(["utilisation"])
    experiment = scenario.experiment("quinn:bbr", {}, seed=1)
    assert experiment.bottleneck.rate_mbps == network.rate_mbps
    assert len(experiment.flows) == 1 + bool(network.rival)
    later_s = max(flow.start_s for flow in experiment.flows)
    assert scenario.from_s == later_s == abs(network.late_s)


def test_a_hunt_begins_with_the_same_networks_every_time():
    assert first_networks(RIVALS) == first_networks(RIVALS)
    kinds = {
        name: {getattr(n, name) for n in first_networks(RIVALS)} for name in ("rival", "qdisc")
    }
    assert kinds["rival"] == set(RIVALS)
    assert len(kinds["qdisc"]) == 3


def test_the_search_finds_what_chance_does_not():
    def score(network: Network) -> float:
        return -abs(math.log(network.rate_mbps / 7)) - abs(math.log(network.rtt_ms / 30))

    generations: list[float] = []

    def scores(some):
        if len(generations) == 12:
            raise Spent
        found = [score(network) for network in some]
        generations.append(max(found))
        return found

    search(scores, RIVALS)
    rng = np.random.default_rng(3)
    count = 12 * searching.GENERATION
    drawn = max(score(Network.of(p, RIVALS)) for p in rng.random((count, len(BOUNDS))))
    assert max(generations) > max(generations[0], drawn)


@settings(max_examples=30, deadline=None)
@given(st.sets(st.sampled_from(["qdisc", "loss_percent", "step", "hold_acks_ms", "late_s"])))
def test_what_remains_is_what_the_finding_needs_and_nothing_else(needed):
    plain = Network(1.0, 1.0, 1.0)

    def remains(network: Network) -> bool:
        return all(getattr(network, name) != getattr(plain, name) for name in needed)

    found = shrink(ODD, remains, alone=False)
    assert remains(found)
    assert found.rival == "tcp:bbr"
    assert not any(remains(simpler) for simpler in found.simpler(alone=False))
    assert (found.rate_mbps, found.rtt_ms, found.buffer_bdp) == (10.0, 10.0, 5.0)
    kept = {name for name in ("qdisc", "loss_percent", "step", "hold_acks_ms", "late_s")
            if getattr(found, name) != getattr(plain, name)}  # fmt: skip
    assert kept == needed


def test_a_rival_goes_first_where_the_sender_may_be_alone():
    found = shrink(ODD, lambda network: network.loss_percent > 0, alone=True)
    assert found == Network(10.0, 10.0, 5.0, loss_percent=0.1)
    assert str(found) == "10 Mbit/s, 10 ms, 5 BDP, 0.1 % lost"


def test_scores_are_differences_and_count_in_the_direction_that_is_worse():
    share, delay, use = (METRICS[name] for name in ("share", "delay", "utilisation"))
    assert share.score(0.9, 0.4, ODD) == share.score(0.4, 0.9, ODD) == pytest.approx(0.5)
    assert share.shown_by(0.9, 0.4) == "left"
    assert use.score(0.5, 0.8, ODD) == pytest.approx(0.3)
    assert use.score(0.8, 0.5, ODD) == 0.0
    full_ms = ODD.buffer_bdp * ODD.rtt_ms
    assert delay.score(full_ms, full_ms / 2, ODD) == pytest.approx(0.5)
    assert share.score(math.nan, 0.5, ODD) == 0.0


def test_shares_of_a_run_add_up_to_one():
    run = synthetic_run(shares=(0.3, 0.7))
    mine, left = (
        MEASURES[name].compute(Part(run, flows, 2.0, 18.0))
        for name, flows in (("share", [0]), ("left", [1]))
    )
    assert mine + left == pytest.approx(1.0)
    assert mine == pytest.approx(0.3, abs=0.05)


def test_the_spread_of_the_reference_is_that_of_halves():
    assert hunting.own_spread([1.0, 1.0, 1.0, 1.0]) == 0.0
    # Halves of 0, 0, 1, 1 have means that differ by 1 or by 0.
    assert hunting.own_spread([0.0, 0.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert math.isnan(hunting.own_spread([1.0, math.nan, 2.0]))


def found_by(network: Network, compared: Comparison) -> qb.Hunt:
    book = book_of("quiche:cubic", "tcp:cubic", network.scenario(["left"]))
    rows = pd.DataFrame([{"network": str(network), "score": 0.4}])
    return qb.Hunt("quiche:cubic", "tcp:cubic", "share", ODD, network, book, compared, 0.02, 5,
                   rows, 300.0)  # fmt: skip


def test_a_hunt_has_the_margin_of_its_case_on_a_short_path(monkeypatch):
    hunter = hunting._Hunter("quiche:cubic", "tcp:cubic", "delay", 300.0, None)
    waits_ms = {"quiche:cubic": [3.0] * 5, "tcp:cubic": [1.5] * 10}
    monkeypatch.setattr(hunter, "values", lambda _, sender, __: waits_ms[sender])
    short = replace(ODD, rtt_ms=5.0)
    assert hunter.confirm(short, short).compared.margin == 1.0  # a fifth of the RTT, not 2 ms


def test_a_case_is_a_book_that_evaluate_reads(tmp_path):
    worse = Comparison(0.1, 0.5, "tcp:cubic", 0.35, 0.45, 0.05)
    found = found_by(replace(ODD, rival="tcp:cubic"), worse)
    assert found.confirmed
    lines = str(found).splitlines()
    assert len(lines) == 3
    assert "share left to the others 0.1, and 0.5 with tcp:cubic in its place" in lines[0]
    assert "worse by 0.35 to 0.45" in lines[1]
    assert " known fault" in lines[2]
    found.save(tmp_path / "case.yaml")
    book = open_book(tmp_path / "case.yaml")
    assert book == found.book
    text = (tmp_path / "case.yaml").read_text()
    assert "qbkit evaluate quiche:cubic --book case.yaml --quick --seeds 5" in text
    [(_, scenario)] = book.scenarios
    assert scenario.experiment("quiche:cubic", {}, 1).bottleneck.qdisc == "codel"


@pytest.mark.parametrize(
    ("bar", "low", "high", "why"),
    [
        (0.5, 0.04, 0.45, "The lower end is not beyond the margin of 0.05"),
        (0.5, 0.01, 0.04, "The whole interval is within the margin of 0.05"),
        (0.11, 0.06, 0.45, "The difference of the means, 0.01, is not beyond that."),
        (0.5, 0.35, 0.45, ""),
    ],
)
def test_confirmed_is_beyond_the_margin_and_the_floor(tmp_path, bar, low, high, why):
    found = found_by(ODD, Comparison(0.1, bar, "tcp:cubic", low, high, 0.05))
    assert found.confirmed is (not why)
    found.save(tmp_path / "case.yaml")
    for text in (found.verdict.splitlines()[1], (tmp_path / "case.yaml").read_text()):
        assert why in text
        assert ("margin" in text) is ("margin" in why)
    assert found.to_dict()["margin"] == 0.05


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quic-go:cubic", "--budget", "5s"], "is too small for quic-go:cubic: the first 16"),
        (["quic-go:cubic", "--budget", "soon"], "'soon' is no time; write 90s, 30m or 2h"),
        (["tcp:cubic"], "has no other counterpart in the kernel"),
        (["quic-go:cubic", "--metric", "loss"], "choose from share, utilisation, delay"),
    ],
)
def test_what_cannot_be_hunted_is_one_sentence(words, said, monkeypatch):
    monkeypatch.setattr(hunting, "namer", lambda engine: lambda experiment: "")
    found = CliRunner().invoke(group, ["hunt", *words])
    assert said in f"{found.output}{found.exception}"
    assert isinstance(found.exception, SpecError | SystemExit)


@pytest.mark.guest
def test_a_small_hunt_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("QBKIT_RUNS", str(tmp_path / "runs"))
    small = {
        searching: {"GENERATION": 8},
        hunting: {"GENERATION": 8, "CONFIRMING": 2, "SHRINK_STEPS": 1, "SHRINK_SEEDS": (1001,)},
        networks: {"RATE_MBPS": (2.0, 3.0), "DURATION_S": 5.0, "STEP_AT_S": 2.0, "LATEST_S": 1.0},
    }
    for module, values in small.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    first = qb.hunt("quic-go:reno", budget_s=20)
    assert first.spent_s < 40
    assert {"search", "shrink"} >= set(first.tried["what"])
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.nc")}
    again = qb.hunt("quic-go:reno", budget_s=20)
    assert str(again) == str(first)
    assert again.spent_s == pytest.approx(first.spent_s)
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.nc")}


def test_each_published_case_is_in_the_table_and_has_a_second_method():
    folder = ROOT / "data/hunt"
    table = pd.read_csv(folder / "findings.csv").set_index("case")
    cases = sorted(path.name for path in folder.glob("*.yaml"))
    assert cases == sorted(table.index[table["confirmed"]])
    for name in cases:
        row = table.loc[name]
        book = open_book(folder / name)
        [(_, scenario)] = book.scenarios
        assert scenario.measures == (row["measure"],)
        assert book.standards == (row["reference"],)
        assert scenario.experiment(row["sender"], {}, 1).flows[0].name == row["sender"]
        assert row["second_method"]
        assert abs(row["value"] - row["reference_value"]) > row["floor"]
