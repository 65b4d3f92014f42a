"""Captures made elsewhere become the same dataset."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import StoreError
from qbkit.traces import schema
from qbkit.traces.dataset import FORMAT_VERSION
from qbkit.traces.packets import FlowPackets, sort_out
from qbkit.traces.pcap import Packets, read_pcap
from qbkit.traces.series import Bins


def read_pcaps(
    before: str | Path,
    behind: str | Path,
    *,
    flows: Mapping[int, str],
    sender: str | Sequence[str],
    rtt_ms: float | None = None,
    bin_s: float = schema.BIN_S,
    propagation_ms: float = 0.0,
) -> xr.Dataset:
    """A run dataset from captures on both sides of a queue, with clocks that agree.

    ``flows`` names the flow of each server port, ``sender`` the address or addresses that data
    come from. ``propagation_ms`` is the constant delay between the two points of capture, taken
    off every queueing delay. ``rtt_ms`` is the path's base RTT, for the metrics that need it.
    t = 0 is the first data packet. In QUICbench's folders ``packets-br0.pcap`` lies before the
    queue and ``packets.pcap`` behind it (queue and netem sit between the two; propagation is half
    of its RTT). Raises StoreError with one sentence when the files do not allow it.
    """
    addresses = [sender] if isinstance(sender, str) else list(sender)
    ports = {port: i for i, port in enumerate(flows)}
    arrivals, leaving = read_pcap(before), read_pcap(behind)
    _require_ports(arrivals, flows, before)
    shifted = _shift(leaving, -round(propagation_ms * 1e6))
    packets = sort_out(arrivals, shifted, ports, [_number(a) for a in addresses])
    _require_sense(packets, before, behind, addresses, flows)
    t0_ns = int(packets.data.time_ns[0])
    duration_s = (int(packets.data.time_ns[-1]) - t0_ns) / 1e9 + bin_s
    bins = Bins(bin_s, duration_s)
    nothing = [pd.DataFrame({"time_ns": []})] * len(flows)
    variables = {
        **schema.packet_series(packets, t0_ns, len(flows), bins),
        **schema.goodput_series(nothing, t0_ns, bins)[0],
        **schema.packet_variables(packets, t0_ns),
        **schema.flow_variables(_flow_columns(packets, len(flows), t0_ns, rtt_ms)),
    }
    names = {
        "label": list(flows.values()),
        "stack": ["imported"] * len(flows),
        "controller": ["unknown"] * len(flows),
    }
    return schema.assemble(variables, names, bins).assign_attrs(
        format_version=FORMAT_VERSION,
        spec="",
        spec_hash="",
        hash="",
        qbkit_version=version("qbkit"),
        kernel_version="",
        stack_versions="{}",
        engine="imported",
        seed=-1,
        bin_s=bin_s,
        duration_s=duration_s,
        rate_mbps=np.nan,
        rtt_ms=np.nan if rtt_ms is None else rtt_ms,
        queue_bytes=-1,
        qdisc="",
        max_frame_bytes=int(packets.data.frame_bytes.max()),
        capture_drops=-1,
        warnings=json.dumps(_warnings(packets)),
    )


def _number(address: str) -> int:
    """An address as `Packets.source` has it: IPv4, or the last 8 bytes of IPv6."""
    try:
        return int(ipaddress.ip_address(address)) & (2**64 - 1)
    except ValueError:
        raise StoreError(f"{address!r} is no IP address") from None


def _shift(packets: Packets, by_ns: int) -> Packets:
    fields = {name: getattr(packets, name) for name in packets.__dataclass_fields__}
    return Packets(**{**fields, "time_ns": packets.time_ns + by_ns})


def _require_ports(packets: Packets, flows: Mapping[int, str], path: str | Path) -> None:
    seen = set(np.unique(packets.source_port)) | set(np.unique(packets.destination_port))
    missing = [port for port in flows if port not in seen]
    if missing:
        counts = np.bincount(np.concatenate([packets.source_port, packets.destination_port]))
        common = [str(p) for p in np.argsort(counts)[::-1][:6] if counts[p]]
        raise StoreError(
            f"{path} has no packet of port {missing[0]}; most are of {', '.join(common) or 'none'}"
        )


def _require_sense(
    packets: FlowPackets,
    before: str | Path,
    behind: str | Path,
    addresses: Sequence[str],
    flows: Mapping[int, str],
) -> None:
    """Every flow has data, and some of them came out behind the queue after they went in."""
    sent = np.bincount(packets.data_flow, minlength=len(flows))
    for i, label in enumerate(flows.values()):
        if not sent[i]:
            raise StoreError(
                f"{before} has no packet of {label} from {', '.join(addresses)}; name the sender"
            )
    if (packets.departure_ns < 0).all():
        raise StoreError(
            f"no packet of {before} comes out later in {behind}; are they swapped, or do their "
            "clocks differ (or is propagation_ms too large)?"
        )


def _flow_columns(
    packets: FlowPackets, flows: int, t0_ns: int, rtt_ms: float | None
) -> dict[str, tuple[schema.FloatArray, str, str]]:
    spans = [packets.data.time_ns[packets.data_flow == i] for i in range(flows)]
    base = np.nan if rtt_ms is None else rtt_ms
    return {
        "start_s": (np.array([(s[0] - t0_ns) / 1e9 for s in spans]), "s", "start of the flow"),
        "stop_s": (np.array([(s[-1] - t0_ns) / 1e9 for s in spans]), "s", "end of the flow"),
        "base_rtt_ms": (np.full(flows, base), "ms", "RTT without queueing"),
        "receiver_bytes": (np.full(flows, np.nan), "B", "application bytes received"),
    }


def _warnings(packets: FlowPackets) -> list[str]:
    if not packets.unexplained:
        return []
    return [f"{packets.unexplained} packets came out of the queue that were not seen to go in"]
