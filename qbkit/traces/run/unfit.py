"""What makes two captures unfit to be a run, and what limits the trust in one that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from qbkit.errors import StoreError
from qbkit.spec import FRAME_BYTES
from qbkit.traces.arrays import BoolArray, FloatArray
from qbkit.traces.run.dataset import largest_frame, offload_warning
from qbkit.traces.run.frames import Packets
from qbkit.traces.run.match import NEVER, departures_ns, match
from qbkit.traces.run.packets import Matched

CLOCK_SLACK_MS = 0.5
"""A packet may seem to leave this much before it arrives; its queueing delay is then zero."""
LONGEST_PATH_NS = 10**9
TOLERANCE = 0.02
"""A base RTT may be given rounded."""
EARLY_PERCENT = 1.0
"""If more packets than this leave even earlier, the clocks disagree."""
SLOW_END_MS = 10.0
"""How long ends may compute in a handshake before the base RTT that was given is doubted."""
SHORT_WAIT_MS = 2.0
"""Least wait of a queue that is empty at times; a longer one may be propagation, or the clocks'."""


def require_flows(flows: Mapping[int, str], bin_s: float) -> None:
    """Raise StoreError for what names no flows by their ports, or for impossible bins."""
    if not flows or len(set(flows.values())) < len(flows):
        raise StoreError(
            "flows must name at least one flow, {port: label}, with distinct labels", refused=True
        )
    for port in flows:
        if not 0 < port < 65536:
            raise StoreError(f"{port} is no port; a port is a number from 1 to 65535", refused=True)
    if not bin_s > 0:
        raise StoreError(f"bin_s is {bin_s:g}; it must be more than 0", refused=True)


def require_ports(packets: Packets, flows: Mapping[int, str], path: str | Path) -> None:
    """Raise StoreError if a capture has no packet of a port."""
    each = np.bincount(packets.way, minlength=len(packets.ways.source))
    ports = np.concatenate([packets.ways.source_port, packets.ways.destination_port])
    counts = np.bincount(ports.astype(np.int64), np.tile(each, 2))
    missing = [port for port in flows if port >= len(counts) or not counts[port]]
    if missing:
        common = [str(p) for p in np.argsort(counts)[::-1][:6] if counts[p]]
        most = f"; most are of {', '.join(common)}" if common else ", and none of any other"
        raise StoreError(f"{path} has no packet of port {missing[0]}{most}", refused=True)


def _ways_of_flows(
    packets: Packets, addresses: Sequence[int], flows: Mapping[int, str]
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Which ways are of the flows, and which of these begin and which end at a sender."""
    ways, ports = packets.ways, np.array([*flows], np.uint64)
    mine = np.isin(ways.source_port, ports) | np.isin(ways.destination_port, ports)
    ends = (ways.source, ways.destination)
    begin, end = (mine & np.isin(one, np.array(addresses, np.uint64)) for one in ends)
    return mine, begin, end


def require_one_way(
    packets: Packets, addresses: Sequence[int], path: str | Path, flows: Mapping[int, str]
) -> None:
    """Raise StoreError if data and acknowledgements have the same sources."""
    _, begin, end = _ways_of_flows(packets, addresses, flows)
    if (begin & end)[packets.way].any():
        raise StoreError(
            f"packets of {path} go from sender to sender, so that data and acknowledgements look "
            "alike: import the flows of each direction on their own, from captures between two "
            "addresses",
            refused=True,
        )


def of_others(
    packets: Packets, addresses: Sequence[int], path: str | Path, flows: Mapping[int, str]
) -> list[str]:
    """A sentence about packets of the flows that neither come from a sender nor go to one."""
    mine, begin, end = _ways_of_flows(packets, addresses, flows)
    count = int((mine & ~begin & ~end)[packets.way].sum())
    if not count:
        return []
    return [
        f"{count} packets of {path} are between other addresses, and are left out; name all senders"
    ]


def require_sense(
    packets: Matched,
    before: str | Path,
    after: str | Path,
    addresses: Sequence[str],
    flows: Mapping[int, str],
) -> None:
    """Raise StoreError unless every flow has data, and packets come out after they go in."""
    sent = np.bincount(packets.data_flow, minlength=len(flows))
    for i, label in enumerate(flows.values()):
        if not sent[i]:
            raise StoreError(
                f"{before} has no packet of {label} from {', '.join(addresses)}; name all senders, "
                "or none: they are then found by their bytes",
                refused=True,
            )
    if (packets.departure_ns == NEVER).all() and not len(_early_ms(packets)):
        raise StoreError(
            f"no packet of {before} is found again in {after}; are they of the same run, with at "
            f"least 100 bytes of each packet{_of_offload(packets)}?"
        )
    if np.array_equal(packets.departure_ns, packets.data.time_ns):
        raise StoreError(
            f"all packets of {before} leave {after} when they arrive: both are one capture; give "
            "one of each side of the queue",
            refused=True,
        )
    early_ms = _early_ms(packets)
    if len(early_ms) * 100 > EARLY_PERCENT * len(packets.out):
        raise StoreError(
            f"packets leave {after} up to {early_ms.max():.3f} ms before they reach {before}; "
            "the files are swapped, their clocks differ, or propagation_ms is too large"
        )
    if (least_ms := _least_wait_ms(packets)) * 1e6 > LONGEST_PATH_NS:
        raise StoreError(
            f"every packet of {before} comes out in {after} {least_ms / 1e3:.3f} s later, or more: "
            "the clocks of the captures differ"
        )
    if _unexplained_meanwhile(packets) > 1 / 2:
        raise StoreError(
            f"most packets of {after} are not found in {before}; are they of the same run, with at "
            f"least 100 bytes of each packet{_of_offload(packets)}?"
        )


def _of_offload(packets: Matched) -> str:
    """What to add where only one capture has frames of several packets."""
    large = [largest_frame(packets) > FRAME_BYTES]
    large.append(int(packets.out.frame_bytes.max(initial=0)) > FRAME_BYTES)
    one = " (one has frames of several packets: turn segmentation offload off)"
    return one if len(set(large)) > 1 else ""


def _least_wait_ms(packets: Matched) -> float:
    """The shortest wait in the queue, in ms."""
    out = packets.departure_ns != NEVER
    waited_ns = packets.departure_ns[out] - packets.data.time_ns[out]
    return float(waited_ns.min(initial=np.iinfo(np.int64).max)) / 1e6


def _unexplained_meanwhile(packets: Matched) -> float:
    """Part of the packets that came out while others went in, and were not seen to go in."""
    arrived_ns, out_ns = packets.data.time_ns, packets.out.time_ns
    meanwhile = int(((out_ns >= arrived_ns[0]) & (out_ns <= arrived_ns[-1])).sum())
    return 1 - (len(packets.out) - packets.unexplained) / max(meanwhile, 1)


def _early_ms(packets: Matched) -> FloatArray:
    """How early packets came out, in ms, for those that exceed the slack."""
    data, out = packets.data, packets.out
    if not packets.unexplained:
        return np.empty(0)
    found = match(data.key, np.full(len(data), -(2**62)), out.key, out.time_ns)
    found_ns = departures_ns(found, out.time_ns)
    early_ms = (data.time_ns - found_ns)[found_ns != NEVER] / 1e6
    return early_ms[early_ms > CLOCK_SLACK_MS]


def warnings_of(packets: Matched, seen_ms: FloatArray, rtt_ms: float | None) -> list[str]:
    """What limits the trust in a run; ``seen_ms`` are the RTTs of the handshakes."""
    found = offload_warning(largest_frame(packets))
    shown = ", ".join(f"{seen:.2f}" for seen in seen_ms)
    if rtt_ms is not None and (seen_ms < rtt_ms * (1 - TOLERANCE)).any():
        found.append(
            f"the base RTT cannot be {rtt_ms:g} ms: the handshakes took {shown} ms; correct rtt_ms"
        )
    elif rtt_ms is not None and (seen_ms > 2 * rtt_ms + SLOW_END_MS).all():
        found.append(
            f"the base RTT is {rtt_ms:g} ms, and the handshakes took {shown} ms: either the ends "
            "answered late, or rtt_ms is too small, and so are all RTTs of the run"
        )
    elif rtt_ms is None and np.isfinite(seen_ms).all():
        found.append(f"the base RTT is that of the handshakes ({shown} ms); give rtt_ms if known")
    elif rtt_ms is None:
        found.append("the base RTT is unknown: the captures hold no handshake; give rtt_ms")
    if (least_ms := _least_wait_ms(packets)) > SHORT_WAIT_MS:
        found.append(
            f"no packet takes less than {least_ms:.2f} ms from one capture to the other, which "
            "counts as queueing; if it is propagation, or the clocks differ, give propagation_ms"
        )
    if packets.unexplained:
        found.append(
            f"{packets.unexplained} packets came out of the queue that were not seen to go in"
        )
    return found
