"""Captures of one connection: TCP made by hand, QUIC of real peers with real keys."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import quic_pair
from aioquic.quic.packet import QuicProtocolVersion
from quic_pair import CLIENT, SERVER, Seen, upload
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapWriter, rdpcap, wrpcap, wrpcapng

import qbkit as qb
from qbkit.errors import TraceError
from qbkit.traces.logs import quic_capture, tshark
from qbkit.traces.logs.records import Conversation, Segment, segments
from qbkit.traces.logs.tcp import parse
from qbkit.traces.run.pcap import read_packets

A, B = ("10.1.0.1", 40000), ("10.2.0.1", 4001)
ISN, PEER_ISN = (1 << 32) - 3000, 77
"""Sequence numbers wrap after the second segment."""
SYN_OPTIONS = [("MSS", 1012), ("SAckOK", b""), ("Timestamp", (1, 0)), ("WScale", 7)]
T0 = 1_800_000_000.0


def data(time_s: float, offset: int, count: int, stamp: int) -> tuple:
    options = [("NOP", None), ("NOP", None), ("Timestamp", (stamp, 5))]
    sequence = (ISN + 1 + offset) % 2**32
    header = TCP(sport=A[1], dport=B[1], seq=sequence, ack=PEER_ISN + 1, flags="A",
                 options=options)  # fmt: skip
    return time_s, A, B, header / bytes(count)


def ack(time_s: float, upto: int, echo: int, *blocks: tuple[int, int]) -> tuple:
    options: list = [("NOP", None), ("NOP", None), ("Timestamp", (9, echo))]
    if blocks:
        edges = [(ISN + 1 + edge) % 2**32 for block in blocks for edge in block]
        options += [("NOP", None), ("NOP", None), ("SAck", tuple(edges))]
    header = TCP(sport=B[1], dport=A[1], seq=PEER_ISN + 1, ack=(ISN + 1 + upto) % 2**32,
                 flags="A", window=100, options=options)  # fmt: skip
    return time_s, B, A, header


def syns() -> list[tuple]:
    return [
        (0.0, A, B, TCP(sport=A[1], dport=B[1], seq=ISN, flags="S", options=SYN_OPTIONS)),
        (0.02, B, A, TCP(sport=B[1], dport=A[1], seq=PEER_ISN, ack=ISN + 1, flags="SA",
                         options=SYN_OPTIONS)),
    ]  # fmt: skip


def frames(packets: Iterable[tuple]) -> list:
    made = []
    for time_s, source, destination, transport in packets:
        frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        frame = frame / IP(src=source[0], dst=destination[0]) / transport
        frame.time = T0 + time_s
        made.append(frame)
    return made


TRANSFER = [
    *syns(),
    *(data(0.05 + i / 1000, 1000 * i, 1000, 50 + i) for i in range(5)),
    ack(0.09, 1000, 50),  # RTT 40 ms
    ack(0.095, 1000, 50, (2000, 3000)),
    ack(0.096, 1000, 50, (2000, 4000)),
    data(0.1, 1000, 1000, 100),  # 1000-1999 was lost, it seems
    ack(0.11, 5000, 100),  # RTT 10 ms, of the second transmission
    ack(0.12, 5000, 100, (1000, 2000)),  # and it had come: DSACK
]


def write(folder: Path, packets: Iterable[tuple], name: str = "tcp.pcap") -> Path:
    path = folder / name
    (wrpcapng if name.endswith("ng") else wrpcap)(str(path), frames(packets))
    return path


@pytest.mark.parametrize("name", ["tcp.pcap", "tcp.pcapng"])
def test_tcp_with_a_spurious_retransmission(tmp_path, name):
    ds = qb.read_capture(write(tmp_path, TRANSFER, name))
    assert json.loads(ds.attrs["warnings"]) == []
    assert ds.attrs["title"] == "tcp 10.1.0.1:40000 to 10.2.0.1:4001 (13 packets)"
    assert ds.sent_number.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert ds.sent_offset_bytes.values.tolist() == [0, 1000, 2000, 3000, 4000, 1000]
    assert ds.sent_time_s.values == pytest.approx([0.05, 0.051, 0.052, 0.053, 0.054, 0.1])
    assert set(ds.sent_size_bytes.values) == {1032}
    assert ds.lost_number.values.tolist() == [1]
    assert ds.lost_trigger.values.tolist() == ["retransmitted"]
    assert ds.lost_spurious.values.tolist() == [True]
    # The first, two by SACK, the second transmission, the last; never the lost one.
    assert ds.acked_number.values.tolist() == [0, 2, 3, 5, 4]
    assert ds.acked_time_s.values == pytest.approx([0.09, 0.095, 0.096, 0.11, 0.11])
    rtt = ds.latest_rtt_ms.values
    assert rtt == pytest.approx([40, 40, 40, 10, 10])
    assert ds.srtt_ms.values[-1] == pytest.approx(40 * 7 / 8 + 10 / 8)
    assert ds.min_rtt_ms.values[-1] == pytest.approx(10)
    assert ds.bytes_in_flight.values.tolist() == [4000, 3000, 2000, 0, 0]
    assert set(ds.receive_window_bytes.values) == {100 << 7}
    assert ds.handshake_frames.values[:3].tolist() == ["SYN", "SYN, ACK", "data 0-999"]
    assert ds.handshake_direction.values[:2].tolist() == ["sent", "received"]


def test_tcp_out_of_order_in_the_file_and_from_the_other_side(tmp_path):
    shuffled = [TRANSFER[i] for i in (5, 6, 7, 0, 1, 12, 11, 2, 3, 4, 8, 9, 10)]
    one, other = (qb.read_capture(write(tmp_path, p)) for p in (TRANSFER, shuffled))
    for name in ("sent_time_s", "acked_number", "lost_number", "latest_rtt_ms"):
        assert np.array_equal(one[name], other[name])
    back = qb.read_capture(write(tmp_path, TRANSFER), sender="10.2.0.1")
    assert back.sizes["sent"] == 0
    assert back.sizes["received"] == 6
    with pytest.raises(TraceError, match=r"10\.9\.9\.9 is neither end of tcp 10\.1\.0\.1:40000"):
        qb.read_capture(write(tmp_path, TRANSFER), sender="10.9.9.9")


def test_tcp_segments_of_an_offloading_host_are_split_at_the_mss(tmp_path):
    packets = [*syns(), data(0.05, 0, 3500, 50), ack(0.09, 3500, 50)]
    ds = qb.read_capture(write(tmp_path, packets))
    assert ds.sent_offset_bytes.values.tolist() == [0, 1000, 2000, 3000]
    assert ds.sent_size_bytes.values.tolist() == [1032, 1032, 1032, 532]
    assert ds.sizes["acked"] == 4
    assert "1 segments are larger than the peer's MSS" in ds.attrs["warnings"]


def bare(
    time_s: float, source: tuple, flags: str, seq: int, ack: int, count: int = 0, **more
) -> tuple:
    """A segment without time stamps."""
    peer = B if source == A else A
    header = TCP(sport=source[1], dport=peer[1], seq=seq, ack=ack, flags=flags, **more)
    return time_s, source, peer, header / bytes(count)


def bare_transfer(own_mss: int, peer_mss: int, sizes: Iterable[int]) -> list[tuple]:
    """A handshake in which nobody offers time stamps, then segments that are acknowledged."""
    packets = [
        bare(0.0, A, "S", 0, 0, options=[("MSS", own_mss), ("Timestamp", (1, 0))]),
        bare(0.02, B, "SA", 500, 1, options=[("MSS", peer_mss)]),
    ]
    at, time_s = 1, 0.03
    for size in sizes:
        packets += [
            bare(time_s, A, "A", at, 501, size),
            bare(time_s + 0.02, B, "A", 501, at + size),
        ]
        at, time_s = at + size, time_s + 0.001
    return packets


@pytest.mark.parametrize(
    ("own_mss", "peer_mss", "size", "parts"),
    [
        (1400, 1460, 1460, [1460]),  # the peer's limit, although A itself takes less
        (1400, 1460, 1461, [1460, 1]),
        (1460, 1000, 2500, [1000, 1000, 500]),
    ],
)
def test_the_limit_of_a_segment_is_its_peers_mss(tmp_path, own_mss, peer_mss, size, parts):
    ds = qb.read_capture(write(tmp_path, bare_transfer(own_mss, peer_mss, [size])), sender=A[0])
    assert ds.sent_size_bytes.values.tolist() == [20 + part for part in parts]
    assert ("offload" in ds.attrs["warnings"]) is (len(parts) > 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "captured", "parts"),
    [
        (4, None, [536, 536, 388]),  # RFC 9293, 3.7.1
        (6, None, [1220, 240]),
        (4, 54, [1460]),  # the snaplen cuts the options off, so nobody knows
    ],
)
def test_the_limit_of_a_peer_that_announces_none(tmp_path, version, captured, parts):
    made = []
    for time_s, source, _, transport in bare_transfer(1460, 1460, [1460]):
        if captured is None and transport.flags.S:
            transport.options = [("SAckOK", b"")]
        ends = ("2001:db8::1", "2001:db8::2") if version == 6 else (A[0], B[0])
        if source == B:
            ends = ends[::-1]
        network = IPv6(src=ends[0], dst=ends[1]) if version == 6 else IP(src=ends[0], dst=ends[1])
        frame = Ether() / network / transport
        frame.time = T0 + time_s
        made.append(frame)
    path = tmp_path / "x.pcap"
    with RawPcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for frame in made:
            content = bytes(frame)
            writer.write_packet(
                content[:captured], sec=frame.time, caplen=captured, wirelen=len(content)
            )
    ds = qb.read_capture(path)
    assert ds.sent_size_bytes.values.tolist() == [20 + part for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize("version", [4, 6])
def test_duplicate_acks_of_one_ms_are_no_copies(tmp_path, version):
    """Without SACK blocks and IP identifications, they are equal byte for byte."""
    again = [ack(0.09 + i * 1e-4, 1000, 50) for i in range(4)]
    made = []
    for frame in frames([*TRANSFER[:7], *again]):
        frame[IP].id = 0
        if version == 6:
            ends = ("2001:db8::1", "2001:db8::2")
            ends = ends if frame[IP].src == A[0] else ends[::-1]
            six = Ether() / IPv6(src=ends[0], dst=ends[1]) / frame[TCP]
            del six[TCP].chksum
            six.time, frame = frame.time, six
        made.append(frame)
    path = tmp_path / "x.pcap"
    wrpcap(str(path), made)
    ds = qb.read_capture(path)
    assert "copies" not in ds.attrs["warnings"]
    assert ds.sizes["received"] == len(again)


@pytest.mark.slow
@pytest.mark.parametrize(("times", "later_s"), [(1, 1e-5), (1, 0.3), (2, 1e-5), (2, 0.3)])
@pytest.mark.parametrize("stamps", [True, False])
def test_frames_captured_several_times_count_once(tmp_path, times, later_s, stamps):
    once = TRANSFER if stamps else bare_transfer(1460, 1000, [1000] * 5)
    made = frames(once)
    for number, frame in enumerate(made):
        frame[IP].id = number + 1
    copies = [frame.copy() for frame in made * times]
    for number, copy in enumerate(copies):
        hop = 1 + number // len(made)
        copy.time, copy[IP].ttl = copy.time + hop * later_s, 64 - hop
        del copy[IP].chksum
    path, twice = tmp_path / "once.pcap", tmp_path / "twice.pcap"
    wrpcap(str(path), made)
    wrpcap(str(twice), sorted([*made, *copies], key=lambda frame: frame.time))
    one, two = qb.read_capture(path), qb.read_capture(twice)
    for name in ("sent_time_s", "sent_number", "acked_number", "lost_number", "latest_rtt_ms"):
        assert np.array_equal(one[name], two[name])
    assert f"holds {times * len(made)} copies of frames" in two.attrs["warnings"]
    assert "copies" not in one.attrs["warnings"]


GSO = [n * 1448 for n in (10, 2, 7, 3, 10, 1, 5)]
JUMBO = 8948


@pytest.mark.parametrize(
    ("sizes", "size", "sent", "said"),
    [
        (GSO, 1448, 38, "6 segments are larger than the peer's MSS (1460 B, as the sizes suggest)"),
        ([*GSO, 1448 * 4 + 100], 1448, 43, "7 segments are larger"),
        ([2896] * 9 + [1448], 1448, 19, "9 segments are larger"),
        ([n * 1368 for n in (4, 9, 6)], 1368, 19, "3 segments are larger"),
        ([JUMBO] * 9, JUMBO, 9, ""),
        ([JUMBO * n for n in (1, 2, 3, 7)], JUMBO, 13, "3 segments are larger"),
        ([JUMBO] * 9 + [1448], JUMBO, 10, ""),
        ([1448] * 9, 1448, 9, ""),
        ([2011, 3023, 5099, 20011], None, 4, "4 segments have more than 1460 B of data"),
    ],
)
def test_segments_of_offload_without_a_handshake(tmp_path, sizes, size, sent, said):
    at, packets = 0, []
    for number, count in enumerate(sizes):
        packets.append(data(0.05 + number / 100, at, count, 50))
        packets.append(ack(0.06 + number / 100, at := at + count, 50))
    ds = qb.read_capture(write(tmp_path, packets), sender=A[0])
    assert ds.sizes["sent"] == ds.sizes["acked"] == sent
    assert ds.sizes["lost"] == 0
    if size:
        assert int(ds.sent_size_bytes.max()) == size + 32
    assert int(ds.sent_size_bytes.sum()) == sum(sizes) + 32 * sent
    warnings = [w for w in json.loads(ds.attrs["warnings"]) if "began before" not in w]
    assert len(warnings) == bool(said)
    assert said in "".join(warnings)


@pytest.mark.parametrize("known", [True, False])
def test_probes_of_a_closed_window_and_keep_alives_are_no_data(tmp_path, known):
    """BSD and Windows send a byte beyond the window, Linux none; one peer accepts the last one."""
    packets = bare_transfer(1460, 1000, [1000] * 3)
    packets += [
        bare(0.1, B, "A", 501, 3001, window=0),
        *(bare(0.2 * 2**i, A, "A", 3001, 501, 1) for i in range(3)),
        *(bare(0.2 * 2**i + 0.02, B, "A", 501, 3001, window=0) for i in range(2)),
        bare(0.82, B, "A", 501, 3002, window=0),
        bare(0.9, A, "A", 3001, 501),
        bare(0.92, B, "A", 501, 3002, window=500),
        bare(1.0, A, "A", 3002, 501, 1000),
        bare(1.02, B, "A", 501, 4002, window=500),
        bare(60.0, A, "A", 4001, 501, 1),
        bare(60.02, B, "A", 501, 4002, window=500),
        bare(120.0, A, "A", 4001, 501),
    ]
    ds = qb.read_capture(write(tmp_path, packets if known else packets[2:]), sender=A[0])
    assert ds.sizes["lost"] == 0
    assert ds.sent_size_bytes.values.tolist() == [1020] * 4
    assert ds.acked_number.values.tolist() == [0, 1, 2, 3]
    assert int(ds.bytes_in_flight[-1]) == 0


def test_a_byte_sent_again_while_the_window_is_open_was_lost(tmp_path):
    packets = [*bare_transfer(1460, 1000, [1000]), bare(0.1, A, "PA", 1001, 501, 1)]
    packets += [bare(0.4, A, "PA", 1001, 501, 1), bare(0.42, B, "A", 501, 1002)]
    ds = qb.read_capture(write(tmp_path, packets), sender=A[0])
    assert ds.lost_number.values.tolist() == [1]
    assert ds.acked_number.values.tolist() == [0, 2]


def test_data_that_were_acknowledged_but_not_captured_are_missed(tmp_path):
    whole = qb.read_capture(write(tmp_path, TRANSFER))
    assert "not in the capture" not in whole.warnings
    sent = [i for i, (_, source, *_) in enumerate(TRANSFER) if source == A]
    first = next(i for i in sent if len(TRANSFER[i][3].payload) > 0)
    kept = [each for i, each in enumerate(TRANSFER) if i != first]
    found = qb.read_capture(write(tmp_path, kept))
    assert "1000 bytes were acknowledged that are not in the capture" in found.warnings


def test_jumbo_frames_are_whole(tmp_path):
    packets = bare_transfer(8960, 8960, [8960] * 4)
    path = write(tmp_path, packets)
    ds = qb.read_capture(path)
    assert ds.sent_size_bytes.values.tolist() == [8980] * 4
    assert json.loads(ds.attrs["warnings"]) == []
    assert read_packets(path).frame_bytes.max() == 8960 + 40 + 14


def test_sack_blocks_on_data(tmp_path):
    """Both ends send: a full segment with a block carries 12 bytes less, and acknowledges."""

    def sack(*block: int) -> list:
        return [("NOP", None), ("NOP", None), ("SAck", block)]

    packets = [
        *bare_transfer(1460, 1000, []),
        bare(0.03, A, "A", 1, 501, 1000),
        bare(0.031, A, "A", 1001, 501, 1000),  # lost
        bare(0.032, A, "A", 2001, 501, 1000),
        bare(0.05, B, "A", 501, 1001, 988, options=sack(2001, 3001)),
        bare(0.06, A, "A", 1001, 1489, 1000),
        bare(0.08, B, "A", 1489, 3001, 1000),
        bare(0.09, A, "A", 3001, 1489, 988, options=sack(1989, 2489)),
        bare(0.11, B, "A", 2489, 3989),
    ]
    ds = qb.read_capture(write(tmp_path, packets), sender=A[0])
    assert ds.sent_size_bytes.values.tolist() == [1020] * 5
    assert ds.acked_number.values.tolist() == [0, 2, 3, 4]
    assert ds.lost_number.values.tolist() == [1]
    assert json.loads(ds.attrs["warnings"]) == []


def test_data_sent_again_after_their_ack_were_lost_spuriously(tmp_path):
    packets = bare_transfer(1460, 1000, [1000] * 3)
    packets += [bare(0.4, A, "A", 1001, 501, 1000), bare(0.5, A, "A", 1001, 501, 1000)]
    ds = qb.read_capture(write(tmp_path, packets))
    assert ds.acked_number.values.tolist() == [0, 1, 2]
    assert ds.lost_number.values.tolist() == [1, 3]  # and the second transmission, sent once more
    assert ds.lost_time_s.values == pytest.approx([0.4, 0.5])
    assert ds.lost_spurious.all()


def test_tcp_that_began_before_the_capture(tmp_path):
    ds = qb.read_capture(write(tmp_path, TRANSFER[2:]))
    assert ds.sent_offset_bytes.values.tolist() == [0, 1000, 2000, 3000, 4000, 1000]
    assert "receive_window_bytes" not in ds
    assert "began before the capture" in ds.attrs["warnings"]


def test_the_options_are_those_that_scapy_sees(tmp_path):
    path = write(tmp_path, TRANSFER)
    with path.open("rb") as file:
        ours = [parse(s) for s in segments(file, path.name, pytest.fail, pytest.fail)]
    for header, frame in zip(ours, frames(TRANSFER), strict=True):
        theirs = dict(TCP(bytes(frame[TCP])).options)
        assert header.stamps == theirs["Timestamp"]
        assert header.mss == theirs.get("MSS")
        assert header.scale == theirs.get("WScale")
        edges = tuple(edge for block in header.blocks for edge in block)
        assert edges == theirs.get("SAck", ())


def test_the_largest_connection_or_the_one_with_that_port(tmp_path):
    other = [(t, s, ("10.3.0.1", 80), TCP(sport=s[1], dport=80, seq=1, flags="A") / bytes(9))
             for t, s in ((0.1, A), (0.2, A))]  # fmt: skip
    path = write(tmp_path, [*TRANSFER, *other])
    ds = qb.read_capture(path)
    assert "4001" in ds.attrs["title"]
    assert "has 2 connections; this is tcp 10.1.0.1:40000 to 10.2.0.1:4001" in ds.attrs["warnings"]
    assert qb.read_capture(path, port=80).sizes["sent"] == 2
    with pytest.raises(TraceError, match=r"no TCP and no UDP packets with port 81"):
        qb.read_capture(path, port=81)


@pytest.mark.slow
def test_a_capture_cut_off_anywhere(tmp_path):
    path = write(tmp_path, TRANSFER)
    content = path.read_bytes()
    for cut in range(24, len(content), 101):
        path.write_bytes(content[:cut])
        try:
            ds = qb.read_capture(path)
        except TraceError as error:
            assert "no TCP" in str(error)
            continue
        assert ds.sizes["sent"] <= 6
    assert "damaged or cut off at byte" in ds.attrs["warnings"]


def test_what_is_no_capture(tmp_path):
    for content in (b"", b"hello, this is no capture at all", struct.pack("<IHHIIII", 0xA1B2C3D4,
                    2, 4, 0, 0, 65535, 147)):  # fmt: skip
        (tmp_path / "x.pcap").write_bytes(content)
        with pytest.raises(TraceError, match=r"no capture|link type 147"):
            qb.read_capture(tmp_path / "x.pcap")
    with pytest.raises(TraceError, match=r"cannot read .*: No such file"):
        qb.read_capture(tmp_path / "nowhere.pcap")


needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="apt-get install tshark")
LOST = frozenset({30, 31, 60})


@pytest.fixture(scope="module")
def seen() -> Seen:
    return upload(300_000, LOST)


@pytest.mark.slow
@needs_tshark
def test_quic_is_what_the_client_itself_logged(tmp_path, seen):
    path, keys = seen.write(tmp_path)
    ds = qb.read_capture(path, keylog=keys)
    (tmp_path / "own.qlog").write_text(json.dumps(seen.client_qlog))
    own = qb.read_qlog(tmp_path / "own.qlog")
    assert json.loads(ds.attrs["warnings"]) == []
    for name in ("number", "space", "size_bytes"):
        both = ds[f"sent_{name}"].values, own[f"sent_{name}"].values
        assert np.array_equal(*(column[:250] for column in both))
    assert np.array_equal(ds.sent_offset_bytes[:250], own.sent_offset_bytes[:250])
    assert ds.sent_time_s.values[:250] == pytest.approx(own.sent_time_s.values[:250], abs=1e-3)
    assert ds.lost_number.values.tolist() == own.lost_number.values.tolist()
    assert len(ds.lost_number) == len(LOST)
    assert ds.acked_number.values[:200].tolist() == own.acked_number.values[:200].tolist()
    assert ds.min_rtt_ms.values[-1] == pytest.approx(own.min_rtt_ms.values[-1], abs=0.1)
    assert ds.handshake_frames.values[0] == own.handshake_frames.values[0] == "crypto"
    assert ds.handshake_frames.values[1] == own.handshake_frames.values[1] == "ACK 0, crypto"
    frames = list(zip(ds.http_direction.values, ds.http_stream.values, ds.http_frame.values,
                      ds.http_size_bytes.values, strict=True))  # fmt: skip
    assert ("sent", 0, "data", 300_000) in frames
    assert ("received", 0, "data", 6) in frames
    assert ("received", 3, "settings") in [f[:3] for f in frames]


@pytest.mark.slow
@needs_tshark
def test_quic_captured_twice_counts_once(tmp_path, seen):
    path, keys = seen.write(tmp_path)
    once = qb.read_capture(path, keylog=keys)
    hop = [(time_s + 1e-4, *rest) for time_s, *rest in seen.datagrams]
    both = sorted([*seen.datagrams, *hop], key=lambda datagram: datagram[0])
    path, keys = replace(seen, datagrams=both).write(tmp_path)
    twice = qb.read_capture(path, keylog=keys)
    assert twice.drop_attrs().equals(once.drop_attrs())
    assert json.loads(twice.attrs["warnings"]) == [
        f"quic.pcap holds {len(seen.datagrams)} copies of frames (of a bridge, or of several "
        "places), which are left out"
    ]


def together(datagrams, source) -> list:
    """The datagrams as a host with segmentation offload captures them: those of a moment as one."""
    found = []
    for time_s, start, end, data in datagrams:
        last = found[-1] if found else (0.0, end, end, b"")
        if (
            last[:2] == (time_s, start)
            and start == source
            and len(last[3]) % 1200 == 0 < len(last[3])
        ):
            found[-1] = (*last[:3], last[3] + data)
        else:
            found.append((time_s, start, end, data))
    return found


def negotiated(datagrams) -> list:
    """The datagrams after an attempt with a version that the server does not speak."""
    time_s, client, server, first = datagrams[0]
    ids = first[5:23]  # two connection IDs of 8 bytes with their lengths
    wrong = first[:1] + b"\x1a\x2a\x3a\x4a" + first[5:]
    answer = bytes([0xEA, 0, 0, 0, 0, *ids[9:], *ids[:9], 0, 0, 0, 1])
    begin = [(time_s - 0.1, client, server, wrong), (time_s - 0.06, server, client, answer)]
    return [*begin, *datagrams]


def moved(datagrams) -> list:
    """The datagrams of a client whose address changes after the handshake."""
    now = ("10.9.0.1", 50_000)
    late = 60
    return [
        (t, *(now if end == CLIENT and i >= late else end for end in ends), data)
        for i, (t, *ends, data) in enumerate(datagrams)
    ]


def followed(datagrams) -> list:
    """The datagrams, and then a shorter connection between the same ends."""
    later_s = datagrams[-1][0] - other().datagrams[0][0] + 1
    return [*datagrams, *((t + later_s, *rest) for t, *rest in other().datagrams)]


@cache
def other() -> Seen:
    return upload(20_000)


@pytest.mark.slow
@needs_tshark
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: together(found, CLIENT), "hold several datagrams, from a host with segm"),
        (negotiated, "2 packets from before the end of the version negotiation are left out"),
        (moved, "between 10.2.0.1:4433 and 10.9.0.1:50000 from 0.1"),
        (followed, "2 connections have these ends, one after the other"),
    ],
)
def test_quic_in_other_frames_and_between_other_ends_is_the_same(tmp_path, seen, change, said):
    path, keys = seen.write(tmp_path)
    plain = qb.read_capture(path, keylog=keys)
    keylog = seen.keylog + other().keylog
    changed = replace(seen, datagrams=change(seen.datagrams), keylog=keylog)
    path, keys = changed.write(tmp_path)
    found = qb.read_capture(path, keylog=keys, port=SERVER[1])
    (warning,) = json.loads(found.attrs["warnings"])
    assert said in warning
    assert found.drop_attrs().equals(plain.drop_attrs())


@pytest.mark.slow
@needs_tshark
def test_quic_of_version_2_a_quoted_packet_and_units_of_ack_delays(tmp_path, monkeypatch):
    """Of a server that counts ACK delays in units of 256 us, as msquic's."""
    peers = quic_pair._peers

    def in_version_2(secrets):
        for peer in (both := peers(secrets)):
            peer.configuration.supported_versions = [QuicProtocolVersion.VERSION_2]
            peer.configuration.original_version = QuicProtocolVersion.VERSION_2
        both[1]._local_ack_delay_exponent = 8
        return both

    monkeypatch.setattr(quic_pair, "_peers", in_version_2)
    seen = upload(100_000)
    path, keys = seen.write(tmp_path)
    packets = rdpcap(str(path))
    quoted = Ether() / IP(src="10.5.0.1", dst=CLIENT[0]) / ICMP(type=3, code=3)
    packets.insert(60, quoted / packets[59][IP])
    packets[60].time = packets[59].time
    wrpcap(str(path), packets, nano=True)
    (tmp_path / "own.qlog").write_text(json.dumps(seen.client_qlog))
    ds, own = qb.read_capture(path, keylog=keys), qb.read_qlog(tmp_path / "own.qlog")
    assert ds.attrs["warnings"] == "[]"
    assert np.array_equal(ds.sent_space[:60], own.sent_space[:60])
    datagrams = sum(source == SERVER for _, source, *_ in seen.datagrams)
    assert ds.sizes["received"] == datagrams + 1  # the first has two packets
    monkeypatch.setattr(quic_capture, "LARGEST_EXPONENT", quic_capture.DELAY_EXPONENT)
    usual = qb.read_capture(path, keylog=keys)
    assert 0.1 < (usual.srtt_ms - ds.srtt_ms).values[-1] < 1
    assert ds.bytes_in_flight.values[-1] == 0  # nor is the client's last handshake packet


@pytest.mark.slow
@needs_tshark
def test_quic_after_a_retry_is_the_same_connection(tmp_path):
    seen = upload(100_000, retry=True)
    path, keys = seen.write(tmp_path)
    (tmp_path / "own.qlog").write_text(json.dumps(seen.client_qlog))
    ds, own = qb.read_capture(path, keylog=keys), qb.read_qlog(tmp_path / "own.qlog")
    (warning,) = json.loads(ds.attrs["warnings"])
    assert warning.startswith("quic.pcap holds a Retry, after which the client began again")
    assert ds.sent_number.values[:2].tolist() == [0, 1]
    assert ds.sent_time_s.values[:2] == pytest.approx([0, 0.04], abs=1e-6)
    assert np.array_equal(ds.sent_space, own.sent_space)
    assert np.array_equal(ds.sent_number, own.sent_number)
    assert (ds.sizes["lost"], ds.bytes_in_flight.values[-1]) == (0, 0)


@pytest.mark.slow
@needs_tshark
def test_quic_that_a_capture_dropped_is_missed(tmp_path, seen):
    kept = [d for i, d in enumerate(seen.datagrams) if i < 20 or i % 10 or d[1] != CLIENT]
    path, keys = replace(seen, datagrams=kept).write(tmp_path)
    missing = len(seen.datagrams) - len(kept)
    found = qb.read_capture(path, keylog=keys).warnings
    assert f"{missing} of 279 packet numbers of the sender are not in quic.pcap" in found


def test_a_number_that_opens_no_connection_is_of_the_last_one():
    """As tshark gives one, without the secrets, to a connection ID that it did not see chosen."""
    ends = (b"\n\1\0\1", 40_000), (b"\n\2\0\1", 4433)
    header = bytes(8) + b"\xc0" + bytes(30)
    chosen = Conversation(Segment(1, 0, 17, *ends, header, 1200, 1180, 0))
    connections = quic_capture._Connections(chosen, ends[0])
    for number, kind, frames in [("0", ["0"], ["6"]), ("1", ["2"], []), ("", [], []),
                                 ("1", [], []), ("7", ["0"], ["6"])]:  # fmt: skip
        packet = {key: [] for key in tshark.PACKET_FIELDS}
        packet |= {"quic.long.packet_type": kind, "quic.frame_type": frames}
        packet |= {"quic.packet_length": ["100"], "quic.packet_number": ["0"]}
        connections.take(tshark.Datagram(0, number, *ends, [packet]))
    assert connections.path_bytes == {"0": 404, "7": 101}


def test_a_last_frame_without_data_is_read():
    """It has neither a length nor bytes, for which tshark writes a word."""
    packet = {
        "quic.stream.stream_id": ["0", "4"],
        "quic.stream.offset": ["9", "7"],
        "quic.stream.length": ["0"],
        "quic.stream_data": ["<MISSING>", "<MISSING>"],
    }
    assert list(quic_capture._streams([14, 13], packet)) == [(0, 9, b""), (4, 7, b"")]


@pytest.mark.slow
@needs_tshark
def test_quic_without_a_key_log_says_what_cannot_be_seen(tmp_path, seen):
    path, keys = seen.write(tmp_path)
    ds = qb.read_capture(path)
    assert "cannot be decrypted without a key log: their numbers" in ds.attrs["warnings"]
    assert ds.sizes["sent"] > 270
    assert ds.sizes["http"] == 0
    keys.write_text("")
    assert "with the secrets in quic.keys" in qb.read_capture(path, keylog=keys).attrs["warnings"]
    with pytest.raises(TraceError, match=r"there is no key log .*nowhere"):
        qb.read_capture(path, keylog=tmp_path / "nowhere")


@pytest.mark.slow
@needs_tshark
def test_quic_cut_off(tmp_path, seen):
    path, keys = seen.write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    ds = qb.read_capture(path, keylog=keys)
    assert "damaged or cut off at byte" in ds.attrs["warnings"]
    assert 100 < ds.sizes["sent"] < 200


@pytest.mark.slow
def test_udp_that_is_no_quic_and_a_machine_without_tshark(tmp_path, monkeypatch):
    packets = [(0.1 * i, A, B, UDP(sport=A[1], dport=B[1]) / bytes(9)) for i in range(5)]
    path = write(tmp_path, packets)
    if shutil.which("tshark"):
        ds = qb.read_capture(path)
        assert ds.sizes["sent"] == 5  # equal bytes, but no QUIC
        assert "no packet of tcp.pcap can be read: it is no QUIC" in ds.attrs["warnings"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TraceError, match="apt-get install tshark"):
        qb.read_capture(path)


@pytest.mark.guest
def test_tcp_of_a_run_is_what_its_queue_and_kernel_report(tmp_path):
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=40, buffer_bdp=1)
    run = qb.Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=5, seed=1).run(
        out=tmp_path / "run.nc", keep="pcap"
    )
    ds = qb.read_capture(tmp_path / "run.kept/before.pcap")
    flow = qb.flow_events(run, 0)
    assert ds.sizes["sent"] == pytest.approx(flow.sizes["sent"], abs=60)  # after the end
    assert ds.sizes["lost"] == flow.sizes["lost"]
    assert not ds.lost_spurious.any()
    both = (ds.srtt_ms, ds.metric_time_s), (flow.srtt_ms, flow.metric_time_s)
    means = [float(v[(t > 1) & (t < 5)].mean()) for v, t in both]
    # The ACKs still have half of the path before them where they are captured.
    assert means[0] + link.rtt_ms / 2 == pytest.approx(means[1], rel=0.05)
