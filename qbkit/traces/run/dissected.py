"""Packets of a run with their header fields: the dataset says what happened, scapy what was sent.

A capture has no word about flows and fates, and a dataset none about headers. Both have the times
and sizes of the same packets, so each row of the dataset finds its frame.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit import extras
from qbkit.arguments import whole
from qbkit.errors import StoreError, TraceError
from qbkit.stacks.variants import ip6
from qbkit.testbed.plan import RECEIVER_IP, SENDER_IP
from qbkit.traces.run.ends import left_queue_s
from qbkit.traces.run.headers import INTEGERS, Headers, source_of
from qbkit.traces.run.journey import NO_PACKETS, Fate

CAPTURE = "before.pcap"
"""The capture of what reaches the queue, from both sides."""
SECOND_NS = 10**9
FATES = {
    Fate.ARRIVED: "arrived",
    Fate.QUEUE_DROP: "dropped at the bottleneck",
    Fate.RANDOM_LOSS: "lost at random",
    Fate.UNKNOWN: "unknown",
}
TABLES = {"packet": ("to receiver", SENDER_IP), "ack": ("to sender", RECEIVER_IP)}
"""Table of the dataset → direction of its packets, and the address that they come from."""
AGAIN = "run it again with keep='pcap' (in Python) or --keep pcap (on the command line)"


def packets_around(
    ds: xr.Dataset, folder: Path, around_s: float, *, flow: int | None = None, count: int = 50
) -> pd.DataFrame:
    """The ``count`` packets nearest to a time of a run, with the fields of their headers.

    ``folder`` holds the captures that ``keep="pcap"`` kept beside the run; ``flow`` is the number
    of the only flow to show. One row per packet that reached the queue, in order of time; the index
    is its number in ``before.pcap``, as Wireshark counts. Sequence numbers count from the first one
    of their direction. Of a QUIC header it shows what is not encrypted. Columns without a value are
    left out. Raises TraceError for a time outside of the run, StoreError where there is no capture,
    or one of another run, and MissingExtra without scapy.
    """
    require_within(around_s, float(ds.attrs["duration_s"]))
    if whole(count, "count") < 1:
        raise TraceError(f"count = {count}: give a number of packets from 1 on", refused=True)
    rows = _all_rows(ds, folder)
    flows = np.atleast_1d(ds["flow"].values) if flow is None else [flow]
    away_ns = (rows.time_ns[rows.flow.isin(flows)] - round(around_s * SECOND_NS)).abs()
    chosen = rows.loc[away_ns.sort_values(kind="stable").index[:count].sort_values()]
    return _table(ds, chosen, _frames(folder / CAPTURE, rows.iloc[0], chosen))


def packets_within(ds: xr.Dataset, folder: Path, span_s: tuple[float, float]) -> pd.DataFrame:
    """The packets that reach the queue, or are in it, in a span of time of a run.

    Arguments, rows and errors are those of `packets_around`.
    """
    rows = _all_rows(ds, folder)
    start_ns, stop_ns = (round(time_s * SECOND_NS) for time_s in span_s)
    queued_ns = (rows.get("queue_delay_ms", pd.Series(0.0, rows.index)) * 1e6).fillna(0.0)
    chosen = rows[(rows.time_ns + queued_ns >= start_ns) & (rows.time_ns <= stop_ns)]
    return _table(ds, chosen, _frames(folder / CAPTURE, rows.iloc[0], chosen))


def require_within(around_s: float, duration_s: float) -> None:
    """Raise TraceError for a time outside of a run."""
    if not isinstance(around_s, int | float) or not 0 <= around_s <= duration_s:
        shown = f"{around_s:g}" if isinstance(around_s, int | float) else repr(around_s)
        raise TraceError(
            f"around_s = {shown}: the run lasts from 0 to {duration_s:g} s", refused=True
        )


def _all_rows(ds: xr.Dataset, folder: Path) -> pd.DataFrame:
    """The packets of both directions in order of time; StoreError without them or their capture."""
    extras.require("scapy", to="dissect packets")
    if not ds.attrs.get("spec"):
        raise StoreError(
            "the run was imported: look at the captures that it was imported from", refused=True
        )
    if "packet_flow" not in ds:
        raise StoreError(NO_PACKETS, refused=True)
    if not (folder / CAPTURE).exists():
        raise StoreError(f"no capture of this run was kept; {AGAIN}", refused=True)
    rows = pd.concat([_rows(ds, table) for table in TABLES], ignore_index=True)
    return rows.sort_values("time_ns", kind="stable", ignore_index=True)


def _rows(ds: xr.Dataset, table: str) -> pd.DataFrame:
    """The packets of one direction: time since the start, flow, source, size, delay and fate."""
    direction, address = TABLES[table]
    time_s, flow = ds[f"{table}_time_s"].values, ds[f"{table}_flow"].values.astype(np.int64)
    fours = [address.format(i) for i in range(int(flow.max(initial=0)) + 1)]
    over_ip6 = json.loads(ds.attrs["spec"]).get("ip_version") == 6
    hosts = np.array([ip6.address(four) for four in fours] if over_ip6 else fours)
    found = pd.DataFrame(
        {
            "time_ns": np.rint(time_s * SECOND_NS).astype(np.int64),
            "flow": flow,
            "direction": direction,
            "source": hosts[flow],
            "frame_bytes": ds[f"{table}_size_bytes"].values.astype(np.int64),
        }
    )
    # Where ACKs meet no queue, what they wait is the time for which the path holds them.
    if f"{table}_departure_s" in ds and not (table == "ack" and "ack_in_packets" in ds):
        left_s = left_queue_s(ds) if table == "packet" else ds["ack_departure_s"].values
        found["queue_delay_ms"] = (left_s - time_s) * 1e3
    if f"{table}_fate" in ds:
        found["fate"] = pd.Series(ds[f"{table}_fate"].values).map(FATES)
    return found


def _frames(path: Path, first: Any, chosen: pd.DataFrame) -> list[tuple[int, dict[str, Any]]]:
    """Number and header fields of each chosen packet; ``first`` is the first of the whole run."""
    wanted: dict[tuple[int, str, int], deque[int]] = {}
    for place, row in enumerate(chosen.itertuples()):
        wanted.setdefault((row.time_ns, row.source, row.frame_bytes), deque()).append(place)
    found: dict[int, tuple[int, bytes]] = {}
    headers, start_ns = Headers(), None
    # A capture has the packets of one interface after those of the other, so the first packet of a
    # host may follow packets that acknowledge it: all frames are seen before any is dissected.
    for number, time_ns, frame, frame_bytes in _records(path):
        source = source_of(frame)
        headers.see(source, frame)
        if start_ns is None and (source, frame_bytes) == (first.source, first.frame_bytes):
            # A run starts at a whole second of the machine's time.
            whole = (time_ns - first.time_ns) % SECOND_NS == 0
            start_ns = time_ns - first.time_ns if whole else None
        if start_ns is None:
            continue
        places = wanted.get((time_ns - start_ns, source, frame_bytes))
        if places:
            found[places.popleft()] = number, frame
    if len(found) == len(chosen):
        at = [found[place] for place in range(len(chosen))]
        return [(number, headers.fields(frame)) for number, frame in at]
    raise StoreError(f"{path} is damaged, or of another run; {AGAIN}, and rerun=True or --rerun")


def _records(path: Path) -> Iterator[tuple[int, int, bytes, int]]:
    """Number (from 1 on), time (ns since 1970), captured bytes and bytes on the wire of frames."""
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapReader

    try:
        with RawPcapReader(str(path)) as reader:
            unit_ns = 1 if reader.nano else 1000
            for number, (frame, about) in enumerate(reader, 1):
                yield number, about.sec * SECOND_NS + about.usec * unit_ns, frame, about.wirelen
    except Scapy_Exception:
        raise StoreError(f"{path} is no capture; {AGAIN}") from None


def _table(
    ds: xr.Dataset, chosen: pd.DataFrame, frames: list[tuple[int, dict[str, Any]]]
) -> pd.DataFrame:
    """The rows beside the fields of their frames, without columns that have no value."""
    labels = dict(
        zip(*(np.atleast_1d(ds[name].values).tolist() for name in ("flow", "label")), strict=True)
    )
    numbers = pd.Index([number for number, _ in frames], name="packet")
    fields = pd.DataFrame([fields for _, fields in frames], index=numbers)
    rows = chosen.drop(columns=["time_ns", "source"]).set_index(numbers)
    rows.insert(0, "time_s", chosen.time_ns.to_numpy() / SECOND_NS)
    found = rows.assign(flow=rows.flow.map(labels)).join(fields)
    found[[*INTEGERS]] = found.reindex(columns=INTEGERS).astype("Int64")
    texts = found.select_dtypes(exclude="number").columns
    found[texts] = found[texts].fillna("")
    return found.loc[:, ~found.isna().all() & ~(found == "").all().fillna(False)]
