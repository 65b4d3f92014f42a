"""Every ready stack and controller alone on a link, in the guest: full, told of, repeatable."""

from __future__ import annotations

import pytest
import xarray as xr

import qbkit as qb
from qbkit import stacks

SHORT_OF_85_PERCENT: dict[str, tuple[float, str]] = {}
"""stack:controller → (share of the link that it reaches, why)."""


def everybody() -> list[str]:
    return [
        f"{stack.name}:{controller}"
        for stack in stacks.all_stacks()
        for controller in stack.surveyed()
    ]


def alone(who: str) -> xr.Dataset:
    link = qb.Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=1)
    stack, _, controller = who.partition(":")
    experiment = qb.Experiment(
        bottleneck=link, flows=[qb.Flow(stack, controller)], duration_s=20, seed=1
    )
    return experiment.run(rerun=True)


@pytest.mark.guest
@pytest.mark.parametrize("who", everybody())
def test_fills_the_link_tells_of_itself_and_repeats(who: str):
    stack = stacks.get(who.partition(":")[0])
    if not stack.status().ready:
        pytest.skip(stack.status().reason)
    run = alone(who)
    least, _ = SHORT_OF_85_PERCENT.get(who, (0.85, ""))
    assert float(run.throughput_mbps.sel(time=slice(2, None)).mean()) >= least * 20
    assert float(run.packet_size_bytes.max()) <= 1514
    for name in stack.tells:
        assert run[name].notnull().sum() > 10, f"{who} does not tell {name}"
    xr.testing.assert_identical(run.drop_attrs(), alone(who).drop_attrs())
