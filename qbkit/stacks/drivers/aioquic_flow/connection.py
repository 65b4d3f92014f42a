"""aioquic's connection, which builds packets only when it has something to send.

aioquic itself builds a packet to find out. Most turns need none: a receiver waits for the time of
its next ACK, a sender for its pacer or its window.
"""

from __future__ import annotations

import aioquic
from aioquic.quic import connection
from aioquic.quic.connection import NetworkAddress, QuicConnection, QuicConnectionState
from aioquic.tls import Epoch

READ_VERSIONS = ("1.7.2",)
"""Versions whose `datagrams_to_send` was compared with `QuietConnection`; others are unchanged."""
HEADER_BYTES, TAG_BYTES = 3, 16
LEAST_STREAM_FRAME_BYTES = 4
"""Type, stream, length: with less room in the window, aioquic sends nothing."""


class QuietConnection(QuicConnection):
    """A connection that sends the same datagrams at the same times."""

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, NetworkAddress]]:
        """The datagrams of aioquic, or none if it would build none."""
        return [] if self._is_quiet(now) else super().datagrams_to_send(now)

    def _is_quiet(self, now: float) -> bool:
        """Whether there is nothing to send; False in doubt."""
        if (
            self._state is not QuicConnectionState.CONNECTED
            or not self._handshake_confirmed
            or self._close_pending
            or self._remote_preferred_address is not None
            or len(self._network_paths) != 1
        ):
            return False
        ack_at = self._spaces[Epoch.ONE_RTT].ack_at
        if ack_at is not None and ack_at <= now:
            return False
        self._pacing_at = self._loss._pacer.next_send_time(now=now)
        return self._pacing_at is not None or not (
            self._has_control_frames() or self._has_stream_frames()
        )

    def _has_control_frames(self) -> bool:
        path = self._network_paths[0]
        return bool(
            not path.is_validated
            or path.remote_challenges
            or self._handshake_done_pending
            or self._retire_connection_ids
            or self._streams_blocked_pending
            or self._ping_pending
            or self._probe_pending
            or self._datagrams_pending
            or not self._crypto_streams[Epoch.ONE_RTT].sender.buffer_is_empty
            or not all(cid.was_sent for cid in self._host_cids)
            or self._local_max_data.used * 2 > self._local_max_data.value
            or self._local_max_data.value != self._local_max_data.sent
            or self._local_max_streams_bidi.value != self._local_max_streams_bidi.sent
            or self._local_max_streams_uni.value != self._local_max_streams_uni.sent
        )

    def _has_stream_frames(self) -> bool:
        loss, around = self._loss, HEADER_BYTES + len(self._peer_cid.cid) + TAG_BYTES
        room_bytes = loss.congestion_window - loss.bytes_in_flight - around
        for stream in self._streams.values():
            limit, receiver, sender = stream.max_stream_data_local, stream.receiver, stream.sender
            if (
                limit != stream.max_stream_data_local_sent
                or (limit and receiver.highest_offset * 2 > limit)
                or stream.is_finished
                or receiver.stop_pending
                or sender.reset_pending
                or (not sender.buffer_is_empty and room_bytes >= LEAST_STREAM_FRAME_BYTES)
            ):
                return True
        return False


def _hash_by_identity() -> None:
    """Look up aioquic's states without the hash of `Enum`, which Python code computes.

    Build the set that already holds states again.
    """
    Epoch.__hash__ = QuicConnectionState.__hash__ = object.__hash__  # type: ignore[method-assign]
    connection.END_STATES = frozenset(connection.END_STATES)


if aioquic.__version__ in READ_VERSIONS:
    _hash_by_identity()
    Connection: type[QuicConnection] = QuietConnection
else:
    Connection = QuicConnection
