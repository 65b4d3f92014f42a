"""The fields of qlog records that the tables need, in all drafts from 0.3 on."""

from __future__ import annotations

from typing import Any

import msgspec


class QlogEnvelope(msgspec.Struct):
    """Any event."""

    time: float
    name: str
    data: msgspec.Raw = msgspec.Raw(b"{}")
    time_format: str | None = None
    group_id: Any = None


class QlogHeader(msgspec.Struct):
    """The header of a packet."""

    packet_type: str = "1RTT"
    packet_number: int | None = None
    length: int | None = None


class RawInfo(msgspec.Struct):
    """Lengths on the wire."""

    length: int | None = None
    payload_length: int | None = None
    data: str = ""

    def size_bytes(self) -> int | None:
        """The length; if it is missing, that of the data, which are hexadecimal."""
        return len(self.data) // 2 if self.length is None and self.data else self.length


class QlogFrame(msgspec.Struct):
    """A QUIC frame of a packet."""

    frame_type: str = ""
    acked_ranges: list[list[int]] = []
    stream_id: int | None = None
    offset: int | None = None


class QlogPacket(msgspec.Struct):
    """A packet sent, received or lost."""

    header: QlogHeader = msgspec.field(default_factory=QlogHeader)
    raw: RawInfo = msgspec.field(default_factory=RawInfo)
    frames: list[QlogFrame] = []
    trigger: str = ""
    # aioquic reports a lost packet without a header.
    type: str | None = None
    packet_number: int | None = None
    # mvfst reports how many were lost at once, and the largest of them.
    largest_lost_packet_num: int | None = None
    lost_packets: int = 0


class QlogFrames(msgspec.Struct):
    """Frames alone, from stacks that report packets without them."""

    frames: list[QlogFrame] = []


class Numbers(msgspec.Struct):
    """Packets by number: acknowledged (neqo), or spuriously lost (quic-go)."""

    packet_number_space: str = "application_data"
    packet_number: int | None = None
    packet_numbers: list[int] = []


class Metrics(msgspec.Struct):
    """Units as in the draft: ms, bytes, bit/s."""

    congestion_window: float | None = None
    cwnd: float | None = None
    ssthresh: float | None = None
    bytes_in_flight: float | None = None
    smoothed_rtt: float | None = None
    rtt_variance: float | None = None
    latest_rtt: float | None = None
    min_rtt: float | None = None
    pacing_rate: float | None = None


class State(msgspec.Struct):
    """The congestion controller's state."""

    new: str = ""


class HttpFrame(msgspec.Struct):
    """An HTTP/3 frame alone."""

    frame_type: str = ""
    length: int | None = None
    raw: RawInfo = msgspec.field(default_factory=RawInfo)


class Http(msgspec.Struct):
    """An HTTP/3 frame of a stream."""

    stream_id: int | None = None
    length: int | None = None
    raw: RawInfo = msgspec.field(default_factory=RawInfo)
    frame: HttpFrame = msgspec.field(default_factory=HttpFrame)

    def size_bytes(self) -> int | None:
        """Bytes of the frame's payload, which drafts put in different fields."""
        raw, own = self.raw, self.frame.raw
        lengths = (self.length, self.frame.length, raw.payload_length, own.payload_length)
        sizes = (*lengths, raw.size_bytes(), own.size_bytes())
        return next((n for n in sizes if n is not None), None)


TRANSPORT: dict[str, type[msgspec.Struct]] = {
    "packet_sent": QlogPacket,
    "packet_received": QlogPacket,
    "packet_lost": QlogPacket,
    "packets_acked": Numbers,
    "frames_parsed": QlogFrames,
    "frames_processed": QlogFrames,
    "spurious_loss": Numbers,
    "metrics_updated": Metrics,
    "recovery_metrics_updated": Metrics,
    "congestion_state_updated": State,
}
HTTP: dict[str, type[msgspec.Struct]] = {"frame_created": Http, "frame_parsed": Http}
CATEGORIES = ("", "transport", "recovery", "quic")
KINDS = {f"{c}:{name}".lstrip(":"): kind for c in CATEGORIES for name, kind in TRANSPORT.items()}
KINDS |= {f"{c}:{name}": kind for c in ("http", "h3", "http3") for name, kind in HTTP.items()}
"""Names of events, with the prefixes of all drafts → type of their data."""
