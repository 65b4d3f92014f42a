"""Every controller of the kernel: both ends run it, and no two give the same run."""

from __future__ import annotations

import hashlib
from collections import defaultdict

import numpy as np
import pytest
import xarray as xr

from qbkit import stacks
from qbkit.spec import Bottleneck, Experiment
from qbkit.traces.run.frames import Ecn

pytestmark = pytest.mark.guest
ALIKE = {"reno", "lp"}
"""TCP-LP yields to others when the one-way delay rises, which it takes from TCP's time stamps. It
keeps eight times that delay in 32 bits (tcp_lp.c, `sowd << 3`), and Linux adds a random offset to
the time stamps of each connection. For most offsets the product overflows, the delay is invalid,
and LP is Reno. The seed decides the offset."""
LP_YIELDS_SEED = 2


def run(controller: str, seed: int = 1) -> xr.Dataset:
    link = Bottleneck(rate_mbps=20, rtt_ms=40, buffer_bdp=1)
    return Experiment(bottleneck=link, flows=[f"tcp:{controller}"], duration_s=8, seed=seed).run()


def digest(found: xr.Dataset) -> str:
    return hashlib.sha256(found.packet_time_s.values.tobytes()).hexdigest()


def test_no_two_controllers_give_the_same_run():
    # The driver reads back at both ends which controller the socket has, and fails for another.
    by_packets = defaultdict(set)
    for controller in stacks.get("tcp").controllers():
        by_packets[digest(run(controller))].add(controller)
    assert [names for names in by_packets.values() if len(names) > 1] == [ALIKE]
    assert sum(map(len, by_packets.values())) == 17


def test_lp_is_no_reno_where_its_delay_does_not_overflow():
    reno, lp = (run(controller, LP_YIELDS_SEED) for controller in ("reno", "lp"))
    assert digest(reno) != digest(lp)


def test_dctcp_marks_its_packets_and_loses_none():
    options = {"min": 30000, "max": 90000, "probability": 1, "ecn": True}
    link = Bottleneck(
        rate_mbps=20, rtt_ms=10, buffer_packets=200, qdisc="red", qdisc_options=options
    )
    found = Experiment(bottleneck=link, flows=["tcp:dctcp"], duration_s=10).run()
    assert np.unique(found.packet_ecn.values).tolist() == [Ecn.ECT_0]
    assert 300 < int(found.packet_is_marked.sum()) < 3000
    assert np.isfinite(found.packet_departure_s.values).all()
