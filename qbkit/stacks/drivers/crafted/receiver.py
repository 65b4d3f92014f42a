"""A TCP receiver that misbehaves; scapy crafts every segment that it sends.

    python -m crafted.receiver --listen IP:PORT --out DIR KIND NUMBER

KIND is ``optimistic``, which is NUMBER packets ahead of what arrives, or ``withholds``, which
acknowledges every NUMBER ms. The host's kernel gives up its address, or it would answer each
segment with a RST. Prints ``ready`` when it listens; on SIGTERM it writes its table and ends.
"""

import argparse
import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

ETH_P_IP, SIOCGIFADDR, SIOCSIFADDR = 0x0800, 0x8915, 0x8916
MSS, MOST_SACKS, MOST_WINDOW_FIELD = 1460, 3, 65535
WORD = 1 << 32
ROW_NS = 100_000_000
FIRST = 1
"""Our initial sequence number; nobody has to guess it."""


class Optimistic:
    """Acknowledges packets that have not arrived yet, and lost ones as if they had.

    It is never ahead by more than half of what it has seen, so that the sender has sent all that it
    acknowledges even in slow start. What a sender repeats shows that it does not believe in the
    lead, so that gets a true answer.
    """

    pause_s = 0.0

    def __init__(self, ahead_packets):
        self.ahead_packets, self.packets = round(ahead_packets), 0
        self.received = self.high = self.lead = 0

    def take(self, start, end):
        """A segment with these bytes has arrived."""
        is_new = end > self.high
        if is_new:
            self.received += end - max(start, self.high)
            self.high = end
            self.packets += 1
        lead = min(self.ahead_packets, self.packets // 2)
        self.lead = lead * (end - start) if is_new else 0

    def answer(self):
        """The number to acknowledge, and ranges for SACK."""
        return self.high + self.lead, []


class Withholding:
    """Acknowledges what has arrived, with SACK, but only every so often."""

    def __init__(self, every_ms):
        self.pause_s, self.received = every_ms / 1e3, 0
        self.ranges = [(0, 0)]  # apart, in order; the first holds all before the first gap

    def take(self, start, end):
        """A segment with these bytes has arrived."""
        apart = [one for one in self.ranges if one[1] < start or one[0] > end]
        touched = [one for one in self.ranges if not (one[1] < start or one[0] > end)]
        before = sum(last - first for first, last in self.ranges)
        merged = (min([start, *(a for a, _ in touched)]), max([end, *(b for _, b in touched)]))
        self.ranges = sorted([*apart, merged])
        self.received += sum(last - first for first, last in self.ranges) - before

    def answer(self):
        """The number to acknowledge, and ranges for SACK: the last ones, the highest first."""
        (_, acknowledged), *others = self.ranges
        return acknowledged, others[: -MOST_SACKS - 1 : -1]


KINDS = {"optimistic": Optimistic, "withholds": Withholding}


class Receiver:
    """The connection of one sender."""

    def __init__(self, link, address, policy, window, rows):
        self.link, self.policy, self.rows = link, policy, rows
        self.ip, self.port = address
        self.shift = max(0, (window // MOST_WINDOW_FIELD).bit_length())
        self.window = window >> self.shift
        self.first = None
        """The sender's first sequence number; None before its SYN."""
        self.due_s, self.ends, self.next_row_ns = None, False, 0

    def hear(self, frame):
        """Take a frame, which may be for someone else."""
        seen = Ether(frame)
        if TCP not in seen or (seen[IP].dst, seen[TCP].dport) != (self.ip, self.port):
            return
        if seen[TCP].flags.S:
            self.open(seen)
        elif self.first is not None and not seen[TCP].flags.R:
            self.take(seen)

    def open(self, seen):
        """Answer a SYN."""
        self.first, self.peer = (seen[TCP].seq + 1) % WORD, seen
        self.opened_s = time.monotonic()
        options = [("MSS", MSS), ("SAckOK", b""), ("NOP", None), ("WScale", self.shift)]
        field = min(self.window << self.shift, MOST_WINDOW_FIELD)  # of a SYN it is not scaled
        self.send("SA", FIRST - 1, self.first, field, options)

    def take(self, seen):
        """Take a segment with data or a FIN; acknowledge it now, or when the pause is over."""
        segment, size = seen[TCP], seen[IP].len - 4 * (seen[IP].ihl + seen[TCP].dataofs)
        if not size and not segment.flags.F:
            return
        start = self.offset(segment.seq)
        self.policy.take(start, start + size)
        self.ends = self.ends or bool(segment.flags.F)
        self.write_row()
        if not self.policy.pause_s or segment.flags.F:
            self.acknowledge()
        elif self.due_s is None:
            pauses = (time.monotonic() - self.opened_s) // self.policy.pause_s
            self.due_s = self.opened_s + (pauses + 1) * self.policy.pause_s

    def offset(self, number):
        """Bytes of the stream before a sequence number near what has arrived."""
        near = self.policy.answer()[0]
        return near + (number - self.first - near + WORD // 2) % WORD - WORD // 2

    def acknowledge(self):
        """Acknowledge as the policy likes it; with our FIN after the sender's."""
        self.due_s = None
        number, ranges = self.policy.answer()
        edges = [(self.first + edge) % WORD for one in ranges for edge in one]
        options = [("NOP", None), ("NOP", None), ("SAck", tuple(edges))] if edges else []
        number = (self.first + number + self.ends) % WORD
        self.send("FA" if self.ends else "A", FIRST, number, self.window, options)

    def send(self, flags, seq, ack, window, options):
        """Send a segment without data back the way that the SYN came."""
        words = {"sport": self.port, "dport": self.peer[TCP].sport, "options": options}
        segment = TCP(flags=flags, seq=seq, ack=ack, window=window, **words)
        packet = IP(src=self.ip, dst=self.peer[IP].src, id=0, flags="DF") / segment
        self.link.send(bytes(Ether(src=self.peer.dst, dst=self.peer.src) / packet))

    def write_row(self, *, last=False):
        """Write how many bytes have arrived, ten times a second."""
        now = time.time_ns()
        if now >= self.next_row_ns or last:
            self.rows.write(f"{now},{self.policy.received}\n")
            self.next_row_ns = now + ROW_NS

    def run(self):
        """Receive until a signal ends the program."""
        while True:
            wait_s = None if self.due_s is None else max(0.0, self.due_s - time.monotonic())
            if select.select([self.link], [], [], wait_s)[0]:
                self.hear(self.link.recv(65536))
            if self.due_s is not None and time.monotonic() >= self.due_s:
                self.acknowledge()


def port_with(ip):
    """The name of the port with this address; a kernel may have tunnels before it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, port in socket.if_nameindex():
            with contextlib.suppress(OSError):  # of a port without an address
                found = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("40s", port.encode()))
                if found[20:24] == socket.inet_aton(ip):
                    return port
    raise SystemExit(f"no port has the address {ip}")


def open_link(port):
    """A socket for the frames of a port; takes the address from the kernel."""
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
    link.bind((port, ETH_P_IP))
    nobody = struct.pack("16sH14x", port.encode(), socket.AF_INET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFADDR, nobody)
    return link


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(prog="crafted.receiver", allow_abbrev=False)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("number", type=float)
    args = parser.parse_args()
    ip, _, port = args.listen.rpartition(":")
    policy, window = KINDS[args.kind](args.number), int(os.environ["QBKIT_WINDOW_BYTES"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(f"{args.out}/receiver.csv", "w") as rows, contextlib.ExitStack() as end:
        rows.write("time_ns,bytes\n")
        receiver = Receiver(open_link(port_with(ip)), (ip, int(port)), policy, window, rows)
        end.callback(receiver.write_row, last=True)
        print("ready", flush=True)
        receiver.run()


if __name__ == "__main__":
    main()
