"""The fields of qlog records that the tables need, in all drafts."""

from __future__ import annotations

import math
from typing import Any

import msgspec


class QlogEnvelope(msgspec.Struct):
    """Any event of a file of records; without a name, it is of a draft before 0.3."""

    time: float = math.nan
    name: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")
    time_format: str | None = None
    group_id: Any = None


class QlogEvent(msgspec.Struct):
    """Any event of a document."""

    time: float
    name: str
    data: Any = None
    time_format: str | None = None
    group_id: Any = None


class QlogHeader(msgspec.Struct):
    """The header of a packet."""

    packet_type: str = "1RTT"
    packet_number: int | None = None
    length: int | None = None
    packet_size: int | None = None
    """In drafts before 0.3."""


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
    id: int | None = None
    """The stream in draft-00."""
    offset: int | None = None

    @property
    def stream(self) -> int | None:
        """The number of the stream."""
        return self.id if self.stream_id is None else self.stream_id


class QlogPacket(msgspec.Struct):
    """A packet sent, received or lost."""

    header: QlogHeader = msgspec.field(default_factory=QlogHeader)
    raw: RawInfo = msgspec.field(default_factory=RawInfo)
    frames: list[QlogFrame] = []
    trigger: str = ""
    # aioquic reports a lost packet without a header; drafts before 0.3 have the type outside of it.
    type: str | None = None
    packet_type: str | None = None
    packet_number: int | None = None
    # mvfst reports how many were lost at once, and the largest of them.
    largest_lost_packet_num: int | None = None
    lost_packets: int = 0

    @property
    def kind(self) -> str:
        """The type of the packet, in lower case."""
        return (self.type or self.packet_type or self.header.packet_type).lower()

    def size_bytes(self) -> int | None:
        """The size on the wire, which drafts put in different fields."""
        sizes = (self.raw.size_bytes(), self.header.packet_size, self.header.length)
        return next((n for n in sizes if n is not None), None)


class QlogFrames(msgspec.Struct):
    """Frames alone, from stacks that report packets without them."""

    frames: list[QlogFrame] = []


class Numbers(msgspec.Struct):
    """Packets by number: acknowledged (neqo), or spuriously lost (quic-go)."""

    packet_number_space: str = "application_data"
    packet_number: int | None = None
    packet_numbers: list[int] = []
    # mvfst reports one acknowledged packet.
    packet_num_space: str = ""
    packet_num: int | None = None


class Change(msgspec.Struct):
    """A number that grew."""

    delta: int = 0


class Metrics(msgspec.Struct):
    """Units as in the draft: ms, bytes, bit/s."""

    congestion_window: float | None = None
    cwnd: float | None = None
    current_cwnd: float | None = None
    """mvfst's."""
    ssthresh: float | None = None
    bytes_in_flight: float | None = None
    smoothed_rtt: float | None = None
    rtt_variance: float | None = None
    latest_rtt: float | None = None
    min_rtt: float | None = None
    pacing_rate: float | None = None
    # quiche reports how many packets were lost at once, but not which.
    cf_lost_packets: Change | None = None


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
    byte_length: int | None = None
    """In draft-01."""
    raw: RawInfo = msgspec.field(default_factory=RawInfo)
    frame: HttpFrame = msgspec.field(default_factory=HttpFrame)

    def size_bytes(self) -> int | None:
        """Bytes of the frame's payload, which drafts put in different fields."""
        raw, own = self.raw, self.frame.raw
        lengths = (
            self.length,
            self.byte_length,
            self.frame.length,
            raw.payload_length,
            own.payload_length,
        )
        sizes = (*lengths, raw.size_bytes(), own.size_bytes())
        return next((n for n in sizes if n is not None), None)


TRANSPORT: dict[str, type[msgspec.Struct]] = {
    "packet_sent": QlogPacket,
    "packet_received": QlogPacket,
    "packet_lost": QlogPacket,
    "packets_lost": QlogPacket,
    "packets_acked": Numbers,
    "packet_ack": Numbers,
    "frames_parsed": QlogFrames,
    "frames_processed": QlogFrames,
    "spurious_loss": Numbers,
    "metrics_updated": Metrics,
    "recovery_metrics_updated": Metrics,
    "metric_update": Metrics,
    "congestion_metric_update": Metrics,
    "congestion_state_updated": State,
    "state_update": State,
}
"""The last two of both are of draft-00 or of mvfst."""
HTTP: dict[str, type[msgspec.Struct]] = {"frame_created": Http, "frame_parsed": Http}
CATEGORIES = ("", "transport", "recovery", "quic", "loss", "metric_update")
KINDS = {f"{c}:{name}".lstrip(":"): kind for c in CATEGORIES for name, kind in TRANSPORT.items()}
KINDS |= {f"{c}:{name}": kind for c in ("http", "h3", "http3") for name, kind in HTTP.items()}
"""Names of events, with the prefixes of all drafts → type of their data."""
