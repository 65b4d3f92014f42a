"""What a sender does after a pause or an outage, and that an exchanged receiver decides."""

from __future__ import annotations

import json

import limited_controllers  # noqa: F401  registers it
import numpy as np
import pytest
import xarray as xr

import qbkit as qb
from qbkit.metrics.parameters import compare, observe, observed
from qbkit.metrics.parameters.connection import Load, SharedLink, connection_of
from qbkit.metrics.parameters.interruptions import after_interruptions, outages_s, pauses_s
from qbkit.metrics.parameters.laws import BBRS
from qbkit.metrics.parameters.relations import INTERRUPTED
from qbkit.studies.exchange import Exchange, Outcome, other_receiver
from qbkit.studies.moments import moment_of
from qbkit.studies.probing import alone, interrupted, probing

LINK = qb.Bottleneck(rate_mbps=10, rtt_ms=50, buffer_bdp=1)
DROPPED = {"outages": "8:2 drop"}


def run_of(flow: str, **fields):
    link = (
        LINK.model_copy(update={})
        if not fields
        else qb.Bottleneck(rate_mbps=10, rtt_ms=50, buffer_bdp=1, **fields)
    )
    return qb.Experiment(bottleneck=link, flows=[flow], duration_s=16).run()


@pytest.mark.guest
def test_a_kernel_restarts_after_a_pause_and_quinn_keeps_its_window():
    """tcp_slow_start_after_idle; RFC 9002, section 7.8, lets a paced sender go on."""
    paused = "app=onoff on_s=4 off_s=1"
    kernel, quinn = (run_of(f"{name}:cubic?{paused}") for name in ("tcp", "quinn"))
    ends = pauses_s(observe(kernel))
    assert [round(end_s) for _, end_s in ends] == [5, 10, 15]
    kept = {
        run.attrs["hash"]: observed([run], (), [run])["kept_after_pause"].value
        for run in (kernel, quinn)
    }
    assert kept[kernel.attrs["hash"]] == pytest.approx(10 / 80, abs=0.05)  # the initial window
    assert kept[quinn.attrs["hash"]] > 0.5
    moment = moment_of("kept_after_pause", kernel, observe(kernel))
    assert moment.at_s == ends[0][1] and moment.words == "after a pause of its application"


@pytest.mark.guest
def test_an_outage_is_persistent_congestion_for_quinn_and_a_loss_for_quic_go():
    """RFC 9002, section 7.6; quic-go has no persistent congestion."""
    quinn, quic_go = (run_of(f"{name}:cubic", **DROPPED) for name in ("quinn", "quic-go"))
    assert outages_s(quinn) == [(8.0, 2.0)]
    assert observed([quinn], (), [quinn])["kept_after_outage"].value < 0.06
    assert observed([quic_go], (), [quic_go])["kept_after_outage"].value > 0.15
    assert moment_of("kept_after_outage", quinn, observe(quinn)).at_s == 10.0


@pytest.mark.guest
def test_a_bbr_that_takes_its_application_for_the_path_sends_slowly_after_a_pause():
    """30 kB every half second: a sample of it is 30 kB per round trip at most, half of the link."""
    app = "app=requests kb=30 think_s=0.4"
    flows = (f"qbkit:limited-bbr?{app}{more}" for more in ("&counts_limited=true", ""))
    sides = [observed([run], (), [run]) for run in map(run_of, flows)]
    trusting, usual = (side["rate_after_pause"].value for side in sides)
    assert trusting < 0.7 < 0.9 < usual
    found = [d.name for d in compare(*sides, by_name=BBRS) if d.name in INTERRUPTED]
    assert found == ["rate_after_pause"]


def test_the_rate_after_a_pause():
    """Twenty packets each second, 1 ms apart, on a link that takes 2 ms for each."""
    starts_s = np.arange(0.0, 5.0)[:, None]
    sent_s = (starts_s + 1e-3 * np.arange(20) * [[1], [4], [4], [8], [4]]).ravel()
    load = Load(sent_s, sent_s + 0.05, sent_s + 0.03, np.full(100, 1500.0))
    link = SharedLink(6.0, load.delivered_s, 1500.0 * np.arange(1, 101))
    c = connection_of("bursts", load, sent_s + 0.05, 0.05, link)
    run = xr.Dataset(attrs={"spec": json.dumps({"flows": [{"app": {"kind": "requests"}}]})})
    # A round holds 12 of the packets 4 ms apart, which leave at half of the link's rate, and the
    # first six of those 8 ms apart, at a quarter.
    rates = [0.5, 0.5, 0.25, 0.5]
    assert after_interruptions(c, run)["rate_after_pause"] == pytest.approx(np.median(rates))
    unknown = connection_of("bursts", load, sent_s + 0.05, 0.05)
    assert "rate_after_pause" not in after_interruptions(unknown, run)
    assert "rate_after_pause" not in after_interruptions(c, xr.Dataset())


def test_what_a_flow_does_alone_is_undisturbed_and_interruptions_are_runs_of_their_own():
    link = qb.Bottleneck(**{**LINK.model_dump(exclude_unset=True), **DROPPED})
    paused, how = "tcp:bbr?app=onoff on_s=1 off_s=1", {"duration_s": 16, "seeds": 2}
    for run in (*probing(paused, link), *alone(paused, link, **how)):
        assert run.flows[0].app is None
    assert alone("tcp:bbr", LINK, **how) == alone(paused, link, **how)
    assert interrupted("tcp:bbr", LINK, **how) == []
    assert [run.bottleneck for run in interrupted(paused, link, **how)] == [link, link]


@pytest.mark.parametrize(
    ("test", "reference", "receiver"),
    [
        ("quinn:cubic", "tcp:cubic", "quic-go"),
        ("quic-go:cubic", "tcp:cubic", "quinn"),
        ("quiche:cubic", "quinn:cubic", "quinn"),
        ("tcp:cubic", "tcp:reno", None),
        ("chromium:cubic", "tcp:cubic", None),
        ("quinn:cubic?app=rate mbps=2", "tcp:cubic", None),
        ("quinn:cubic?receiver=noq", "tcp:cubic", None),
    ],
)
def test_the_other_receiver_is_the_references_where_both_speak_with_each_other(
    test: str, reference: str, receiver: str | None
):
    assert other_receiver(qb.Flow(test), qb.Flow(reference)) == receiver


@pytest.mark.parametrize(
    ("conformance", "outcome", "is_cause"),
    [
        (0.75, "agrees", True),  # nothing differs any more
        (0.65, "differs", True),  # more than half of the way from 0.2 to 0.8
        (0.3, "differs", False),
    ],
)
def test_a_receiver_is_the_cause_if_most_of_the_difference_goes_with_it(
    conformance: float, outcome: str, is_cause: bool
):
    exchanged = Exchange(
        "quic-go", Outcome("differs", 0.2, 0.8), Outcome(outcome, conformance, 0.8)
    )
    assert exchanged.is_cause is is_cause
    assert f"0.20 to {conformance:.2f}" in str(exchanged)
    assert Exchange.from_dict(exchanged.to_dict()) == exchanged
