"""Maps over cubes, on cubes whose values are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import qbkit as qb
from qbkit.errors import MetricError
from qbkit.metrics.maps import cells
from qbkit.metrics.maps import interactions as maps
from qbkit.metrics.maps import kept as kept_maps


def pairs(mbps: np.ndarray, names: list[str]) -> xr.Dataset:
    """A cube of all pairs: mbps[x, y] is what x got against y, of 10 Mbit/s."""
    both = np.stack([mbps, 10 - mbps], axis=-1)
    dims = ["flows.0", "flows.1", "flow"]
    return xr.Dataset(
        {"throughput_mbps": (dims, both), "done": (dims[:2], np.isfinite(mbps))},
        {"flows.0": names, "flows.1": names},
    )


def test_ratios_of_a_pair_that_ran_in_one_order_only():
    mbps = np.array([[5.0, 8.0], [np.nan, 5.0]])
    ratios = maps.throughput_ratios(pairs(mbps, ["a", "b"]))
    assert ratios.values == pytest.approx(np.array([[0.5, 0.8], [0.2, 0.5]]))


def test_pairs_in_two_orders_are_compared_by_name():
    mbps = np.array([[5.0, 8.0, 6.0], [2.0, 5.0, 7.0], [4.0, 3.0, 5.0]])
    cube = pairs(mbps, ["a", "b", "c"])
    known = maps.throughput_ratios(cube)
    other = maps.throughput_ratios(cube.isel({"flows.0": [2, 1, 0]}))
    xr.testing.assert_allclose(other.sel({"flows.0": list("abc"), "flows.1": list("abc")}), known)
    turned = known.isel({"flows.1": [2, 0, 1]})
    xr.testing.assert_allclose(maps.dominance(turned), maps.dominance(known))
    assert maps.intransitive_triples(turned) == maps.intransitive_triples(known)
    with pytest.raises(MetricError, match=r"have different implementations; choose the same"):
        maps.dominance(known.isel({"flows.0": [0, 1]}))


def repeated(*mbps: np.ndarray, names: list[str]) -> xr.Dataset:
    """A cube of all pairs with one seed for each of the given arrays."""
    return xr.concat([pairs(each, names) for each in mbps], "seed").assign_coords(
        seed=range(len(mbps))
    )


def test_the_runs_of_both_orders_are_trials_of_a_pair():
    first = np.array([[4.0, 7.0], [1.0, 5.0]])
    second = np.array([[7.0, 6.0], [5.0, 5.0]])
    cube = repeated(first, second, names=["a", "b"])
    assert sorted(qb.metrics.pair_trials(cube).sel({"flows.0": "a", "flows.1": "b"}).values) == (
        pytest.approx([0.5, 0.6, 0.7, 0.9])
    )
    of = qb.metrics.interactions(cube).sel({"flows.0": "a"})
    of_b = of.sel({"flows.1": "b"})
    assert float(of_b.throughput_ratio) == pytest.approx(0.675)
    assert float(of_b.win_share) == pytest.approx(3.5 / 4)  # a draw is half a win
    assert int(of_b.trials) == 4
    # Deviations -0.175, -0.075, 0.025, 0.225: s² = 0.0875 / 3; t(0.975; 3) = 3.1824.
    reach = 3.1824 * (0.0875 / 3 / 4) ** 0.5
    assert float(of_b.throughput_ratio_low) == pytest.approx(0.675 - reach, abs=1e-4)
    assert float(of_b.throughput_ratio_high) == pytest.approx(0.675 + reach, abs=1e-4)
    of_a = of.sel({"flows.1": "a"})  # the same flow against itself runs in one order only
    assert (int(of_a.trials), float(of_a.throughput_ratio)) == (2, pytest.approx(0.55))


def drifting() -> xr.Dataset:
    """Of 10 Mbit/s, a gets 9 for two seconds beside b and then 4 and 2; the whole trial says 6."""
    cube = pairs(np.array([[np.nan, 6.0], [np.nan, np.nan]]), ["a", "b"])
    series = np.full((2, 2, 2, 4), np.nan)
    series[0, 1] = [[9, 9, 4, 2], [1, 1, 6, 8]]
    each = ("flows.0", "flows.1", "flow", "time")
    return cube.assign(series_throughput_mbps=(each, series)).assign_coords(time=range(4))


def test_ratios_leave_out_the_seconds_in_which_flows_settle():
    cube = drifting()
    whole = qb.metrics.pair_trials(cube).sel({"flows.0": "a", "flows.1": "b"})
    assert whole.dropna("trial").values == pytest.approx([0.6])
    settled = cube.assign_attrs(sweep='{"settle_s": 2}')
    mbps = qb.metrics.settled_throughput_mbps(settled).sel({"flows.0": "a", "flows.1": "b"})
    assert mbps.values == pytest.approx([3, 7])
    found = qb.metrics.interactions(settled).throughput_ratio.values
    assert found == pytest.approx(np.array([[np.nan, 0.3], [0.7, np.nan]]), nan_ok=True)
    with pytest.raises(MetricError, match="no trial is longer than the 4 s of settle_s; run long"):
        qb.metrics.pair_trials(cube.assign_attrs(sweep='{"settle_s": 4}'))


def test_ratios_of_a_part_of_the_trials_count_from_their_start():
    cube = drifting().assign_attrs(sweep='{"settle_s": 2}')
    found = qb.metrics.throughput_ratios(cube, (1, 3)).values  # 6.5 and 3.5 Mbit/s
    assert found == pytest.approx(np.array([[np.nan, 0.65], [0.35, np.nan]]), nan_ok=True)
    shares = qb.metrics.shares(cube, (0, 1)).sel({"flows.0": "a", "flows.1": "b"})
    assert shares.values == pytest.approx([0.9, 0.1])
    shorter = cube.assign(series_throughput_mbps=cube.series_throughput_mbps.where(cube.time < 2))
    both = xr.concat([cube, shorter], "duration_s")
    of_pair = qb.metrics.throughput_between_mbps(both, 1, 3).sel({"flows.0": "a", "flows.1": "b"})
    assert of_pair.values == pytest.approx(np.array([[6.5, 3.5], [np.nan, np.nan]]), nan_ok=True)
    with pytest.raises(MetricError, match="no trial has a step from 4 to 9 s; its last one begins"):
        qb.metrics.throughput_between_mbps(cube, 4, 9)
    with pytest.raises(MetricError, match="no trial lasts until 9 s; the last one ends at 4 s"):
        qb.metrics.throughput_ratios(cube, (1, 9))


def of_sweep(cube: xr.Dataset, *flows: str | dict, **more: object) -> xr.Dataset:
    """The cube as one of a sweep with these flows in its base."""
    return cube.assign_attrs(sweep=json.dumps({"base": {"flows": flows}, **more}))


@pytest.mark.parametrize(
    ("second", "swept"),
    [
        ({"stack": "tcp", "controller": "cubic", "extra_rtt_ms": 50.0}, {}),
        ("tcp:cubic?ecn=true", {}),
        ("tcp:cubic", {"flows.1.extra_rtt_ms": [0, 50]}),
    ],
)
def test_two_orders_are_two_experiments_where_more_than_names_sets_flows_apart(second, swept):
    cube = repeated(np.array([[4.0, 7.0], [1.0, 5.0]]), names=["a", "b"])
    alike = of_sweep(cube, "tcp:cubic", {"stack": "tcp:reno", "start_s": 0.0, "options": {}})
    assert int(qb.metrics.interactions(alike).trials.sel({"flows.0": "a", "flows.1": "b"})) == 2
    unlike = of_sweep(cube, "tcp:cubic", second, sweep=swept)
    found = qb.metrics.interactions(unlike)
    assert found.trials.values.tolist() == [[1, 1], [1, 1]]
    assert found.throughput_ratio.values == pytest.approx(np.array([[0.4, 0.7], [0.1, 0.5]]))


def test_a_pair_beside_a_third_flow_shares_what_the_pair_has():
    two = pairs(np.array([[5.0, 8.0], [np.nan, 5.0]]), ["a", "b"])
    three = two.throughput_mbps.pad(flow=(0, 1), constant_values=40.0)
    ratios = qb.metrics.throughput_ratios(three.to_dataset())
    assert ratios.values == pytest.approx(np.array([[0.5, 0.8], [0.2, 0.5]]))


@pytest.mark.parametrize(
    ("second", "swept", "field"),
    [
        ({"stack": "tcp", "controller": "cubic", "start_s": 2.0}, {}, "start_s"),
        ("tcp:cubic?stop_s=3", {}, "stop_s"),
        ("tcp:cubic", {"flows.1.start_s": [0, 2]}, "start_s"),
        ("tcp:cubic?bytes=1000", {}, "bytes"),
    ],
)
def test_flows_that_send_at_other_times_share_no_whole_trial(second, swept, field):
    cube = of_sweep(drifting(), "tcp:cubic", second, sweep=swept)
    with pytest.raises(MetricError, match=f"by {field}, the flows of this sweep do not all send"):
        qb.metrics.shares(cube)
    part = qb.metrics.shares(cube, (2, 4)).sel({"flows.0": "a", "flows.1": "b"})
    assert part.values == pytest.approx([0.3, 0.7])
    if swept:  # the part of the sweep in which they start together has shares
        qb.metrics.shares(cube.assign_coords({"flows.1.start_s": 0}))


def test_flows_that_share_no_link_have_no_shares():
    cube = pairs(np.array([[5.0, 8.0], [np.nan, 5.0]]), ["a", "b"])
    back = of_sweep(cube, "tcp:cubic", {"stack": "tcp:cubic", "direction": "reverse"})
    with pytest.raises(MetricError, match="flows of this sweep go in opposite directions"):
        qb.metrics.shares(back)
    three = cube.throughput_mbps.pad(flow=(0, 1), constant_values=4.0).to_dataset()
    base = {"flows": ["tcp:cubic"] * 3, "topology": "parking_lot"}
    lot = three.assign_attrs(sweep=json.dumps({"base": base}))
    with pytest.raises(MetricError, match=r"not all flows of a parking lot cross one link; choose"):
        qb.metrics.shares(lot)
    assert qb.metrics.throughput_ratios(lot).values == pytest.approx(
        np.array([[0.5, 0.8], [np.nan, 0.5]]), nan_ok=True
    )


def test_the_matrix_of_pairs_beside_a_third_flow_shows_the_pairs():
    three = drifting().pad(flow=(0, 1), constant_values=4.0)
    words = json.dumps(qb.plots.interaction_chart(three.assign_coords(time=range(4))).to_dict())
    assert r"\"a\",\"b\",\"row\",\"a\",\"6\"" in words


def test_a_single_trial_has_no_interval():
    found = qb.metrics.interactions(pairs(np.array([[5.0, 8.0], [np.nan, 5.0]]), ["a", "b"]))
    assert found.throughput_ratio_low.isnull().all()
    assert found.win_share.values == pytest.approx(np.array([[0.5, 1.0], [0.0, 0.5]]))


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_what_one_wins_the_other_loses(count: int, seed: int):
    rng = np.random.default_rng(seed)
    names = [str(i) for i in range(count)]
    shares = np.round(rng.uniform(0.5, 9.5, (3, count, count)), 1)
    shares[:, np.tril_indices(count, -1)[0], np.tril_indices(count, -1)[1]] = np.nan
    found = qb.metrics.interactions(repeated(*shares, names=names))
    for name, swapped in [
        ("throughput_ratio", "throughput_ratio"),
        ("throughput_ratio_low", "throughput_ratio_high"),
        ("win_share", "win_share"),
    ]:
        away = ~np.eye(count, dtype=bool)
        assert found[name].values[away] == pytest.approx(1 - found[swapped].values.T[away])


def test_hulls_as_numbers_and_none_where_nothing_ran():
    square = np.array([[0.0, 0.0], [4, 0], [4, 2], [0, 2]])
    points = np.vstack([square, np.full((4, 2), [2.0, 1.0])])
    nowhere = np.full(points.shape, np.nan)
    both = np.stack([points, nowhere])[:, None]
    dims = ["flows.0", "flow", "point"]
    cube = xr.Dataset(
        {
            "point_delay_ms": (dims, both[..., 0]),
            "point_throughput_mbps": (dims, both[..., 1]),
            "done": (dims[:1], [True, False]),
        },
        {"flows.0": ["a", "b"]},
    )
    table = cells.hull_table(cells.cell_envelopes(cube))
    assert dict(table.sizes) == {"flows.0": 2, "hull": 1, "vertex": 4}
    corners = np.stack([table.hull_delay_ms, table.hull_throughput_mbps], -1).reshape(2, 4, 2)
    assert sorted(corners[0].tolist()) == sorted(square.tolist())
    assert np.isnan(corners[1]).all()


def test_dominance_and_an_intransitive_triple():
    # a beats b, b beats c, c beats a: rock, paper, scissors; d loses to all.
    ratio = np.array(
        [[0.5, 0.6, 0.3, 0.9], [0.4, 0.5, 0.6, 0.8], [0.7, 0.4, 0.5, 0.7], [0.1, 0.2, 0.3, 0.5]]
    )
    ratios = maps.throughput_ratios(pairs(10 * ratio, list("abcd")))
    assert maps.intransitive_triples(ratios) == [("a", "b", "c")]
    assert maps.intransitive_triples(ratios, margin=0.15) == []
    order = maps.dominance(ratios)
    assert order["flows.0"].values.tolist() == ["a", "b", "c", "d"]
    assert order.values == pytest.approx([0.6, 0.6, 0.6, 0.2])


@given(st.permutations(range(5)))
def test_an_order_has_no_intransitive_triple(order: list[int]):
    strength = np.array(order, dtype=float)
    mbps = 5 + (strength[:, None] - strength[None, :])
    ratios = maps.throughput_ratios(pairs(mbps, [str(i) for i in order]))
    assert maps.intransitive_triples(ratios) == []
    assert maps.dominance(ratios)["flows.0"].values.tolist() == ["4", "3", "2", "1", "0"]


def test_expectations_of_cubic_against_bbr():
    names = ["tcp:cubic", "quinn:cubic", "tcp:bbr", "quiche:bbr2"]
    ratio = np.full((4, 4), 0.5)
    ratio[:2, 2:] = [[0.4, 0.7], [0.3, 0.45]]
    ratio[2:, :2] = 1 - ratio[:2, 2:].T
    seen = maps.expectations(maps.throughput_ratios(pairs(10 * ratio, names)))
    assert seen.attrs["expected"] == pytest.approx(0.4)
    assert seen["flows.1"].values.tolist() == ["tcp:bbr", "quiche:bbr2"]
    assert seen.reversed.values.tolist() == [[False, True], [False, False]]
    with pytest.raises(MetricError, match="tcp:bbr, which defines the expected ratio"):
        maps.expectations(maps.throughput_ratios(pairs(ratio[:2, :2], names[:2])))


def clouds() -> xr.Dataset:
    """Two implementations in two settings, three seeds: the same cloud, and one moved far away."""
    rng = np.random.default_rng(1)
    delay, mbps = rng.uniform(10, 20, (2, 2, 2, 3, 40))
    mbps[1, 1] += 100  # the second implementation in the second setting
    dims = ["flows.0", "bottleneck.buffer_bdp", "seed", "flow", "point"]
    both = {"point_delay_ms": delay, "point_throughput_mbps": mbps}
    points = {name: (dims, values[:, :, :, None]) for name, values in both.items()}
    done = (dims[:3], np.ones((2, 2, 3), dtype=bool))
    coords = {"flows.0": ["tcp:cubic", "x:cubic"], "bottleneck.buffer_bdp": [1, 2]}
    return xr.Dataset({**points, "done": done}, coords)


def test_conformance_map():
    found = cells.conformance_map(clouds(), "tcp:cubic")
    assert found.conformance.dims == ("flows.0", "bottleneck.buffer_bdp")
    assert found["flows.0"].values.tolist() == ["x:cubic"]  # the reference itself is no row
    near, far = found.isel({"flows.0": 0, "bottleneck.buffer_bdp": [0, 1]}).conformance.values
    assert near > 0.7
    assert far == 0
    cell = found.isel({"flows.0": 0, "bottleneck.buffer_bdp": 1})
    assert cell.conformance_pooled == 0
    assert cell.conformance_t > 0.8
    assert cell.delta_throughput_mbps == pytest.approx(100, abs=3)
    assert cell.mean_throughput_difference_mbps == pytest.approx(100, abs=2)
    assert (cell.conformance_low, cell.conformance_high) == (0, 0)
    assert (cell.trials, cell.reference_trials) == (3, 3)
    with pytest.raises(MetricError, match="the reference tcp:bbr is not in the sweep: tcp:cubic"):
        cells.conformance_map(clouds(), "tcp:bbr")


def test_a_definition_that_samples_packets_has_no_map_of_points():
    words = "'quicbench' samples the packets of a run.*choose one of imc22, refined"
    with pytest.raises(MetricError, match=words):
        cells.conformance_map(clouds(), "tcp:cubic", definition="quicbench")
    with pytest.raises(MetricError, match=words):
        cells.cell_envelopes(clouds(), definition="quicbench")


def test_a_setting_without_runs_stays_unknown():
    cube = clouds()
    cube["point_delay_ms"][1, 0] = np.nan
    found = cells.conformance_map(cube, "tcp:cubic")
    assert np.isnan(found.conformance.values[0, 0])
    assert np.isnan(found.q_value.values[0, 0])
    assert np.isfinite(found.q_value.values[0, 1])
    assert np.isfinite(found.p_value_over_settings.values[0])


def test_a_kept_map_is_that_of_the_points_and_a_selection_has_none():
    cube = qb.load_sweep(Path(__file__).parents[1] / "data/controllers/cubic.yaml")
    kept = qb.metrics.conformance_map(cube, "tcp:cubic")
    points = cube[["done", "point_delay_ms", "point_throughput_mbps"]]
    assert kept_maps.kept_map(points, "tcp:cubic", "imc22") is None
    xr.testing.assert_allclose(qb.metrics.conformance_map(points, "tcp:cubic"), kept)
