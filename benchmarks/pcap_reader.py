"""Packets per processor second of pcap readers: qbkit's, a struct loop, scapy, tshark.

    python benchmarks/pcap_reader.py [FILE.pcap] [--packets 300000] [--json] [--write]

Without a file, one is generated: TCP with time stamps and QUIC-like UDP in both directions, cut
at 128 bytes as in qbkit's own captures. All of it runs pinned to one processor; each Python
reader is the best of three. All take addresses, ports and sizes out of each packet. The table is
``pcap_reader``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from markdown_tables import add_write, record

from qbkit.traces.run.pcap import read_packets

KEYS = ["reader"]
SCAPY = "scapy RawPcapReader (headers not dissected)"
SNAPLEN = 128
FIELDS = ("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "tcp.srcport", "udp.srcport")
TSHARK = f"tshark -T fields, {len(FIELDS)} fields"


def generate(path: Path, packets: int) -> None:
    """Frames of four kinds in a random order, with random numbers and payload."""
    rng = np.random.default_rng(1)
    kinds = [_template(6, 1514, False), _template(17, 1294, False), _template(6, 66, True)]
    kinds.append(_template(17, 75, True))
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 1))
        random, ns = rng.bytes(packets * SNAPLEN), 1_700_000_000 * 10**9
        for i, kind in enumerate(rng.choice(4, packets, p=[0.35, 0.35, 0.15, 0.15]).tolist()):
            head, frame_bytes = kinds[kind]
            captured = min(frame_bytes, SNAPLEN)
            ns += 300_000
            file.write(struct.pack("<4I", ns // 10**9, ns % 10**9, captured, frame_bytes))
            noise = random[i * SNAPLEN : i * SNAPLEN + captured - len(head)]
            file.write(head + noise)


def _template(protocol: int, frame_bytes: int, reverse: bool) -> tuple[bytes, int]:
    """Ethernet and IPv4 header and ports of one kind of frame; what follows is random."""
    sender, receiver = bytes([10, 1, 0, 1]), bytes([10, 2, 0, 1])
    ports = (40_000, 4001 if protocol == 6 else 4002)
    if reverse:
        sender, receiver, ports = receiver, sender, ports[::-1]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, frame_bytes - 14, 1, 0x4000, 64, protocol, 0)
    return bytes(12) + b"\x08\x00" + ip + sender + receiver + struct.pack(
        ">HH", *ports
    ), frame_bytes


def by_qbkit(path: Path) -> int:
    return len(read_packets(path))


def by_struct(path: Path) -> int:
    """The plain loop one writes first: the same fields, without a key."""
    data, at, found = path.read_bytes(), 24, []
    record, ports = struct.Struct("<4I"), struct.Struct(">HH")
    while at + 16 <= len(data):
        seconds, fraction, captured, frame_bytes = record.unpack_from(data, at)
        ip = at + 30
        header = (data[ip] & 15) * 4
        source, destination = data[ip + 12 : ip + 16], data[ip + 16 : ip + 20]
        pair = ports.unpack_from(data, ip + header)
        found.append((seconds * 10**9 + fraction, frame_bytes, source, destination, *pair))
        at += 16 + captured
    return len(found)


def by_scapy(path: Path) -> int:
    """scapy's raw reader: records alone, nothing dissected."""
    from scapy.utils import RawPcapReader

    return sum(1 for _ in RawPcapReader(str(path)))


def by_tshark(path: Path) -> int:
    fields = [word for name in FIELDS for word in ("-e", name)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *fields]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.count(b"\n")


def rate(reader: Callable[[Path], int], path: Path, repeats: int) -> float:
    """Packets per processor second, children included."""
    best = 0.0
    for _ in range(repeats):
        started = _cpu_s()
        packets = reader(path)
        best = max(best, packets / (_cpu_s() - started))
    return best


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(path: Path) -> dict[str, float | None]:
    """Packets per processor second of each reader; None for one that is not installed."""
    readers = {"qbkit": by_qbkit, "a plain struct loop": by_struct, SCAPY: by_scapy}
    figures: dict[str, float | None] = {n: rate(r, path, 3) for n, r in readers.items()}
    figures[TSHARK] = rate(by_tshark, path, 1) if shutil.which("tshark") else None
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--packets", type=int, default=300_000)
    parser.add_argument("--json", action="store_true")
    add_write(parser)
    words = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        path = words.file or Path(folder) / "frames.pcap"
        if words.file is None:
            generate(path, words.packets)
        figures = measure(path)
    if words.json:
        print(json.dumps({name: value and round(value) for name, value in figures.items()}))
        return
    record("pcap_reader", rows(figures), KEYS, words.write)


def rows(figures: dict[str, float | None]) -> Iterator[dict[str, object]]:
    """A row for each reader that is installed; rates to three digits, as they are not exact."""
    ours = figures["qbkit"]
    assert ours is not None
    for name, value in figures.items():
        if value:
            yield {
                "reader": name,
                "packets per processor second": f"{float(f'{value:.3g}'):,.0f}",
                "qbkit is faster by": "" if name == "qbkit" else f"{ours / value:.2g}",
            }


if __name__ == "__main__":
    main()
