"""What captures and logs come in: compression, link types, blocks and interfaces of pcapng."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest
import zstandard
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap
from test_readers_capture import TRANSFER, frames, write

import qbkit as qb
from qbkit.errors import StoreError, TraceError
from qbkit.traces.logs.records import segments
from qbkit.traces.run.pcap import read_packets

COMPRESSORS = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".pcap": gzip.compress,  # the name does not say so
}


def compressed(path: Path, ending: str) -> Path:
    found = path.with_name(f"compressed{ending}")
    found.write_bytes(COMPRESSORS[ending](path.read_bytes()))
    return found


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_compressed_capture_is_the_same(tmp_path, ending):
    plain = write(tmp_path, TRANSFER)
    packed = compressed(plain, ending)
    one, two = qb.read_capture(plain), qb.read_capture(packed)
    assert one.drop_attrs().equals(two.drop_attrs())
    assert np.array_equal(read_packets(plain).key, read_packets(packed).key)


def test_a_capture_compressed_twice_is_the_same(tmp_path):
    plain = write(tmp_path, TRANSFER)
    packed = compressed(compressed(plain, ".zst"), ".gz")
    assert len(read_packets(packed)) == len(TRANSFER)
    assert qb.read_log(packed).drop_attrs().equals(qb.read_capture(plain).drop_attrs())


def test_what_decompresses_to_more_of_the_same_ends(tmp_path):
    content = b"no capture"
    for _ in range(20):
        content = gzip.compress(content)
    (tmp_path / "x.pcap.gz").write_bytes(content)
    with pytest.raises(TraceError, match="is no capture: neither pcap nor pcapng"):
        qb.read_capture(tmp_path / "x.pcap.gz")


def with_headers(path: Path, link: int, header: bytes) -> Path:
    """The transfer as a capture of a link type, with this header before each IP packet."""
    records = [struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for frame in frames(TRANSFER):
        packet = header + bytes(frame[IP])
        seconds, micros = divmod(round(float(frame.time) * 1e6), 10**6)
        records.append(struct.pack("<4I", seconds, micros, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(records))
    return path


@pytest.mark.parametrize(
    ("link", "tags"),
    [(1, (0x8100,)), (1, (0x88A8, 0x8100)), (1, (0x9100, 0x8100)), (113, (0x8100,)), (113, ())],
)
def test_vlan_tags_before_an_ip_packet(tmp_path, link, tags):
    between = bytes(12 if link == 1 else 14) + b"".join(struct.pack(">HH", t, 42) for t in tags)
    path = with_headers(tmp_path / "x.pcap", link, between + struct.pack(">H", 0x0800))
    plain = write(tmp_path, TRANSFER, "ethernet.pcap")
    assert qb.read_capture(path).drop_attrs().equals(qb.read_capture(plain).drop_attrs())
    ours, expected = read_packets(path), read_packets(plain)
    for name in ("key", "frame_bytes", "time_ns"):
        assert np.array_equal(getattr(ours, name), getattr(expected, name))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz"])
def test_a_compressed_capture_that_is_cut_off_gives_what_comes_before(tmp_path, ending):
    many = [(t / 100, *rest) for t, (_, *rest) in enumerate(TRANSFER * 200)]
    packed = compressed(write(tmp_path, many), ending)
    content = packed.read_bytes()
    packed.write_bytes(content[: len(content) - 20])
    with pytest.warns(UserWarning, match="damaged or cut off"):
        packets = read_packets(packed)
    assert len(packets) <= len(many)
    assert "damaged or cut off" in qb.read_capture(packed).attrs["warnings"] or not len(packets)


@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz", ".bz2"])
def test_what_surrounds_the_content_of_a_compressed_capture(tmp_path, ending):
    """Several members are one content; what follows them is damage, but loses nothing."""
    content = write(tmp_path, TRANSFER).read_bytes()
    halves = [COMPRESSORS[ending](part) for part in (content[:500], content[500:])]
    path = tmp_path / f"x{ending}"
    path.write_bytes(b"".join(halves))
    assert len(read_packets(path)) == len(TRANSFER)
    path.write_bytes(b"".join(halves) + bytes(600))
    assert len(read_packets(path)) == len(TRANSFER)
    path.write_bytes(b"".join(halves) + b"and more that is none of it")
    with pytest.warns(UserWarning, match=f"damaged or cut off after byte {len(content)}"):
        assert len(read_packets(path)) == len(TRANSFER)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_compressed_capture_without_its_last_bytes_keeps_its_packets(tmp_path, ending):
    """The trailer is cut off (gzip), or the frame's end (Zstandard): all content is there."""
    content = write(tmp_path, TRANSFER).read_bytes()
    if ending == ".gz":
        packed = gzip.compress(content)[:-8]
    else:
        stream = zstandard.ZstdCompressor().compressobj()
        packed = stream.compress(content)
        packed += stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    path = tmp_path / f"x{ending}"
    path.write_bytes(packed)
    with pytest.warns(UserWarning, match=f"damaged or cut off after byte {len(content)}"):
        assert len(read_packets(path)) == len(TRANSFER)
    assert "damaged or cut off" in qb.read_capture(path).warnings


LOG = {
    "qlog_version": "0.3",
    "traces": [
        {
            "vantage_point": {"type": "client"},
            "common_fields": {"time_format": "absolute"},
            "events": [
                {
                    "time": 1.0,
                    "name": "transport:packet_sent",
                    "data": {
                        "header": {"packet_type": "1RTT", "packet_number": 0},
                        "raw": {"length": 1200},
                    },
                }
            ],
        }
    ],
}


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_compressed_log_is_the_same(tmp_path, ending):
    plain = tmp_path / "log.qlog"
    plain.write_text(json.dumps(LOG))
    assert qb.read_qlog(compressed(plain, ending)).sizes["sent"] == 1


@pytest.mark.parametrize(
    ("link", "header"),
    [
        (0, struct.pack("<I", 2)),
        (0, struct.pack(">I", 2)),
        (108, struct.pack(">I", 2)),
        (12, b""),
        (101, b""),
        (228, b""),
    ],
)
def test_link_types_before_a_bare_ip_packet(tmp_path, link, header):
    path = with_headers(tmp_path / "x.pcap", link, header)
    expected = qb.read_capture(write(tmp_path, TRANSFER, "ethernet.pcap"))
    assert np.array_equal(qb.read_capture(path).sent_size_bytes, expected.sent_size_bytes)
    assert len(read_packets(path)) == len(TRANSFER)


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
ETHERNET, UNREADABLE = (block(1, struct.pack("<HHI", link, 0, 65535)) for link in (1, 105))


def enhanced(interface: int, time_us: int, frame: bytes) -> bytes:
    high, low = divmod(time_us, 1 << 32)
    head = struct.pack("<5I", interface, high, low, len(frame), len(frame))
    return block(6, head + frame)


def obsolete(interface: int, time_us: int, frame: bytes) -> bytes:
    high, low = divmod(time_us, 1 << 32)
    head = struct.pack("<HH4I", interface, 7, high, low, len(frame), len(frame))
    return block(2, head + frame)


def simple(frame: bytes) -> bytes:
    return block(3, struct.pack("<I", len(frame)) + frame)


def of_pcapng(path: Path, how) -> Path:
    made = [(round(float(frame.time) * 1e6), bytes(frame)) for frame in frames(TRANSFER)]
    path.write_bytes(SECTION + how(made))
    return path


def test_an_interface_that_cannot_be_read_is_named(tmp_path):
    path = of_pcapng(
        tmp_path / "x.pcapng",
        lambda made: UNREADABLE + ETHERNET + b"".join(
            enhanced(0, t, frame) + enhanced(1, t, frame) for t, frame in made
        ),
    )  # fmt: skip
    ds = qb.read_capture(path)
    assert ds.sizes["sent"] == 6
    (warning,) = json.loads(ds.attrs["warnings"])
    count = len(TRANSFER)
    assert (
        f"interface 0, whose link type 105 cannot be read, which are left out: {count}" in warning
    )
    with pytest.warns(UserWarning, match=f"left out: {count}"):
        assert len(read_packets(path)) == count
    alone = of_pcapng(
        tmp_path / "y.pcapng",
        lambda made: UNREADABLE + b"".join(enhanced(0, t, frame) for t, frame in made),
    )
    with pytest.raises(TraceError, match="link type 105"):
        qb.read_capture(alone)
    with pytest.raises(StoreError, match="link type 105"):
        read_packets(alone)


def test_an_interface_that_cannot_be_read_is_named_even_without_packets(tmp_path):
    path = of_pcapng(
        tmp_path / "x.pcapng",
        lambda made: ETHERNET + UNREADABLE + b"".join(enhanced(0, *one) for one in made),
    )
    assert "interface 1, whose link type 105 cannot be read" in qb.read_capture(path).warnings
    with pytest.warns(UserWarning, match="left out: 0"):
        assert len(read_packets(path)) == len(TRANSFER)


def test_times_of_an_interface_count_from_its_offset(tmp_path):
    """Two interfaces, one in ms from 1,000 s before the capture, in the same file."""
    offset_s, origin_us = 1_799_999_000, 1_799_999_000 * 10**6
    options = struct.pack("<HHB3xHHqHH", 9, 1, 3, 14, 8, offset_s, 0, 0)
    shifted = block(1, struct.pack("<HHI", 1, 0, 65535) + options)
    path = of_pcapng(
        tmp_path / "x.pcapng",
        lambda made: ETHERNET + shifted + b"".join(
            enhanced(1, (t - origin_us) // 1000, frame) if i % 2 else enhanced(0, t, frame)
            for i, (t, frame) in enumerate(made)
        ),
    )  # fmt: skip
    plain = write(tmp_path, TRANSFER)
    assert np.array_equal(read_packets(path).time_ns, read_packets(plain).time_ns)
    ours, expected = qb.read_capture(path), qb.read_capture(plain)
    assert np.array_equal(ours.sent_time_s, expected.sent_time_s)


def test_packets_left_out_are_numbered_too(tmp_path):
    """tshark counts them, and we look up its frames by number."""
    path = of_pcapng(
        tmp_path / "x.pcapng",
        lambda made: UNREADABLE + ETHERNET + simple(made[0][1]) + enhanced(0, *made[0])
        + b"".join(enhanced(1, *one) for one in made),
    )  # fmt: skip
    with path.open("rb") as file:
        found = segments(file, path.name, pytest.fail, lambda *_: None)
        assert [s.number for s in found] == [3 + i for i in range(len(TRANSFER))]


def test_obsolete_packet_blocks_are_read_and_simple_ones_named(tmp_path):
    path = of_pcapng(
        tmp_path / "x.pcapng",
        lambda made: ETHERNET + simple(made[0][1]) + b"".join(obsolete(0, *one) for one in made),
    )
    ds = qb.read_capture(path)
    assert ds.sizes["sent"] == 6
    assert "packets without a time (simple packet blocks), which are left out: 1" in ds.warnings


@pytest.mark.parametrize("copies", [0, 1, 2])
def test_imported_captures_of_a_bridge_have_each_packet_once(tmp_path, copies):
    """100 packets of 1,000 bytes in 0.99 s, 10 of which the queue drops."""

    def frame(number: int, time_s: float):
        made = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=4433)
        made = made / (number.to_bytes(4) * 250)
        made.time = 1_800_000_000 + time_s
        return made

    sides = {"in": [], "out": []}
    for number in range(100):
        for copy in range(1 + copies):
            time_s = number / 100 + copy * 1e-5
            sides["in"].append(frame(number, time_s))
            if number % 10 != 5:
                sides["out"].append(frame(number, time_s + 0.004))
    for side, made in sides.items():
        wrpcap(str(tmp_path / side), made)
    run = qb.read_pcaps(tmp_path / "in", tmp_path / "out", flows={4433: "a"}, rtt_ms=20)
    assert run.sizes["packet"] == 100
    assert int(np.isnan(run.packet_departure_s.values).sum()) == 10
    text = json.loads(run.attrs["warnings"])
    of = "copies of frames (of a bridge, or of several places), which are left out"
    expected = [f"in holds {100 * copies} {of}", f"out holds {90 * copies} {of}"]
    assert [t for t in text if "copies" in t] == (expected if copies else [])


def test_an_empty_file_is_one_sentence(tmp_path):
    (tmp_path / "empty.pcap").touch()
    with pytest.raises(TraceError, match=r"empty\.pcap is empty; give a capture or a log"):
        qb.read_log(tmp_path / "empty.pcap")
