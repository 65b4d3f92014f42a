"""Captures of one connection as tables: TCP from its headers, QUIC decrypted with a key log."""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from qbkit.errors import TraceError
from qbkit.traces.logs.copies import Copies
from qbkit.traces.logs.jsonfile import JsonFile, open_log
from qbkit.traces.logs.offload import likely_mss
from qbkit.traces.logs.quic_capture import Keys, read_quic
from qbkit.traces.logs.quic_file import QuicFile, paths_of
from qbkit.traces.logs.records import Conversation, End, Segment, describe, of_others, segments
from qbkit.traces.logs.tcp import USUAL_PAYLOAD, TcpConnection, parse
from qbkit.traces.run import pcapng
from qbkit.traces.run.frames import TCP

OUT_OF_ORDER = 1 << 16
"""A packet may follow this many later ones, as in captures of two interfaces."""
MOST_CONNECTIONS = 1 << 16


def read_capture(
    path: str | Path,
    *,
    keylog: str | Path | None = None,
    sender: str | None = None,
    port: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The events of one connection of a capture (`qbkit.traces.logs.events.EventTables.dataset`).

    The file is pcap or pcapng, compressed or not. The connection is the one with the most bytes
    among those with ``port`` at either end. ``sent`` is what comes from ``sender`` (an address, or
    address:port), by default the end that sends more. Times count from the first packet. Results
    depend on where the capture was made: RTTs and losses are the sender's only in a capture made
    there.

    TCP: each transmission of data is a packet, numbered from 0, and its offset is the relative
    sequence number. A packet that is sent again was lost ("retransmitted"), spuriously if its data
    had been acknowledged or a DSACK reports it. Sizes are those of segments with their header,
    bytes in flight those of data. RTT samples come from time stamps, and the receive window from
    the receiver's headers. Segments larger than the peer's MSS, which offload leaves in captures
    made on a host, are split; without the handshake, at the MSS that the sizes of the segments
    suggest. Frames that were captured several times count once. Probes of a closed window and
    keep-alives are no data.

    QUIC needs tshark, and ``keylog``, the file that SSLKEYLOGFILE names, unless the capture holds
    the secrets. It gives numbers, spaces, frames, and HTTP/3 frames by stream; losses, RTTs and
    bytes in flight follow from acknowledgements by RFC 9002. Without the secrets there are times
    and sizes only, and a warning.

    Attributes: ``source`` "pcap", ``vantage_point`` "network", ``title``, ``warnings`` (JSON list).
    A truncated or damaged file gives the events before the damage, and a warning. Raises TraceError
    for a file that is no capture or has no such connection, and where tshark is missing.
    """
    with open_log(path, progress) as log:
        connection, found = _choose(log, port)
        source = _sender(log, connection, sender)
        if connection.protocol == TCP:
            log.warnings += of_others(log.name, connection, found)
            return _read_tcp(log, connection, source)
        if connection.cut * 2 > connection.packets:
            log.warnings.append(
                f"{log.name} has truncated packets (snaplen), which cannot be decrypted"
            )
        paths = paths_of(connection, found)
        with _quic_files(log, paths, keylog) as (plain, keys):
            return read_quic(plain, log, paths, found, source, keys)


def _choose(log: JsonFile, port: int | None) -> tuple[Conversation, list[Conversation]]:
    """The connection with the most bytes, and all that there are."""
    found: dict[Any, Conversation] = {}
    for segment in _all(log, first=True):
        ends = (segment.source, segment.destination)
        if port is not None and port not in (ends[0][1], ends[1][1]):
            continue
        key = (segment.protocol, *sorted(ends))
        if key not in found:
            if len(found) >= MOST_CONNECTIONS:
                continue
            found[key] = Conversation(segment)
        found[key].take(segment)
    if not found:
        of_port = "" if port is None else f" with port {port}"
        raise TraceError(f"{log.name} has no TCP and no UDP packets{of_port}")
    return max(found.values(), key=lambda c: sum(c.bytes.values())), [*found.values()]


def _sender(log: JsonFile, connection: Conversation, wanted: str | None) -> End:
    if wanted is None:
        return max(connection.bytes, key=lambda end: connection.bytes[end])
    for end in connection.ends:
        whole = describe(end)
        if wanted in (whole, whole.rpartition(":")[0].strip("[]")):
            return end
    raise TraceError(f"{wanted} is neither end of {connection} in {log.name}")


def _read_tcp(log: JsonFile, connection: Conversation, sender: End) -> xr.Dataset:
    peer = next(end for end in connection.ends if end != sender)
    is_announced = peer in connection.announced
    tcp = TcpConnection(sender, 0 if is_announced else _likely_mss(log, connection, sender))
    copies = Copies()
    for segment in _in_order(_of(log, [connection])):
        try:
            if not copies.is_copy(segment):
                tcp.take(segment)
        except (ValueError, OverflowError) as error:
            raise TraceError(f"{log.name} has an impossible value: {error}") from None
    log.warnings += copies.warning(log.name)
    if tcp.split_packets:
        source = "" if is_announced else f" ({tcp.peer_mss} B, as the sizes suggest)"
        log.warnings.append(
            f"{tcp.split_packets} segments are larger than the peer's MSS{source}, from a host "
            "with segmentation offload, and were split"
        )
    if tcp.unsplit_packets:
        log.warnings.append(
            f"{tcp.unsplit_packets} segments have more than {USUAL_PAYLOAD} B of data, perhaps "
            "from segmentation offload, and were not split: the peer's MSS is unknown"
        )
    if tcp.unseen_bytes:
        log.warnings.append(
            f"{tcp.unseen_bytes} bytes were acknowledged that are not in the capture, which "
            "dropped their packets: what was sent and in flight is more than it shows"
        )
    if len(tcp.scales) < 2:
        log.warnings.append(
            "the connection began before the capture, so offsets count from its first packet and "
            "the receiver's window is unknown"
        )
    return tcp.tables.dataset(
        source="pcap", vantage_point="network", title=str(connection), warnings=log.warnings
    )


def _likely_mss(log: JsonFile, connection: Conversation, sender: End) -> int:
    frames: Counter[tuple[int, int]] = Counter()
    for segment in _of(log, [connection]):
        header = parse(segment) if segment.source == sender else None
        if header and header.payload_bytes:
            payload = header.payload_bytes
            frames[segment.transport_bytes - payload, payload] += 1
    return likely_mss(frames)


@contextmanager
def _quic_files(
    log: JsonFile, paths: list[Conversation], keylog: str | Path | None
) -> Iterator[tuple[Path, Keys]]:
    """A capture of the datagrams of ``paths`` alone, and all secrets, for tshark."""
    if keylog is not None and not Path(keylog).is_file():
        raise TraceError(f"there is no key log {keylog}")
    with tempfile.TemporaryDirectory() as folder:
        plain, keys = Path(folder, f"{log.name}.pcap"), Path(folder, "keys")
        given = [] if keylog is None else [Path(keylog).read_bytes()]
        keys.write_bytes(b"\n".join([*given, *pcapng.secrets(log.file)]))
        copies, written = Copies(), QuicFile()
        mine = _in_order(_of(log, paths))
        written.write(plain, (segment for segment in mine if not copies.is_copy(segment)))
        log.warnings += [*copies.warning(log.name), *written.warnings(log.name)]
        yield plain, Keys(keys, None if keylog is None else Path(keylog).name)


def _all(log: JsonFile, *, first: bool = False) -> Iterator[Segment]:
    """All segments of the file; updates the progress bar. The first time, it reports damage."""
    log.file.seek(0)
    log.bar.reset()
    report = (log.broken, log.count) if first else (_known, _known)
    for number, segment in enumerate(segments(log.file, log.name, *report)):
        if not number & 0xFFF:
            log.bar.update(log.file.tell() - log.bar.n)
        yield segment
    log.bar.update(log.file.tell() - log.bar.n)


def _of(log: JsonFile, paths: Collection[Conversation]) -> Iterator[Segment]:
    """The segments of conversations of one protocol, in the order of the file."""
    protocol = next(iter(paths)).protocol
    ways = {way for path in paths for way in (path.ends, path.ends[::-1])}
    for segment in _all(log):
        if segment.protocol == protocol and (segment.source, segment.destination) in ways:
            yield segment


def _known(*_: object) -> None:
    """Damage that has been reported."""


def _in_order(mine: Iterable[Segment]) -> Iterator[Segment]:
    """Sort by time; a packet may follow up to `OUT_OF_ORDER` later ones."""
    waiting: list[tuple[int, int, Segment]] = []
    for number, segment in enumerate(mine):
        if len(waiting) < OUT_OF_ORDER:
            heapq.heappush(waiting, (segment.time_ns, number, segment))
        else:
            yield heapq.heappushpop(waiting, (segment.time_ns, number, segment))[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
