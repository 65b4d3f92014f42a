"""Loss in bursts of packets and of time: laws by hand, in netem, and in the balance of packets."""

from __future__ import annotations

import json
from itertools import groupby

import numpy as np
import pytest
import xarray as xr
from conservation import assert_conserved
from hypothesis import given
from hypothesis import strategies as st
from ideal_link import served_s

import qbkit as qb
from qbkit.errors import SpecError
from qbkit.metrics import packet_balance
from qbkit.metrics.web.pages import loss_in_words
from qbkit.plots.drawing.link_words import loss_words
from qbkit.spec import Bottleneck, GilbertElliott, TimedBursts
from qbkit.testbed.links import edge_netem
from qbkit.traces.run.journey import Fate

SIMPLE = GilbertElliott(to_bad_percent=1, to_good_percent=25)
FULL = GilbertElliott(
    to_bad_percent=2, to_good_percent=20, bad_loss_percent=60, good_loss_percent=0.5
)


def test_moments_by_hand():
    # The bad state lasts 1 / r = 4 packets and is 1 / 26 of all; all of its packets are lost.
    assert SIMPLE.mean_burst_packets == pytest.approx(4)
    assert SIMPLE.mean_loss_percent == pytest.approx(100 / 26)
    # p = 100 % - r: the states are independent from packet to packet, so the losses are as well.
    flat = GilbertElliott(to_bad_percent=10, to_good_percent=90, bad_loss_percent=50)
    assert flat.mean_loss_percent == pytest.approx(5)
    assert flat.mean_burst_packets == pytest.approx(1 / 0.95)
    # 2 / 22 bad and 20 / 22 good: 0.6 / 11 + 0.05 / 11.
    assert FULL.mean_loss_percent == pytest.approx(65 / 11)


percents = st.floats(0.5, 99.5)


@given(p=percents, r=percents, bad=percents, good=percents)
def test_moments_of_any_model_are_those_of_its_chain(p, r, bad, good):
    bad, good = max(bad, good + 0.1), good
    model = GilbertElliott(
        to_bad_percent=p, to_good_percent=r, bad_loss_percent=bad, good_loss_percent=good
    )
    # netem's chain by its matrices: state of the next packet, and loss of this one.
    steps = np.array([[100 - p, p], [r, 100 - r]]) / 100
    loses = np.diag([good, bad]) / 100
    stays = np.linalg.matrix_power(steps, 100_000)[0]
    assert model.mean_loss_percent == pytest.approx(100 * (stays @ loses).sum())
    # Length of a burst: a loss after an arrival, then a loss after each loss.
    first = stays @ (np.eye(2) - loses) @ steps @ loses
    length = (first @ np.linalg.inv(np.eye(2) - steps @ loses)).sum() / first.sum()
    assert model.mean_burst_packets == pytest.approx(length)


TIMED = TimedBursts(gap_s=0.5, length_s=0.1)


@given(gap_s=st.floats(0.01, 5), length_s=st.floats(0.01, 5), seed=st.integers(0, 99))
def test_bursts_of_time_have_the_lengths_that_they_should(gap_s, length_s, seed):
    model = TimedBursts(gap_s=gap_s, length_s=length_s)
    whole_s = 400 * (gap_s + length_s)
    times_s = np.array(model.until(whole_s, seed))
    assert (np.diff(times_s.ravel()) >= 0).all() and times_s[0, 0] > 0 and times_s.max() <= whole_s
    share = (times_s[:, 1] - times_s[:, 0]).sum() / whole_s
    # The variance of a share of alternating exponential times is 2 g² l² / (g + l)³ / whole.
    error = (2 * (gap_s * length_s) ** 2 / (gap_s + length_s) ** 3 / whole_s) ** 0.5
    assert share == pytest.approx(model.mean_loss_percent / 100, abs=5 * error)
    assert len(times_s) == pytest.approx(400, abs=5 * 400**0.5)
    # Another end of the experiment draws the same bursts, and the seed alone draws others.
    half_s = whole_s / 2
    assert (
        model.until(half_s, seed)[:-1]
        == model.until(whole_s, seed)[: -1 + len(model.until(half_s, seed))]
    )
    assert model.until(whole_s, seed + 1) != model.until(whole_s, seed)


def test_text_dictionary_and_json_are_the_same_model():
    texts = ["gemodel 2 20 60 0.5", "gemodel 2% 20% 60% 0.5%", str(FULL)]
    timed = [TIMED, "bursts gap_s=0.5 length_s=0.1", str(TIMED), {"gap_s": 0.5, "length_s": 0.1}]
    for alike in ([*texts, FULL, FULL.model_dump()], timed):
        links = [Bottleneck(loss_model=model) for model in alike]
        assert all(link == links[0] for link in links)
        experiment = qb.Experiment(bottleneck=links[0], flows=["tcp:cubic"])
        assert qb.Experiment.from_json(experiment.to_json()) == experiment


def test_experiments_without_bursts_keep_their_json():
    old = qb.Experiment(bottleneck=Bottleneck(loss_percent=1), flows=["tcp:cubic"])
    assert "loss_" not in old.to_json().replace("loss_percent", "")
    assert old.hash == "93ac867e09053b7d"
    hashes = {
        qb.Experiment(bottleneck=Bottleneck(**link), flows=["tcp:cubic"]).hash
        for link in (
            {"loss_percent": 1},
            {"loss_percent": 1, "loss_direction": "both"},
            {"loss_model": SIMPLE},
            {"loss_model": FULL},
        )
    }
    assert len(hashes) == 4


def test_a_sweep_of_loss_models():
    values = ["random", "gemodel 1 25", "bursts gap_s=0.5 length_s=0.1"]
    sweep = qb.Sweep(name="x", base={"flows": ["a:b"]}, sweep={"bottleneck.loss_model": values})
    models = [point.experiment.bottleneck.loss_model for point in sweep.points()]
    assert models == ["random", SIMPLE, TIMED]


BAD_MODELS = {
    "burst": "'burst' is no loss model; write random, gemodel P R [1-H",
    "bursts": "'bursts' has no gap_s; write bursts gap_s=2 length_s=0.1",
    "bursts gap_s=1": "has no length_s; write bursts gap_s=2",
    "bursts gap_s=1 length_s=x": "has 'x' where a number must be",
    "bursts gap_s=1 length_s=1 seed=2": "has no 'seed=2'; write bursts gap_s",
    "bursts gap_s=1 length_s=1 gap_s=2": "has gap_s twice; keep one",
    "bursts gap_s=0 length_s=1": "gap_s = 0: input should be greater",
    "": "'' is no loss model",
    "gemodel 1": "'gemodel 1' is no loss model",
    "gemodel 1 x": "'gemodel 1 x' has 'x' where a number must be",
    "gemodel 1 0": "to_good_percent = 0: input should be greater",
    "gemodel 101 1": "to_bad_percent = 101: input should be less than or",
    "gemodel 1 2 3 nan": "has 'nan' where a number must be",
    "gemodel 1 2 3 4": "loses 3 %, no more than the good one with 4 %",
}
"""A text that is no loss model → a part of the sentence."""


@pytest.mark.parametrize(
    ("link", "words"),
    [
        *(({"loss_model": text}, words) for text, words in BAD_MODELS.items()),
        ({"loss_model": None}, "'None' is no loss model; write random"),
        ({"loss_model": {"gap_s": 1}}, "loss_model.length_s is missing"),
        ({"loss_model": TIMED, "loss_percent": 1}, "both set the loss; give one of them"),
        ({"loss_model": {"to_bad_percent": 1}}, "loss_model.to_good_percent is missing"),
        ({"loss_model": SIMPLE, "loss_percent": 1}, "both set the loss; give one of them"),
        ({"loss_direction": "up"}, "should be 'to_receivers', 'to_senders' or 'both'"),
        ({"loss_direction": "both"}, "loss_direction both without a loss loses nothing; give"),
    ],
)
def test_bad_input_gets_one_sentence(link, words):
    with pytest.raises(SpecError) as caught:
        Bottleneck(**link)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stored_experiment_with_a_direction_and_no_loss_still_opens():
    link = Bottleneck(loss_percent=0, loss_direction="both")
    kept = qb.Experiment(bottleneck=link, flows=["tcp:cubic"])
    assert qb.Experiment.from_json(kept.to_json()) == kept


def test_bursts_that_are_too_many_get_one_sentence():
    link = Bottleneck(loss_model="bursts gap_s=0.001 length_s=0.001")
    with pytest.raises(SpecError, match="has about 30000 bursts; the most is 10000") as caught:
        qb.Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=60)
    assert "\n" not in str(caught.value)


def test_words_of_netem_and_of_people():
    ends = " limit 1000000"
    assert edge_netem(Bottleneck()) == {}
    assert edge_netem(Bottleneck(loss_percent=2)) == {"d": "loss random 2.0%" + ends}
    both = Bottleneck(loss_model=FULL, loss_direction="both")
    assert edge_netem(both) == dict.fromkeys("ds", "loss gemodel 2.0% 20.0% 60.0% 0.5%" + ends)
    assert loss_words(both) == f"5.91 % loss in bursts of {FULL.mean_burst_packets:.3g} each way"
    acks = Bottleneck(loss_percent=2, loss_direction="to_senders")
    assert list(edge_netem(acks)) == ["s"]
    assert loss_words(acks) == "2 % loss of ACKs"
    timed = Bottleneck(loss_model=TIMED)
    assert edge_netem(timed) == {"d": "loss random 0.0%" + ends}
    assert loss_words(timed) == "16.7 % loss in bursts of 100 ms"


def test_the_words_of_web_loads_name_every_model():
    for model, words in ((SIMPLE, "3.8 % in bursts of 4"), (TIMED, "17 % in bursts of 100 ms")):
        link = Bottleneck(loss_model=model).model_dump()
        assert loss_in_words(link) == words


def burst_lengths(lost: np.ndarray) -> list[int]:
    """Lengths of the runs of losses."""
    return [len(list(run)) for is_lost, run in groupby(lost.tolist()) if is_lost]


def assert_lost_as(model: GilbertElliott, fate: np.ndarray) -> None:
    """The losses have the model's rate, and its bursts their length, within 4 standard errors."""
    lost = fate[fate != Fate.QUEUE_DROP] == Fate.RANDOM_LOSS
    rate = model.mean_loss_percent / 100
    # Losses are correlated over as many packets as the states last (both probabilities small).
    memory = 2 / ((model.to_bad_percent + model.to_good_percent) / 100)
    error = np.sqrt(rate * (1 - rate) * memory / len(lost))
    assert lost.mean() == pytest.approx(rate, abs=4 * error)
    bursts = burst_lengths(lost)
    mean, error = model.mean_burst_packets, np.std(bursts) / np.sqrt(len(bursts))
    assert np.mean(bursts) == pytest.approx(mean, abs=4 * error)
    assert np.mean(bursts) > 1.3 > 1 / (1 - rate)  # no independent losses


def run(flows: list[str | qb.Flow], **link: object) -> xr.Dataset:
    bottleneck = Bottleneck(rate_mbps=20, rtt_ms=20, buffer_bdp=8, **link)
    ds = qb.Experiment(bottleneck=bottleneck, flows=flows, duration_s=8).run(engine="virtual")
    assert_conserved(ds)
    assert json.loads(ds.attrs["warnings"]) == []
    return ds


@pytest.mark.guest
def test_bursts_in_both_directions():
    ds = run(["tcp:bbr"], loss_model=SIMPLE, loss_direction="both")
    assert_lost_as(SIMPLE, ds.packet_fate.values)
    assert_lost_as(SIMPLE, ds.ack_fate.values)
    lost = (ds.ack_fate == Fate.RANDOM_LOSS).values
    assert np.array_equal(np.isnan(ds.ack_departure_s.values), lost)
    # The two directions have chains of their own.
    data, acks = ds.netem_lost_packets.item(), ds.netem_lost_ack_packets.item()
    assert data > 0 < acks != data
    back = packet_balance(ds).query("bottleneck == 0")
    assert back.source.tolist() == ["captures", "kernel"]
    assert back.random_loss_packets.tolist() == [acks, acks]


@pytest.mark.guest
def test_four_parameters_on_the_way_to_the_receivers_alone():
    ds = run(["tcp:bbr"], loss_model=FULL)
    assert_lost_as(FULL, ds.packet_fate.values)
    assert "ack_fate" not in ds


@pytest.mark.guest
def test_lost_acks_behind_a_queue():
    # With reverse traffic ACKs pass a queue before they meet the loss.
    flows = ["tcp:cubic", qb.Flow("tcp:reno", direction="reverse")]
    ds = run(flows, loss_percent=2, loss_direction="to_senders")
    assert (ds.netem_lost_packets == 0).all()
    assert (ds.netem_lost_ack_packets > 0).all()
    of_acks = (ds.ack_fate == Fate.RANDOM_LOSS).values
    assert of_acks.mean() == pytest.approx(0.02, abs=0.01)
    assert not (ds.packet_fate == Fate.RANDOM_LOSS).any()
    # Lost ACKs alone cost TCP no data: later ACKs cover them.
    assert float(ds.throughput_mbps.sel(time=slice(2, 8)).mean("time").min()) > 15


def in_bursts(run: xr.Dataset, times_s: np.ndarray) -> np.ndarray:
    """Whether each time is inside of a burst."""
    edges_s = np.array(run.qb.experiment.loss_bursts_s).ravel()
    return np.searchsorted(edges_s, times_s) % 2 == 1


def behind_the_queue(run: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """For each packet behind the queue: whether it was lost there, and met a burst.

    An ideal link says when a lost packet came out. It is right to 12 µs (test_changing_links).
    """
    passed = run.packet_fate.values != Fate.QUEUE_DROP
    at_s, sizes = run.packet_time_s.values[passed], run.packet_size_bytes.values[passed]
    left_s = served_s(at_s, sizes.astype(float), [0], [20])
    edges_s = np.array(run.qb.experiment.loss_bursts_s).ravel()
    known = np.abs(left_s[:, np.newaxis] - edges_s).min(axis=1) > 20e-6
    lost = run.packet_fate.values[passed] == Fate.RANDOM_LOSS
    return lost[known], in_bursts(run, left_s)[known]


@pytest.mark.guest
def test_a_burst_of_time_takes_all_packets_in_it_and_no_others():
    # What else netem does at the same port stays: packets are late, and ACKs are held.
    link = Bottleneck(
        rate_mbps=20,
        rtt_ms=20,
        loss_model=TIMED,
        loss_direction="both",
        reorder_percent=5,
        hold_acks_ms=2,
    )
    run = qb.Experiment(bottleneck=link, flows=["tcp:bbr", "quinn:cubic"], duration_s=8).run()
    assert_conserved(run)
    lost, inside = behind_the_queue(run)
    assert np.array_equal(lost, inside)
    assert lost.sum() > 100
    late_s = run.packet_departure_s.values - run.packet_left_s.values
    assert (late_s[np.isfinite(late_s)] > 4e-3).mean() == pytest.approx(0.05, abs=0.01)
    # ACKs meet no queue: they are captured where they are lost.
    lost_acks = run.ack_fate.values == Fate.RANDOM_LOSS
    assert lost_acks.sum() > 3
    assert np.array_equal(lost_acks, in_bursts(run, run.ack_time_s.values))


@pytest.mark.guest
def test_a_burst_of_time_is_the_same_for_flows_that_meet_no_common_link():
    spec = qb.Experiment(
        bottleneck=Bottleneck(loss_model=TIMED, loss_direction="to_senders", rtt_ms=20),
        flows=["tcp:bbr", "quinn:cubic", "tcp:cubic"],
        topology="parking_lot",
        duration_s=5,
    )
    run = spec.run()
    assert_conserved(run)
    lost = run.ack_fate.values == Fate.RANDOM_LOSS
    assert np.array_equal(lost, in_bursts(run, run.ack_time_s.values))
    assert set(run.ack_flow.values[lost].tolist()) == {0, 1, 2}


@pytest.mark.guest
def test_a_part_of_the_packets_of_a_burst():
    model = TimedBursts(gap_s=0.3, length_s=0.3, percent=30)
    ds = run(["tcp:bbr"], loss_model=model)
    lost, inside = behind_the_queue(ds)
    assert not lost[~inside].any()
    met = lost[inside]
    assert met.mean() == pytest.approx(0.3, abs=4 * (0.21 / len(met)) ** 0.5)
    assert "ack_fate" not in ds
