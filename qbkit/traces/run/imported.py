"""Read captures made elsewhere into a run dataset."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import StoreError
from qbkit.opening import open_plain
from qbkit.traces.arrays import FloatArray, as_slice
from qbkit.traces.flow_index import with_flow_index
from qbkit.traces.logs.records import begins, segments
from qbkit.traces.run import schema
from qbkit.traces.run.dataset import FORMAT_VERSION, largest_frame
from qbkit.traces.run.endpoints import handshake_rtt_ms, senders
from qbkit.traces.run.ends import LARGEST_ACK_BYTES
from qbkit.traces.run.frames import COPIES, Packets, address_number
from qbkit.traces.run.match import NEVER
from qbkit.traces.run.packets import FlowPackets, Matched, sort_out
from qbkit.traces.run.pcap import read_packets
from qbkit.traces.run.series import Bins
from qbkit.traces.run.unfit import (
    CLOCK_SLACK_MS,
    LONGEST_PATH_NS,
    of_others,
    require_flows,
    require_one_way,
    require_ports,
    require_sense,
    warnings_of,
)

OF_DATA = ("data_flow", "departure_ns", "fate", "marked")
"""What `Matched` has for each data packet."""
OF_NO_RUN = {
    "format_version": FORMAT_VERSION,
    "engine": "imported",
    **dict.fromkeys(["spec", "spec_hash", "hash", "kernel_version", "qdisc"], ""),
    **dict.fromkeys(["seed", "queue_bytes", "capture_drops"], -1),
    "stack_versions": "{}",
    "rate_mbps": np.nan,
}
"""Attributes of a run that are unknown for imported captures."""
MAX_BINS = 10_000_000
LEAST_COPIES = 0.1
"""Least part of the packets with data that has a copy in a capture with copies."""
HANDSHAKE_PACKETS = 100
"""A connection that begins in a capture shows it in so many packets."""


def read_pcaps(
    before: str | Path,
    after: str | Path,
    *,
    flows: Mapping[int, str],
    sender: str | Sequence[str] = (),
    rtt_ms: float | None = None,
    bin_s: float = schema.BIN_S,
    propagation_ms: float = 0.0,
) -> xr.Dataset:
    """A run dataset from captures on both sides of a queue, with clocks that agree.

    ``flows`` names the flow of each server port, ``sender`` the address or addresses from which
    data come (default: for each port those of the end that sends most bytes). ``propagation_ms`` is
    the constant delay between the points of capture, which is subtracted from every queueing delay.
    ``rtt_ms`` is the path's base RTT, for the metrics that need it (default: that of each
    connection's handshake, and a warning of the run that says so). t = 0 is the first data packet.
    The run is what both captures saw: where ``after`` begins later, or ends more than ``bin_s``
    earlier, the rest of ``before`` is left out, and a warning says so.
    Packets lost between the two captures count as dropped by the queue. Packets after the last one
    of their flow that came out may have been in the queue when the capture ended, so their fate is
    unknown. Without counters of the queue, `qb.metrics.packet_balance` has nothing to compare.
    Of frames that a file holds several times, as of a bridge, the first counts, and a warning
    counts the others. Raises StoreError for unsuitable files.

    QUICbench (parse/parse_pcap.py, network/set_netem.py) captures at its server, the sender:
    ``packets-br0.pcap`` on the bridge is before the queue, ``packets.pcap`` on the interface is
    after tbf and netem, which add the queueing delay and half of the RTT. So pass the server's
    address as ``sender``, and ``propagation_ms=rtt_ms / 2``.
    """
    given = [sender] if isinstance(sender, str) else list(sender)
    require_flows(flows, bin_s)
    if rtt_ms is not None and not rtt_ms > 0:
        raise StoreError(f"rtt_ms is {rtt_ms:g}; it must be more than 0", refused=True)
    arrivals, copied = _once(read_packets(before), before)
    leaving, copied_out = _once(read_packets(after), after)
    require_ports(arrivals, flows, before)
    leaving = replace(leaving, time_ns=leaving.time_ns - round(propagation_ms * 1e6))
    addresses = [_number(a) for a in given] or senders(arrivals, flows)
    require_one_way(arrivals, addresses, before, flows)
    ports = {port: i for i, port in enumerate(flows)}
    packets = sort_out(arrivals, leaving, ports, addresses, round(CLOCK_SLACK_MS * 1e6))
    require_sense(packets, before, after, given, flows)
    packets, left_out = _seen_by_both(packets, leaving, before, after, bin_s, flows)
    seen_ms = _handshakes_ms(arrivals, leaving, before, flows)
    base_rtt_ms = seen_ms if rtt_ms is None else np.full(len(flows), float(rtt_ms))
    duration_s = _duration_s(packets, bin_s, before)
    others = of_others(arrivals, addresses, before, flows)
    warnings = [*copied, *copied_out, *others, *left_out, *warnings_of(packets, seen_ms, rtt_ms)]
    bins = Bins(bin_s, duration_s)
    run = _run(packets, list(flows.values()), base_rtt_ms, bins).assign_attrs(
        **OF_NO_RUN,
        qbkit_version=version("qbkit"),
        bin_s=bin_s,
        duration_s=duration_s,
        rtt_ms=float(base_rtt_ms.min()),
        max_frame_bytes=largest_frame(packets),
        warnings=json.dumps(warnings),
    )
    return with_flow_index(run)


def _run(
    packets: FlowPackets, labels: list[str], base_rtt_ms: FloatArray, bins: Bins
) -> xr.Dataset:
    """The variables of a run that two captures show."""
    t0_ns, count = int(packets.data.time_ns[0]), len(labels)
    spans = [packets.data.time_ns[packets.data_flow == i] for i in range(count)]
    nothing, unknown = [pd.DataFrame()] * count, np.full((count, bins.count), np.nan)
    variables = {
        **schema.packet_series(packets, t0_ns, count, bins),
        **schema.goodput_series(nothing, t0_ns, bins, unknown),
        **schema.packet_variables(packets, t0_ns),
        **schema.flow_variables(
            start_s=np.array([(s[0] - t0_ns) / 1e9 for s in spans]),
            stop_s=np.array([(s[-1] - t0_ns) / 1e9 for s in spans]),
            base_rtt_ms=base_rtt_ms,
            receiver_bytes=np.full(count, np.nan),
        ),
    }
    names = {"label": labels, "stack": ["imported"] * count, "controller": ["unknown"] * count}
    return schema.assemble(variables, names, bins)


def _once(packets: Packets, path: str | Path) -> tuple[Packets, list[str]]:
    """The packets without copies, as a bridge captures them, and a warning of how many there were.

    A packet is a copy if it has the same content as one up to a second before. A stack may send a
    few packets twice, so these are copies only where many packets that carry data have one.
    """
    order = np.lexsort((packets.time_ns, packets.key))
    key, time_ns = packets.key[order], packets.time_ns[order]
    again = np.zeros(len(packets), bool)
    again[order[1:]] = (key[1:] == key[:-1]) & (time_ns[1:] - time_ns[:-1] <= LONGEST_PATH_NS)
    data = packets.frame_bytes > LARGEST_ACK_BYTES
    if not data.any() or again[data].mean() < LEAST_COPIES:
        return packets, []
    return packets.take(~again), [COPIES.format(file=Path(path).name, count=int(again.sum()))]


def _duration_s(packets: FlowPackets, bin_s: float, before: str | Path) -> float:
    """Time from the first data packet to one bin after the last, in s."""
    first_ns, last_ns = (int(packets.data.time_ns[i]) for i in (0, -1))
    duration_s = (last_ns - first_ns) / 1e9 + bin_s
    if duration_s / bin_s > MAX_BINS:
        raise StoreError(
            f"{before} spans {duration_s:.0f} s, too long for bins of {bin_s:g} s; a time stamp in "
            "it is damaged, or bin_s is too small"
        )
    return duration_s


def _number(address: str) -> int:
    try:
        return address_number(address)
    except ValueError:
        raise StoreError(f"{address!r} is no IP address", refused=True) from None


def _seen_by_both(
    packets: Matched,
    leaving: Packets,
    before: str | Path,
    after: str | Path,
    bin_s: float,
    flows: Mapping[int, str],
) -> tuple[Matched, list[str]]:
    """The packets that went in while both captures ran, and warnings of what is left out."""
    arrived_ns = packets.data.time_ns
    begin_ns, end_ns = arrived_ns[[0, -1]]
    came_out = packets.departure_ns != NEVER
    first_ns = max(begin_ns, min(arrived_ns[came_out.argmax()], leaving.time_ns[0]))
    last_ns = min(end_ns, leaving.time_ns[-1])
    if (end_ns - last_ns) / 1e9 <= bin_s:
        last_ns = end_ns
    if (first_ns, last_ns) == (begin_ns, end_ns):
        return packets, []
    on = as_slice((arrived_ns >= first_ns) & (arrived_ns <= last_ns))
    back = as_slice((packets.acks.time_ns >= first_ns) & (packets.acks.time_ns <= last_ns))
    shared = replace(
        packets,
        data=packets.data.take(on),
        **{name: getattr(packets, name)[on] for name in OF_DATA},
        acks=packets.acks.take(back),
        ack_flow=packets.ack_flow[back],
    )
    sent = np.bincount(shared.data_flow, minlength=len(flows))
    for label, count in zip(flows.values(), sent, strict=True):
        if not count:
            raise StoreError(f"{before} has no packet of {label} while {after} was captured")
    cut = [
        ("first", first_ns - begin_ns, "begins later"),
        ("last", end_ns - last_ns, "ends earlier"),
    ]
    return shared, [
        f"the {which} {cut_ns / 1e9:.3g} s of {before} are left out, as {after} {why}"
        for which, cut_ns, why in cut
        if cut_ns
    ]


def _handshakes_ms(
    arrivals: Packets, leaving: Packets, before: str | Path, flows: Mapping[int, str]
) -> FloatArray:
    """RTT of the handshake of each flow, in ms; NaN where the capture does not hold it."""
    begun = _begun(before, flows)
    return np.array(
        [handshake_rtt_ms(arrivals, leaving, p) if p in begun else np.nan for p in flows]
    )


def _begun(path: str | Path, ports: Mapping[int, str]) -> set[int]:
    """The server ports with a connection that begins in the capture."""
    found: set[int] = set()
    seen: Counter[int] = Counter()
    with open_plain(Path(path), _known) as file:
        for segment in segments(file, str(path), _known, _known):
            mine = {segment.source[1], segment.destination[1]} & ports.keys()
            seen.update(mine)
            found |= mine if begins(segment) else set()
            if all(p in found or seen[p] >= HANDSHAKE_PACKETS for p in ports):
                break
    return found


def _known(*_: object) -> None:
    """Damage that reading the packets has reported."""
