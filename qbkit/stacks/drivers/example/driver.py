#!/usr/bin/python3
"""An example of a driver that speaks qbkit's contract, for `qbkit new-stack --python`: TCP.

driver.py recv --listen IP:PORT --cert FILE --key FILE --out DIR [--option K=V ...]
driver.py send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR ...
"""

import argparse
import csv
import os
import signal
import socket
import struct
import sys
import time

CHUNK = bytes(1 << 16)
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: a socket that is closed drops what is unsent, so that the flow stops on time."""


def recv(words):
    """Receive from one client, and write receiver.csv: bytes that the application has read."""
    server = socket.create_server(place(words.listen))
    print("ready", flush=True)
    peer, _ = server.accept()
    total = 0
    with open(os.path.join(words.out, "receiver.csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time_ns", "bytes"])
        while True:
            try:
                count = len(peer.recv(1 << 20))
            except ConnectionResetError:  # the sender's time was over
                break
            total += count
            table.writerow([time.time_ns(), total])
            file.flush()
            if not count:
                break
    peer.close()
    signal.pause()  # until SIGTERM


def send(words):
    """Send for a duration or a number of bytes."""
    options = dict(word.split("=", 1) for word in words.option)
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, words.controller.encode())
    if "max_segment_bytes" in options:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(options["max_segment_bytes"]))
    peer.connect(place(words.connect))
    if words.bytes is None:
        end_s = time.monotonic() + words.duration_s
        while (left_s := end_s - time.monotonic()) > 0:
            peer.settimeout(left_s)  # so that a full buffer does not outlast the flow
            try:
                peer.send(CHUNK)
            except TimeoutError:
                break
        return
    peer.sendall(bytes(words.bytes))
    peer.shutdown(socket.SHUT_WR)
    peer.recv(1)  # returns when the receiver has read everything and leaves


def place(address):
    """(IP, port) of ``IP:PORT``."""
    ip, _, port = address.rpartition(":")
    return ip, int(port)


def main(words):
    parser = argparse.ArgumentParser()
    roles = parser.add_subparsers(dest="role", required=True)
    for role, names in (("recv", ("listen", "cert", "key")), ("send", ("connect", "controller"))):
        one = roles.add_parser(role)
        for name in (*names, "out"):
            one.add_argument(f"--{name}", required=True)
        one.add_argument("--option", action="append", default=[])
    roles.choices["send"].add_argument("--duration-s", type=float)
    roles.choices["send"].add_argument("--bytes", type=int)
    chosen = parser.parse_args(words)
    {"recv": recv, "send": send}[chosen.role](chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
