"""Two captures to the tables of data packets and acknowledgements of every flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qbkit.traces.match import NEVER, match
from qbkit.traces.pcap import IntArray, Packets


@dataclass(frozen=True)
class FlowPackets:
    """Data packets by their arrival at the queue, and acknowledgements, with their flow."""

    data: Packets
    data_flow: IntArray
    departure_ns: IntArray
    """When the packet came out of the queue; `NEVER` for one that was dropped."""
    acks: Packets
    ack_flow: IntArray
    unexplained: int
    """Packets that came out but never went in."""


def sort_out(
    before: Packets, behind: Packets, flow_of_port: Mapping[int, int], senders: Sequence[int]
) -> FlowPackets:
    """Match the two sides of the queue.

    ``flow_of_port`` says which flow a server's port belongs to; a packet is data when it comes
    from one of ``senders`` (addresses as `Packets.source` has them).
    """
    flow_in, data_in = _classify(before, flow_of_port, senders)
    _, data_out = _classify(behind, flow_of_port, senders)
    data, out = before.take(data_in), behind.take(data_out)
    departure_ns = match(data.key, data.time_ns, out.key, out.time_ns)
    reverse = ~data_in & (flow_in >= 0)
    return FlowPackets(
        data=data,
        data_flow=flow_in[data_in],
        departure_ns=departure_ns,
        acks=before.take(reverse),
        ack_flow=flow_in[reverse],
        unexplained=len(out) - int((departure_ns != NEVER).sum()),
    )


def _classify(
    packets: Packets, flow_of_port: Mapping[int, int], senders: Sequence[int]
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Flow of each packet (-1: none), and whether it is data of that flow."""
    table = np.full(65536, -1, np.int64)
    for port, index in flow_of_port.items():
        table[port] = index
    flow: IntArray = np.maximum(table[packets.source_port], table[packets.destination_port])
    sent = np.isin(packets.source, np.array(senders, np.uint64))
    return flow, sent & (flow >= 0)
