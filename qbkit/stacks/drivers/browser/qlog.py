"""What neqo reports in its qlog, read while Firefox writes it."""

import ctypes
import glob
import json
import os
import threading
import time

from rows import Rows

PAUSE_S = 0.05
CHUNK_BYTES = 1 << 20
COLUMNS = {  # column → (member of recovery:metrics_updated, factor)
    "cwnd_bytes": ("congestion_window", 1),
    "bytes_in_flight": ("bytes_in_flight", 1),
    "ssthresh_bytes": ("ssthresh", 1),
    "srtt_ms": ("smoothed_rtt", 1),
    "latest_rtt_ms": ("latest_rtt", 1),
    "min_rtt_ms": ("min_rtt", 1),
    "pacing_rate_mbps": ("pacing_rate", 8e-6),  # neqo logs bytes per second
}
STATES = {"slow_start", "congestion_avoidance", "recovery", "application_limited"}
PUNCH_HOLE_KEEP_SIZE = 3


class QLog:
    """A context in which a thread reads the qlog and writes sender.csv.

    Firefox chooses the file's name in its folder for temporary files. That folder is in memory, so
    the thread frees what it has read.
    """

    complaint = ""
    end: dict = {}  # noqa: RUF012  the receiver knows why the connection ended

    def __init__(self, folder, out, keep):
        self.pattern = f"{folder}/qlog_*/*.sqlog"
        self.copy = open(f"{out}/sender.sqlog", "wb") if keep else None  # noqa: SIM115
        self.rows = Rows(out, (*COLUMNS, "lost_packets", "state"))
        self.values = {"lost_packets": 0}
        self.connected, self.reference_ns = False, None
        self.thread = threading.Thread(target=self.read, daemon=True)

    def __enter__(self):
        self.running = True
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()
        self.rows.close()
        if self.copy:
            self.copy.close()

    def read(self):
        """Read until the browser has ended and the file has no more."""
        rest, file, position = b"", None, 0
        while True:
            running = self.running
            if not file and (found := sorted(glob.glob(self.pattern))):
                file = os.open(found[0], os.O_RDWR)
            data = os.read(file, CHUNK_BYTES) if file else b""
            if data:
                free_read(file, position, len(data))
                position += len(data)
                if self.copy:
                    self.copy.write(data)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self.take(line)
            elif not running:
                return
            if len(data) < CHUNK_BYTES and running:
                time.sleep(PAUSE_S)

    def take(self, line):
        """Handle one line: the head, or an event."""
        if self.reference_ns is None:
            trace = json.loads(line.lstrip(b"\x1e"))["trace"]
            self.reference_ns = round(trace["common_fields"]["reference_time"] * 1e6)
        elif b'"recovery:' in line[:60]:
            event = json.loads(line.lstrip(b"\x1e"))
            self.update(event["name"].removeprefix("recovery:"), event["data"])
            self.rows.sample(self.reference_ns + round(event["time"] * 1e6), self.values)
        elif b'"new":"handshake_completed"' in line:
            self.connected = True

    def update(self, name, data):
        if name == "metrics_updated":
            for column, (member, factor) in COLUMNS.items():
                if member in data:
                    self.values[column] = round(data[member] * factor, 6)
        elif name == "packet_lost":
            self.values["lost_packets"] += 1
        elif name == "congestion_state_updated":
            self.values["state"] = data["new"] if data["new"] in STATES else None


def free_read(file, position, size_bytes):
    """Free the memory of a part of a file, where that is possible."""
    offsets = (ctypes.c_int64(position), ctypes.c_int64(size_bytes))
    ctypes.CDLL(None).fallocate(file, PUNCH_HOLE_KEEP_SIZE, *offsets)
