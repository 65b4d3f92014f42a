"""Assert the law of conservation of a run: what goes into a queue comes out, or is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr
from hypothesis import HealthCheck, Phase, settings

from qbkit.metrics import packet_balance
from qbkit.spec import Bottleneck, Experiment

COUNTS = [
    *("in_packets", "out_packets", "dropped_packets", "random_loss_packets", "queued_packets"),
]

IN_GUEST = settings(
    phases=[Phase.generate],  # a guest is no place to shrink an example in
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def conserved_run(
    *flows: str, duration_s: float = 4, keep: Sequence[str] = (), **fields
) -> xr.Dataset:
    """The run of flows, after `assert_conserved`; the fields are the experiment's or its link's."""
    link = {name: fields.pop(name) for name in Bottleneck.model_fields.keys() & fields.keys()}
    spec = Experiment(bottleneck=link, flows=flows, duration_s=duration_s, **fields)
    found = spec.run(keep=keep)
    assert_conserved(found)
    return found


def busy_rate_mbps(arrival: np.ndarray, departure: np.ndarray, size: np.ndarray) -> float:
    """Rate of a link while packets wait for it; at least 1000 of them, in order, as times in s."""
    waited = arrival[1:] < departure[:-1]
    assert waited.sum() > 1000
    return float(size[1:][waited].sum() * 8 / np.diff(departure)[waited].sum() / 1e6)


def assert_conserved(run: xr.Dataset) -> None:
    """Every flow's packets add up at every bottleneck, and to what the kernel's queue counted."""
    table = packet_balance(run)
    ends = table[COUNTS[1:]].sum(axis=1)
    assert (table.in_packets == ends).all(), table.to_string()
    for _, rows in table.groupby("bottleneck"):
        flows, kernel = rows[rows.source == "captures"], rows[rows.source == "kernel"]
        assert len(flows) > 0
        # What random loss takes may also be ICMP, of routers whose links have an MTU.
        inexact = "extra_packets" in table or "too_big_packets" in run
        known = ["in_packets", "dropped_packets"] if inexact else COUNTS
        assert flows[known].sum().tolist() == kernel[known].iloc[0].tolist(), table.to_string()
    assert table.queued_packets.sum() == 0, "the queues had no time to run empty"
    lost = run.balance_random_loss_packets.sum("bottleneck") + run.get("ack_random_loss_packets", 0)
    counted = run.netem_lost_packets + run.get("netem_lost_ack_packets", 0)
    if "extra_packets" not in table:
        messages = int(run.too_big_packets.sum()) if "too_big_packets" in run else 0
        assert (lost <= counted).all() and (counted <= lost + messages).all()
    else:
        missing = (run.netem_sent_packets - run.path_out_packets).values
        corrupts = json.loads(run.attrs["spec"])["bottleneck"].get("corrupt_percent", 0)
        # A packet with a corrupted address is no longer the flow's.
        assert (missing >= 0).all()
        assert corrupts or not missing.any()
    broken = [text for text in run.qb.warnings if "unaccounted" in text or "own count" in text]
    assert broken == []
