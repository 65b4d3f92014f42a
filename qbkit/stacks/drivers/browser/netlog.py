"""What Chromium reports of its QUIC connection in its net log, read from a pipe as it writes.

The log is JSON with one event per line. Its first line has the numbers of the events' names. Times
are whole milliseconds of CLOCK_MONOTONIC. It names the congestion controller, but not its window.
"""

import fcntl
import json
import os
import threading
import time

from flight import Flight
from rows import Rows

PIPE_BYTES = 1 << 20
MUCH_BYTES = 1 << 18
PAUSE_S = 0.05
"""Rare and large reads cost the guest fewer system calls."""
COLUMNS = ("bytes_in_flight", "latest_rtt_ms", "lost_packets", "spurious_losses", "retransmits")
APPLICATION = "ENCRYPTION_FORWARD_SECURE"
ORDINARY_ENDS = ("", "QUIC_NO_ERROR", "QUIC_PEER_GOING_AWAY", "QUIC_CONNECTION_CANCELLED")
"""Of connections that are done, or whose browser ends."""
WANTED = {
    "QUIC_CONGESTION_CONTROL_CONFIGURED": "configured",
    "QUIC_SESSION_ACK_FRAME_RECEIVED": "acknowledged",
    "QUIC_SESSION_CLOSED": "closed",
    "QUIC_SESSION_RST_STREAM_FRAME_SENT": "reset",
    "QUIC_SESSION_CRYPTO_HANDSHAKE_COMPLETE": "handshake_complete",
    "QUIC_SESSION_PACKET_LOST": "lost",
    "QUIC_SESSION_PACKET_SENT": "sent",
    "QUIC_SESSION_UNAUTHENTICATED_PACKET_HEADER_RECEIVED": "received",
}


class NetLog:
    """A context in which a thread reads the log and writes sender.csv."""

    def __init__(self, path, out, controller, outcomes):
        os.mkfifo(path)
        self.outcomes, self.end, self.errors = outcomes, {}, {}
        """``end``: how the upload ended before its time, as in docs/howto/own-stack.md."""
        self.path, self.rows, self.controller = path, Rows(out, COLUMNS), controller
        self.connected, self.complaint = False, ""
        self.flight, self.application = Flight(), False
        self.realtime_ns = time.time_ns() - time.monotonic_ns()
        self.thread = threading.Thread(target=self.read, daemon=True)

    def __enter__(self):
        # Opened for writing too, so that there is no end of file before the browser opens it.
        self.pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.running = True
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()
        os.close(self.pipe)
        self.rows.close()

    def read(self):
        """Read until the browser has ended and the pipe is empty."""
        rest, methods = b"", {}
        while True:
            running = self.running
            data = self.read_some()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if methods:
                    self.take(line, methods)
                else:
                    constants = json.loads(line.rstrip(b",") + b"}")["constants"]
                    methods = methods_by_number(constants)
                    self.errors = {n: name for name, n in constants["quicError"].items()}
            if not data and not running:
                return
            if len(data) < MUCH_BYTES and running:
                time.sleep(PAUSE_S)

    def read_some(self):
        try:
            return os.read(self.pipe, PIPE_BYTES)
        except BlockingIOError:
            return b""

    def take(self, line, methods):
        """Handle one line; the type is the last member of an event."""
        method = methods.get(line[line.rfind(b":") + 1 :].rstrip(b",}"))
        if method:
            event = json.loads(line.rstrip(b","))
            time_ms = int(event["time"])
            getattr(self, method)(time_ms, event.get("params", {}))
            self.rows.sample(time_ms * 1_000_000 + self.realtime_ns, self.flight.__dict__)

    def configured(self, _, params):
        """Check the controller, because QUICHE ignores connection options that it does not know."""
        used = params["congestion_control_type"]
        if used != self.controller:
            self.complaint = f"chromium used the controller {used} instead of {self.controller}"

    def handshake_complete(self, *_):
        self.connected = True

    def closed(self, time_ms, params):
        """The connection ended before its time, unless the browser is done with it."""
        name = self.errors.get(params["quic_error"], "")
        if name not in ORDINARY_ENDS:
            by = "receiver" if params["from_peer"] else "sender"
            by = "timeout" if name.endswith("TIMEOUT") else by
            known = {"code": params["quic_error"], "name": name, "reason": params["details"]}
            self.over(time_ms, {"by": by, **known})

    def reset(self, time_ms, params):
        """The browser cancels the upload when its page crashes, of which the page says nothing."""
        code = {"kind": "http3", "code": params["ietf_error_code"]}
        self.over(time_ms, {"by": "sender", **code, "reason": "the browser cancelled its upload"})

    def over(self, time_ms, how):
        """The upload is over; the first reason counts."""
        if not self.end:
            self.end = {"time_ns": time_ms * 1_000_000 + self.realtime_ns, **how}
            self.outcomes.put(("failed", how["reason"]))

    def sent(self, _, params):
        again = params["transmission_type"] != "NOT_RETRANSMISSION"
        if params["encryption_level"] == APPLICATION:
            number, sent_us = params["packet_number"], params["sent_time_us"]
            self.flight.sent(number, params["size"], sent_us / 1000, again)

    def received(self, _, params):
        """Packet numbers start again after the handshake, which uses long headers."""
        self.application = params["header_format"] == "IETF_QUIC_SHORT_HEADER_PACKET"

    def acknowledged(self, time_ms, params):
        if self.application:
            smallest, largest = params["smallest_observed"], params["largest_observed"]
            # Half a millisecond: the mean of what the log's whole milliseconds cut off.
            self.flight.acknowledged(smallest, largest, params["missing_packets"], time_ms + 0.5)

    def lost(self, _, params):
        self.flight.lost(params["packet_number"])


def methods_by_number(constants):
    """An event's number, as bytes → the method that handles it, from the log's first line."""
    numbers = constants["logEventTypes"]
    return {str(numbers[name]).encode(): method for name, method in WANTED.items()}
