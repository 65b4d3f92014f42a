"""Every packet is accounted for: by hand, and over random links in real guests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from conservation import assert_conserved
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import qbkit as qb
from qbkit.errors import MetricError
from qbkit.metrics import packet_balance, summary
from qbkit.spec import QDISC_OPTIONS
from qbkit.traces.run import balance
from qbkit.traces.run.frames import Packets, Ways, address_number
from qbkit.traces.run.journey import Captures, Fate, Route, follow
from qbkit.traces.run.match import NEVER

ACROSS = Route("10.1.0.1", "10.2.0.1", [0, 1])
FIRST = Route("10.1.1.1", "10.2.1.1", [0])
SECOND = Route("10.1.2.1", "10.2.2.1", [1])
STRANGER = Route("10.9.9.9", "10.2.0.1", [])


def capture(*seen: tuple[int, Route, int]) -> Packets:
    """Packets by (time in ns, whose, key)."""
    ends = [[address_number(getattr(r, n)) for _, r, _ in seen] for n in ("sender", "receiver")]
    zeros = np.zeros(len(seen), np.uint64)
    return Packets(
        time_ns=np.array([time_ns for time_ns, _, _ in seen], np.int64),
        frame_bytes=zeros,
        way=np.arange(len(seen), dtype=np.uint64),
        key=np.array([key for _, _, key in seen], np.uint64),
        ecn=np.zeros(len(seen), np.uint8),
        ways=Ways(*np.array(ends, np.uint64), zeros, zeros),
    )


def parking_lot() -> Captures:
    """Flow 0 sends 1 to 6: 1 is dropped by queue 0, 2 by queue 1, 3 lost at random after both; 5
    and 6 never come out of queue 1. Flow 1 sends 11 and 12, of which 12 is lost at random. Flow 2
    sends 21, which arrives. A stranger's packet 99 is no flow's.
    """
    return Captures(
        before=capture(
            *((10, ACROSS, 1), (11, ACROSS, 2), (12, ACROSS, 3), (13, FIRST, 11), (14, SECOND, 21)),
            *(
                (15, ACROSS, 4),
                (16, ACROSS, 5),
                (17, ACROSS, 6),
                (18, FIRST, 12),
                (19, STRANGER, 99),
            ),
        ),
        queues=[
            capture(
                *((21, ACROSS, 2), (22, ACROSS, 3), (23, FIRST, 11), (24, ACROSS, 4)),
                *((25, ACROSS, 5), (26, ACROSS, 6), (27, FIRST, 12)),
            ),
            capture((30, SECOND, 21), (32, ACROSS, 3), (34, ACROSS, 4)),
        ],
        after=capture((23, FIRST, 11), (30, SECOND, 21), (34, ACROSS, 4)),
    )


ROUTES = [ACROSS, FIRST, SECOND]


def test_fates_by_hand():
    journey = follow(parking_lot(), ROUTES, emptied=[True, False])
    fates = dict(zip(journey.packets.key.tolist(), journey.fate.tolist(), strict=True))
    assert fates == {
        1: Fate.QUEUE_DROP,
        2: Fate.QUEUE_DROP,
        3: Fate.RANDOM_LOSS,
        4: Fate.ARRIVED,
        5: Fate.UNKNOWN,
        6: Fate.UNKNOWN,
        11: Fate.ARRIVED,
        12: Fate.RANDOM_LOSS,
        21: Fate.ARRIVED,
    }
    # Where the queue is known to be empty, what did not come out of it was dropped.
    emptied = follow(parking_lot(), ROUTES, emptied=[True, True])
    assert emptied.fate.tolist().count(Fate.UNKNOWN) == 0
    assert emptied.fate.tolist().count(Fate.QUEUE_DROP) == 4


def test_what_a_queue_counts_is_found_behind_a_policer():
    every = {"dev": "r1", "handle": "1:", "bytes": 9, "packets": 1, "drops": 0, "overlimits": 3}
    queue = {**every, "kind": "codel", "ecn_mark": 3, "drop_overlimit": 2, "options": {}}
    shaper, policer = {**every, "kind": "tbf", "root": True}, {**every, "kind": "clsact"}
    found = balance.own_counters({"qdiscs": [[shaper, queue, policer], [shaper, queue]]})
    assert found == [{"kind": "codel", "ecn_mark": 3, "drop_overlimit": 2}] * 2


@given(
    packets=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 30), st.integers(0, 60), st.booleans()),
        min_size=1,
        max_size=30,
    ),
    queues=st.integers(0, 2),
)
def test_equal_packets_behind_random_loss_keep_their_own_fate(packets, queues):
    # Packets of four kinds, in order through some of two queues, which drop nothing, and then
    # through the loss, which takes no time.
    keys, gaps_ns, waits_ns, lost = (np.array(column) for column in zip(*packets, strict=True))
    at_ns = [np.cumsum(gaps_ns)]
    for _ in range(queues):
        times_ns = at_ns[-1] + waits_ns
        # Each leaves after the one before it.
        order = np.arange(len(keys))
        at_ns.append(np.maximum.accumulate(times_ns - order) + order)
    route = Route("10.1.0.1", "10.2.0.1", list(range(queues)))

    def seen(times_ns: np.ndarray, chosen: np.ndarray) -> Packets:
        return capture(
            *((t, route, k) for t, k in zip(times_ns[chosen], keys[chosen], strict=True))
        )

    everything = np.ones(len(keys), bool)
    before, *behind = (seen(times_ns, everything) for times_ns in at_ns)
    unused = [capture()] * (2 - queues)
    captures = Captures(before, [*behind, *unused], seen(at_ns[-1], ~lost))
    journey = follow(captures, [route], emptied=[True, True])
    assert [times_ns.tolist() for times_ns in journey.out_ns[:queues]] == [
        times_ns.tolist() for times_ns in at_ns[1:]
    ]
    assert journey.arrived_ns.tolist() == np.where(lost, NEVER, at_ns[-1]).tolist()
    assert journey.fate.tolist() == np.where(lost, Fate.RANDOM_LOSS, Fate.ARRIVED).tolist()


def counted(**changes: int) -> xr.Dataset:
    """The balance of the parking lot, with the kernel's counters as they must be, or changed."""
    counters = {"sent": 7, "dropped": 1, "queued": 0, **changes}
    result = {
        "qdiscs": [
            [{"packets": counters["sent"], "drops": counters["dropped"], "qlen": 0}],
            [{"packets": 3, "drops": 1, "qlen": 2}],
        ],
        "losses": [{"drops": 1}, {"drops": 1}, {"drops": 0}],
        "flows": ROUTES,
    }
    journey = follow(parking_lot(), ROUTES, emptied=[True, False])
    variables = balance.balance_variables(journey, parking_lot(), ROUTES, 3, counted_ns=100)
    coords = {"label": ("flow", ["across", "first", "second"])}
    return xr.Dataset({**variables, **balance.counter_variables(result)}, coords)


def test_balance_by_hand():
    table = packet_balance(counted())
    columns = ["bottleneck", "direction", "label", "source"]
    assert table.drop(columns=columns).values.tolist() == [
        # in, out, dropped, lost at random, queued
        [6, 5, 1, 0, 0],
        [2, 1, 0, 1, 0],
        [8, 6, 1, 1, 0],
        [5, 1, 1, 1, 2],
        [1, 1, 0, 0, 0],
        [6, 2, 1, 1, 2],
    ]
    assert table.label.tolist() == ["across", "first", "", "across", "second", ""]
    assert table.source.tolist() == ["captures", "captures", "kernel"] * 2
    assert balance.violations(counted()) == [
        "2 packets were still in bottleneck 2 when the capture ended; what became of them is "
        "unknown"
    ]


def both_ways() -> tuple[Captures, list[Route]]:
    """Flow 0 goes forward through queue 0, its ACKs back through queue 1; flow 1 the other way.

    Queue 0 drops data 2 of flow 0 and lets ACK 21 of flow 1 through; queue 1 lets data 11 of flow 1
    and ACK 31 of flow 0 through and drops ACK 32.
    """
    forth, back = Route("10.1.0.1", "10.2.0.1", [0]), Route("10.1.1.1", "10.2.1.1", [1])
    forth_ack, back_ack = Route("10.2.0.1", "10.1.0.1", [1]), Route("10.2.1.1", "10.1.1.1", [0])
    seen = [(10, forth, 1), (11, forth, 2), (12, back, 11), (22, back_ack, 21), (23, forth_ack, 31)]
    before = capture(*seen, (24, forth_ack, 32))
    after = capture((20, forth, 1), (21, back, 11), (30, back_ack, 21), (31, forth_ack, 31))
    return Captures(before, [], after), [forth, back, forth_ack, back_ack]


def test_balance_of_both_directions_by_hand():
    captures, routes = both_ways()
    journey = follow(captures, routes, emptied=[True, True])
    variables = balance.balance_variables(journey, captures, routes, 2, counted_ns=100)
    result = {
        "qdiscs": [[{"packets": 2, "drops": 1, "qlen": 0}]] * 2,
        "losses": [],
        "flows": routes[:2],
    }
    ways = {"bottleneck_direction": ("bottleneck", ["forward", "reverse"])}
    labels = {name: ("flow", ["forward", "reverse"]) for name in ("label", "direction")}
    counters = balance.counter_variables(result)
    run = xr.Dataset({**variables, **counters, **ways}, labels)
    table = packet_balance(run)
    assert table.drop(columns=["bottleneck", "source"]).values.tolist() == [
        # in, out, dropped, lost at random, queued
        ["forward", "forward", 2, 1, 1, 0, 0],
        ["forward", "reverse", 1, 1, 0, 0, 0],
        ["forward", "", 3, 2, 1, 0, 0],
        ["reverse", "forward", 2, 1, 1, 0, 0],
        ["reverse", "reverse", 1, 1, 0, 0, 0],
        ["reverse", "", 3, 2, 1, 0, 0],
    ]
    assert balance.violations(run) == []


def lossy_way_back(lost: int) -> xr.Dataset:
    """A flow that sends 1 and gets ACKs 21 and 22 back, of which 22 is lost, without a queue."""
    forth, back = Route("10.1.0.1", "10.2.0.1", [0]), Route("10.2.0.1", "10.1.0.1", [])
    before = capture((10, forth, 1), (30, back, 21), (31, back, 22))
    after = capture((20, forth, 1), (30, back, 21))
    captures, routes = Captures(before, [], after), [forth, back]
    journey = follow(captures, routes, emptied=[True])
    assert journey.fate.tolist() == [Fate.ARRIVED, Fate.ARRIVED, Fate.RANDOM_LOSS]
    result = {
        "qdiscs": [[{"packets": 1, "drops": 0, "qlen": 0}]],
        "losses": [],
        "ack_losses": [{"packets": 1, "drops": lost}],
        "flows": routes[:1],
    }
    variables = balance.balance_variables(journey, captures, routes, 1, counted_ns=100)
    counters = balance.counter_variables(result)
    return xr.Dataset({**variables, **counters}, {"label": ("flow", ["one"])})


def test_balance_of_lost_acks_by_hand():
    table = packet_balance(lossy_way_back(1))
    assert table.drop(columns=["direction", "source"]).values.tolist() == [
        # in, out, dropped, lost at random, queued
        [1, "one", 1, 1, 0, 0, 0],
        [1, "", 1, 1, 0, 0, 0],
        [0, "one", 2, 1, 0, 1, 0],
        [0, "", 2, 1, 0, 1, 0],
    ]
    assert balance.violations(lossy_way_back(1)) == []
    assert balance.violations(lossy_way_back(2)) == [
        "random loss dropped 2 packets of one by its own count, and 1 by the captures"
    ]
    missing = lossy_way_back(1)
    missing["ack_out_packets"] -= 1
    assert balance.violations(missing) == [
        "+1 packets back to the sender of one are unaccounted for"
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sent": 8}, "bottleneck 1 sent 8 packets by its own count, and 7 by the captures"),
        ({"dropped": 0}, "bottleneck 1 dropped 0 packets by its own count, and 1 by the captures"),
    ],
)
def test_counters_that_disagree_are_a_warning(change, words):
    assert words in balance.violations(counted(**change))


def test_random_losses_that_disagree_are_a_warning():
    run = counted()
    run["netem_lost_packets"][1] = 3
    assert balance.violations(run)[-1] == (
        "random loss dropped 3 packets of first by its own count, and 1 by the captures"
    )


def test_a_packet_from_nowhere_is_a_warning():
    run = counted()
    run["balance_out_packets"][1, 0] += 1
    assert any("-1 packets of first are unaccounted for" in t for t in balance.violations(run))


def test_runs_without_a_balance_still_load(tmp_path):
    """Of format version 1, which qbkit stored before it counted packets."""
    now = xr.load_dataset(Path(__file__).parents[1] / "data/cases/ack-2/test-seed-1.nc")
    counts = [n for n in now.variables if str(n).startswith(("balance_", "qdisc_sent_"))]
    assert counts
    now.drop_vars(counts).assign_attrs(format_version=1).to_netcdf(tmp_path / "run.nc")
    run = qb.load_run(tmp_path / "run.nc")
    assert summary(run)["throughput_mbps"].notna().all()
    with pytest.raises(MetricError, match="its balance is unknown"):
        run.qb.packet_balance()


LINKS = st.fixed_dictionaries(
    {
        "rate_mbps": st.sampled_from([1, 4, 10]),
        "rtt_ms": st.sampled_from([10, 60]),
        "buffer_bdp": st.sampled_from([2, 8, 30]),
        "loss_percent": st.sampled_from([0, 0.5, 5]),
        "loss_direction": st.sampled_from(["to_receivers", "to_senders", "both"]),
        "qdisc": st.sampled_from(sorted(QDISC_OPTIONS)),
    }
)
FLOWS = st.lists(
    st.builds(
        qb.Flow,
        st.just("tcp"),
        st.sampled_from(["cubic", "reno", "bbr"]),
        start_s=st.sampled_from([0, 0.3]),
        bytes=st.sampled_from([None, 20_000, 300_000]),
        extra_rtt_ms=st.sampled_from([0, 25]),
        direction=st.sampled_from(["forward", "reverse"]),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.guest
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a guest is no place to shrink an example in
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(link=LINKS, flows=FLOWS, seed=st.integers(1, 1000))
def test_packets_are_conserved_on_random_links(link, flows, seed):
    topology = "parking_lot" if len(flows) == 3 else "dumbbell"
    experiment = qb.Experiment(
        bottleneck=qb.Bottleneck(**link),
        flows=flows,
        duration_s=1.5,
        seed=seed,
        topology=topology,
    )
    run = experiment.run(engine="virtual")
    assert_conserved(run)
    table = summary(run)
    by_cause = table[["queue_loss_percent", "random_loss_percent"]].sum(axis=1)
    assert by_cause.to_numpy() == pytest.approx(table["loss_percent"].to_numpy())
    if not link["loss_percent"]:
        assert float(run.random_loss_packets.sum()) == 0


@pytest.mark.guest
def test_a_deep_queue_loses_no_more_than_it_drops():
    # 40 BDP at 2 Mbit/s take 4 s to run empty: their packets are no losses.
    link = qb.Bottleneck(rate_mbps=2, rtt_ms=100, buffer_bdp=40)
    run = qb.Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=20).run(engine="virtual")
    assert_conserved(run)
    row = summary(run).iloc[0]
    # The kernel also counts the few packets that reach the queue after the experiment's end.
    lost, dropped = row.loss_percent / 100 * run.sizes["packet"], int(run.qdisc_dropped_packets[0])
    late = int(run.balance_in_packets[0, 0]) - run.sizes["packet"]
    assert dropped - late <= lost <= dropped
    assert 0 < late < 50 < dropped
    assert row.throughput_mbps <= 2
    assert 23 < float(run.packet_departure_s.max()) < 25
