"""Run ngtcp2's sample client as a sender, and turn its qlog into ``sender.csv``.

upload.py --out DIR (--duration-s X | --bytes N) [--qlog] -- CLIENT [OPTION ...] HOST PORT URI

The client uploads a sparse file. This script reads its qlog from a pipe and thins it, because two
events per packet are too many to keep. Standard library only: it runs in the guest.
"""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

LOST_CONNECTION = 3
"""Exit status of a driver whose connection ended before its time (docs/howto/own-stack.md)."""
ENDLESS_BYTES = 1 << 36
ROW_EVERY_MS = 10
METRICS = {
    "congestion_window": "cwnd_bytes",
    "bytes_in_flight": "bytes_in_flight",
    "ssthresh": "ssthresh_bytes",
    "smoothed_rtt": "srtt_ms",
    "latest_rtt": "latest_rtt_ms",
    "min_rtt": "min_rtt_ms",
}


def main(words):
    arguments, command = parse(words)
    file = os.path.join(arguments.out, "upload")
    pipe = os.path.join(tempfile.mkdtemp(), "qlog")
    with open(file, "wb") as upload:
        upload.truncate(arguments.bytes or ENDLESS_BYTES)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    options = ["--quiet", "--http-method=POST", f"--data={file}", f"--qlog-file={pipe}"]
    client = subprocess.Popen([*command[:-3], *options, *command[-3:]], stdout=sys.stderr)
    # The client ends on SIGINT, and closes its connection.
    signal.signal(signal.SIGTERM, lambda *_: client.send_signal(signal.SIGINT))
    log = Log(os.path.join(arguments.out, "ngtcp2.sqlog") if arguments.qlog else os.devnull)
    try:
        interrupted = follow(reader, client, arguments.duration_s, log)
    finally:
        os.remove(file)
    status = client.wait()
    log.save(os.path.join(arguments.out, "sender.csv"))
    if not log.answered:
        host, port = command[-3:-1]
        print(f"cannot connect to {host}:{port} within 10 s", file=sys.stderr)
        return 1
    if log.closed and not interrupted and (status or log.closed["by"] == "receiver"):
        return lose(log.closed, arguments.out)
    if not interrupted and not log.closed and (status or not arguments.bytes):
        return 128 - status if status < 0 else lose({}, arguments.out)
    return abs(status)


def lose(report, out):
    """Report a connection that ended before its time; without a code, with the last words."""
    if "code" not in report:
        report = last_words(out)
    report = {"time_ns": time.time_ns(), **report}
    with open(os.path.join(out, "sender-end.json"), "w") as file:
        json.dump(report, file)
    return LOST_CONNECTION


def last_words(out):
    """The report that the client's last line on stderr makes."""
    with open(os.path.join(out, "sender.log"), errors="replace") as file:
        words = file.read().split("\n")
    reason = next((line.strip() for line in reversed(words) if line.strip()), "")
    return {"by": "timeout" if "IDLE_CLOSE" in reason else "unknown", "reason": reason}


def parse(words):
    """The options, and the client's command after ``--``."""
    border = words.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--qlog", action="store_true")
    limit = parser.add_mutually_exclusive_group(required=True)
    limit.add_argument("--duration-s", type=float)
    limit.add_argument("--bytes", type=int)
    return parser.parse_args(words[:border]), words[border + 1 :]


def follow(reader, client, duration_s, log):
    """Read the pipe until the client has closed it; interrupt the client when its time is over.

    Return whether it was interrupted.
    """
    interrupted = False
    end = time.monotonic() + duration_s if duration_s else None
    while True:
        left = max(0.0, end - time.monotonic()) if end else None
        if not select.select([reader], [], [], left)[0]:
            client.send_signal(signal.SIGINT)
            end, interrupted = None, True
            continue
        data = os.read(reader, 1 << 16)
        if not data:
            return interrupted
        log.add(data, time.time_ns())


class Log:
    """What is kept of a qlog: the last metrics of every 10 ms, and the number of losses."""

    def __init__(self, copy):
        self.copy = open(copy, "wb")  # noqa: SIM115 (save() closes it)
        self.rest = b""
        self.kept = {}  # bucket of time → (line, losses so far)
        self.lost = 0
        self.answered = False
        self.closed = None  # report on who closed the connection first
        self.start_ns = None

    def add(self, data, arrival_ns):
        """Add a piece of the log, and its arrival time."""
        self.copy.write(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if b'"recovery:metrics_updated"' in line:
                self.kept[milliseconds(line) // ROW_EVERY_MS] = line, self.lost
            elif b'"recovery:packet_lost"' in line:
                self.lost += 1
            elif b'"transport:packet_received"' in line:
                self.answered = True
            if self.closed is None and b'"connection_close"' in line:
                self.closed = closed(line, arrival_ns)
        if lines and b'"name"' in lines[-1]:
            # The log's clock starts at 0 with the connection. The client writes events late, never
            # early, so the earliest start that fits is the right one.
            start_ns = arrival_ns - milliseconds(lines[-1]) * 1_000_000
            self.start_ns = min(self.start_ns or start_ns, start_ns)

    def save(self, path):
        """Write the kept rows as a table."""
        self.copy.close()
        rows = ["time_ns," + ",".join(METRICS.values()) + ",lost_packets\n"]
        for line, lost in self.kept.values():
            event = json.loads(line.lstrip(b"\x1e"))  # JSON text sequence, RFC 7464
            data = event["data"]
            # Without a sample there is no RTT yet, though the log has its initial guess.
            known = METRICS if "min_rtt" in data else ("congestion_window", "bytes_in_flight")
            cells = [data[name] if name in data and name in known else "" for name in METRICS]
            time_ns = self.start_ns + event["time"] * 1_000_000
            rows.append(",".join(map(str, (time_ns, *cells, lost))) + "\n")
        with open(path, "w") as file:
            file.writelines(rows)


def closed(line, time_ns):
    """The report of a packet that closes the connection."""
    event = json.loads(line.lstrip(b"\x1e"))
    frames = event["data"]["frames"]
    frame = next(frame for frame in frames if frame["frame_type"] == "connection_close")
    return {
        "time_ns": time_ns,
        "by": "receiver" if event["name"].endswith("packet_received") else "sender",
        "kind": "http3" if frame["error_space"] == "application" else "transport",
        "code": frame["raw_error_code"],
    }


def milliseconds(line):
    """The time of an event, without parsing all of it."""
    return int(line[line.index(b":") + 1 : line.index(b",")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
