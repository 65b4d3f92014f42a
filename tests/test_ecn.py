"""ECN in the packet tables: what senders ask for, and what queues mark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from conservation import assert_conserved
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from test_traces import write_pcap

import qbkit as qb
from qbkit import stacks
from qbkit.traces.run.frames import Ecn
from qbkit.traces.run.journey import newly_marked
from qbkit.traces.run.match import match
from qbkit.traces.run.pcap import read_packets


def frame(number: int, ecn: int, *, six: bool = False) -> bytes:
    """A UDP packet whose DSCP is 46 (expedited forwarding)."""
    field = 46 << 2 | ecn
    ip = IPv6(src="fd00::1", dst="fd00::2", tc=field) if six else IP(src="10.0.0.1", tos=field)
    return bytes(Ether() / ip / UDP(sport=1, dport=2) / Raw(bytes([number]) * 100))


@pytest.mark.slow
def test_ecn_by_hand(tmp_path: Path):
    """Four packets go in; the queue marks the second, drops the third, and cannot mark the first.

    The fourth was marked before it came.
    """
    fields = {
        "in": [Ecn.NOT_ECT, Ecn.ECT_0, Ecn.ECT_1, Ecn.CE],
        "out": [Ecn.NOT_ECT, Ecn.CE, None, Ecn.CE],
    }
    for six in (False, True):
        read = {}
        for side, seen in fields.items():
            packets = [(i, frame(i, ecn, six=six)) for i, ecn in enumerate(seen) if ecn is not None]
            write_pcap(tmp_path / side, [(10**9 + i * 10**6, packet) for i, packet in packets])
            read[side] = read_packets(tmp_path / side)
        before, after = read["in"], read["out"]
        assert before.ecn.tolist() == fields["in"]
        found = match(before.key, before.time_ns, after.key, after.time_ns)
        assert found.tolist() == [0, 1, -1, 2]
        assert newly_marked(before, found, after).tolist() == [False, True, False, False]


def run(out: Path, **options: bool) -> xr.Dataset:
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=30, buffer_bdp=4, qdisc="fq_codel")
    flow = qb.Flow("picoquic:prague", options=options)
    return qb.Experiment(bottleneck=link, flows=[flow], duration_s=5, seed=1).run(out=out)


@pytest.mark.guest
def test_a_queue_marks_what_it_would_drop(tmp_path: Path):
    """Prague sends ECT(1), which fq_codel marks; without ECN the same queue drops."""
    if not stacks.get("picoquic").status().ready:
        pytest.skip("picoquic is not built")
    marked, dropped = run(tmp_path / "1.nc"), run(tmp_path / "2.nc", ecn=False)
    assert np.unique(marked.packet_ecn).tolist() == [Ecn.ECT_1]
    assert marked.packet_ecn.attrs["flag_meanings"] == "not_ect ect_1 ect_0 ce"
    assert int(marked.packet_is_marked.sum()) > 20
    assert int(marked.dropped_packets.sum()) == 0
    assert "packet_ecn" not in dropped
    assert int(dropped.dropped_packets.sum()) > 20
    for ds in (marked, dropped):
        assert_conserved(ds)
