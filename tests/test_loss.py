"""Loss in bursts: its laws by hand, in the kernel's netem, and in the balance of packets."""

from __future__ import annotations

import json
from itertools import groupby

import numpy as np
import pytest
import xarray as xr
from conservation import assert_conserved
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit.errors import SpecError
from qbkit.metrics import packet_balance
from qbkit.plots.drawing.link_words import loss_words
from qbkit.spec import Bottleneck, GilbertElliott
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


def test_text_dictionary_and_json_are_the_same_model():
    texts = ["gemodel 2 20 60 0.5", "gemodel 2% 20% 60% 0.5%", str(FULL)]
    given = [*texts, FULL, FULL.model_dump()]
    links = [Bottleneck(loss_model=model) for model in given]
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
    values = ["random", "gemodel 1 25"]
    sweep = qb.Sweep(name="x", base={"flows": ["a:b"]}, sweep={"bottleneck.loss_model": values})
    models = [point.experiment.bottleneck.loss_model for point in sweep.points()]
    assert models == ["random", SIMPLE]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"loss_model": "bursts"}, "'bursts' is no loss model; write random, or gemodel P R"),
        ({"loss_model": ""}, "'' is no loss model"),
        ({"loss_model": "gemodel 1"}, "'gemodel 1' is no loss model"),
        ({"loss_model": "gemodel 1 x"}, "'gemodel 1 x' is no loss model"),
        ({"loss_model": "gemodel 1 0"}, "to_good_percent = 0.0: input should be greater"),
        ({"loss_model": "gemodel 101 1"}, "to_bad_percent = 101.0: input should be less than or"),
        ({"loss_model": "gemodel 1 2 3 nan"}, "good_loss_percent = nan"),
        ({"loss_model": "gemodel 1 2 3 4"}, "loses 3 %, no more than the good one with 4 %"),
        ({"loss_model": {"to_bad_percent": 1}}, "loss_model.to_good_percent is missing"),
        ({"loss_model": SIMPLE, "loss_percent": 1}, "both set the loss; give one of them"),
        ({"loss_direction": "up"}, "should be 'to_receivers', 'to_senders' or 'both'"),
    ],
)
def test_bad_input_gets_one_sentence(link, words):
    with pytest.raises(SpecError) as caught:
        Bottleneck(**link)
    assert words in str(caught.value)
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
