"""What a CE mark leaves of a window, from packets alone, beside what the standards say."""

from __future__ import annotations

import pytest

import qbkit as qb
from qbkit.metrics.parameters import (
    compare,
    infer,
    known_precedents,
    observe,
    observed,
    voted,
)
from qbkit.metrics.parameters.behaviour import samples_of_path
from qbkit.studies.moments import moment_of


def run_of(flow: str, qdisc: str = "fq_codel"):
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40, buffer_bdp=4, qdisc=qdisc)
    return qb.Experiment(bottleneck=link, flows=[flow], duration_s=12).run()


@pytest.mark.guest
@pytest.mark.parametrize(
    ("flow", "kept"),
    [
        ("tcp:cubic?ecn=true", 0.7),  # RFC 9438, section 4.6, also for marks
        ("tcp:reno?ecn=true", 0.5),  # RFC 5681
        ("tcp:dctcp", 0.97),  # RFC 8257: 1 - α/2, of few marks
    ],
)
def test_a_mark_leaves_what_the_standard_says(flow: str, kept: float):
    found = infer(run_of(flow))["kept_after_mark"]
    assert found.value == pytest.approx(kept, abs=0.04)
    assert found.meaning == "fraction of the window left after a CE mark"


@pytest.mark.guest
def test_the_cycles_of_a_window_that_marks_reduce_are_no_probing():
    queue = {"qdisc": "codel", "qdisc_options": {"ecn": True}, "buffer_packets": 1000}
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40, **queue)
    spec = qb.Experiment(bottleneck=link, flows=["tcp:cubic?ecn=true"], duration_s=15)
    found = infer(spec.run())
    assert found["kept_after_mark"].value == pytest.approx(0.7, abs=0.04)
    assert not found["growth"].known and not found["probe_up_gain"].known


@pytest.mark.guest
def test_another_response_to_marks_is_a_cause_with_its_moment():
    cubic, reno = (run_of(f"tcp:{name}?ecn=true") for name in ("cubic", "reno"))
    [cause] = [
        d for d in compare(observed([reno]), observed([cubic])) if d.name == "kept_after_mark"
    ]
    assert cause.clause.startswith("a CE mark leaves 0.5 of its window, not 0.6")
    moment = moment_of("kept_after_mark", reno, observe(reno))
    assert moment.words == "after a CE mark" and 0 < moment.at_s < 12


@pytest.mark.guest
@pytest.mark.parametrize(
    ("test", "name", "clause"),
    [
        ("tcp:dctcp", "kept_after_mark", "a CE mark leaves 0.9"),
        (
            "tcp:cubic?ecn=true",
            "congestion_signal",
            "the queue marks its packets, and drops the reference's",
        ),
    ],
)
def test_a_sender_that_is_marked_where_the_reference_loses(test: str, name: str, clause: str):
    marked, dropped = run_of(test), run_of("tcp:cubic")
    found = differences_of_observed(marked, dropped)
    assert found[0].name == name
    assert found[0].clause.startswith(clause)
    assert moment_of(name, marked, observe(marked)).words == "after a CE mark"
    lossy = run_of("tcp:reno?ecn=true", "fifo"), run_of("tcp:reno", "fifo")
    assert "congestion_signal" not in {d.name for d in differences_of_observed(*lossy)}


def differences_of_observed(test, reference):
    """The causes of two lone flows of one sender, by rules and precedents."""
    sides = observed([test]), observed([reference])
    return voted(compare(*sides), *sides, known_precedents(), models_path=False)


@pytest.mark.guest
def test_a_window_that_marks_hold_is_not_capped():
    prague = run_of("picoquic:prague", "dualpi2")
    assert "window_cap_packets" in samples_of_path(observe(prague), None)  # it is constant
    assert not observed([prague])["window_cap_packets"].known


@pytest.mark.guest
def test_without_marks_nothing_is_said_of_them():
    assert "kept_after_mark" not in infer(run_of("tcp:cubic", "fifo"))
