"""Captures to numbers: the reader, the matching, the bins, the dataset. Golden values by hand."""

from __future__ import annotations

import json
import re
import struct
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from qbkit.errors import MetricError, RunFailed, StoreError
from qbkit.metrics import packet_balance, summary
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.traces import build, flow_events, read_pcaps
from qbkit.traces.run.frames import Columns
from qbkit.traces.run.match import NEVER, departures_ns, match
from qbkit.traces.run.pcap import read_packets
from qbkit.traces.run.schema import goodput_series, received_bytes
from qbkit.traces.run.series import Bins
from qbkit.traces.run.telemetry import read_table

T0_NS = 1_767_225_601 * 10**9


def write_pcap(path, packets, *, order="<", nanoseconds=True, link=1, snaplen=128):
    """``packets``: (time in ns, bytes of the frame)."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    data = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, snaplen, link)
    for time_ns, frame in packets:
        seconds, rest = divmod(time_ns, 10**9)
        cut = frame[:snaplen]
        fraction = rest if nanoseconds else rest // 1000
        data += struct.pack(order + "IIII", seconds, fraction, len(cut), len(frame)) + cut
    path.write_bytes(data)


def udp(seq, *, flow=0, size=1000, ttl=64):
    """A QUIC-like data packet of a flow, unlike any other; the first has a long header."""
    payload = struct.pack(">Q", (seq == 0) << 63 | seq * 7919 + flow) + bytes(size - 8)
    ip = IP(src=f"10.1.{flow}.1", dst=f"10.2.{flow}.1", ttl=ttl)
    return bytes(Ether() / ip / UDP(sport=50000, dport=4001 + flow) / Raw(payload))


def ack(seq, *, flow=0):
    ip = IP(src=f"10.2.{flow}.1", dst=f"10.1.{flow}.1")
    return bytes(Ether() / ip / UDP(sport=4001 + flow, dport=50000) / Raw(struct.pack(">Q", seq)))


def tcp(seq, *, ip_id=1, ttl=64, stamp=5):
    options = [("Timestamp", (stamp, 0))]
    layers = IP(src="10.1.0.1", dst="10.2.0.1", id=ip_id, ttl=ttl) / TCP(
        sport=50000, dport=4001, seq=seq, options=options
    )
    return bytes(Ether() / layers / Raw(bytes(500)))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [True, False])
def test_reader_golden(tmp_path, order, nanoseconds):
    path = tmp_path / "a.pcap"
    frames = [(T0_NS + 5000, tcp(100)), (T0_NS + 2000, udp(1)), (T0_NS + 9000, ack(1))]
    write_pcap(path, frames, order=order, nanoseconds=nanoseconds)
    packets = read_packets(path)
    # In the order of time; 14 Ethernet + 20 IP + 8 UDP + 1000, and 14 + 20 + 32 TCP + 500.
    assert (packets.time_ns - T0_NS).tolist() == [2000, 5000, 9000]
    assert packets.frame_bytes.tolist() == [1042, 566, 50]
    one, two, there = 0x0A010001, 0x0A020001, 50000
    assert list(zip(*(ends[packets.way].tolist() for ends in packets.ways), strict=True)) == [
        *[(one, two, there, 4001)] * 2,
        (two, one, 4001, there),
    ]
    assert len(packets.ways.source) == 2


def write_pcapng(path, frames, *, order="<", link=1, snaplen=128):
    """A section, an interface with times in ns, and an enhanced block for each frame."""

    def block(kind, body):
        body += bytes(-len(body) % 4)
        size = len(body) + 12
        return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)

    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    nanoseconds = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    interface = struct.pack(f"{order}HHI", link, 0, snaplen) + nanoseconds
    with path.open("wb") as file:
        file.write(block(0x0A0D0D0A, section) + block(1, interface))
        for ns, frame in frames:
            kept = frame[:snaplen]
            head = struct.pack(f"{order}5I", 0, ns >> 32, ns & 0xFFFFFFFF, len(kept), len(frame))
            file.write(block(6, head + kept))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_gives_the_same_packets_as_pcap(tmp_path, order):
    six = IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=1, dport=2) / Raw(bytes(100))
    frames = [tcp(100), udp(1), bytes(Ether() / six), ack(1)]
    timed = [(T0_NS + i * 1001, frame) for i, frame in enumerate(frames)]
    write_pcap(tmp_path / "a.pcap", timed)
    write_pcapng(tmp_path / "a.pcapng", timed, order=order)
    one, other = (read_packets(tmp_path / name) for name in ("a.pcap", "a.pcapng"))
    assert len(one) == 4
    for name in Columns._fields:
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert np.array_equal(one.ways, other.ways)


def test_a_cut_off_pcapng_gives_what_is_readable(tmp_path):
    path = tmp_path / "a.pcapng"
    write_pcapng(path, [(T0_NS + i, udp(i)) for i in range(3)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(UserWarning, match="damaged or cut off at byte .*, after 2 packets; what"):
        assert len(read_packets(path)) == 2
    with pytest.raises(StoreError, match=r"a\.pcapng is damaged or cut off"):
        read_packets(path, whole=True)


def test_reader_takes_ipv6_and_raw_ip(tmp_path):
    layers = IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=1, dport=2) / Raw(bytes(100))
    write_pcap(tmp_path / "six.pcap", [(T0_NS, bytes(Ether() / layers))])
    six = read_packets(tmp_path / "six.pcap")
    write_pcap(tmp_path / "raw.pcap", [(T0_NS, bytes(layers))], link=101)
    raw = read_packets(tmp_path / "raw.pcap")
    assert six.frame_bytes.tolist() == raw.frame_bytes.tolist() == [14 + 40 + 8 + 100]
    assert six.key.tolist() == raw.key.tolist()


def test_key_survives_a_router_and_distinguishes_packets(tmp_path):
    def key(frame):
        write_pcap(tmp_path / "k.pcap", [(T0_NS, frame)])
        return int(read_packets(tmp_path / "k.pcap").key[0])

    assert key(udp(1)) == key(udp(1, ttl=60))
    assert key(tcp(1)) == key(tcp(1, ttl=60))
    different = [udp(1), udp(2), udp(1, flow=1), tcp(1), tcp(2), tcp(1, ip_id=2), tcp(1, stamp=6)]
    assert len({key(frame) for frame in different}) == len(different)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no capture: neither pcap nor pcapng"),
        (b"hello, I am a text file, not a capture", "no capture: neither pcap nor pcapng"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "damaged or cut off at byte 0, after 0 packets"),
        (struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 105), "link type 105"),
    ],
)
def test_what_is_no_pcap_is_one_sentence(tmp_path, content, words):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=words):
        read_packets(path)


def test_missing_capture(tmp_path):
    with pytest.raises(StoreError, match="No such file"):
        read_packets(tmp_path / "none.pcap")


RECORD_BYTES = 16 + 128
"""One record of a capture of `udp` frames: its header and its frame."""


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@example(cut=226, at=176, flip=170)
@given(
    cut=st.integers(24, 24 + 6 * RECORD_BYTES), at=st.integers(24, 900), flip=st.integers(1, 255)
)
def test_damaged_captures_give_what_is_readable(tmp_path_factory, cut, at, flip):
    path = tmp_path_factory.mktemp("d") / "d.pcap"
    write_pcap(path, [(T0_NS + i * 1000, udp(i)) for i in range(6)])
    whole = bytearray(path.read_bytes())
    del whole[cut:]
    complete = (cut - 24) // RECORD_BYTES
    path.write_bytes(whole)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        packets = read_packets(path)
    assert len(packets) == complete
    assert bool(caught) == ((cut - 24) % RECORD_BYTES != 0)
    if at < len(whole):
        whole[at] ^= flip
        path.write_bytes(whole)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(read_packets(path)) <= frames_in(whole)


def frames_in(capture: bytes) -> int:
    """How many records follow each other by the lengths that they claim, whatever is in them.

    A flip in a length can make a record shorter, so that what was cut off before is whole.
    """
    at, count = 24, 0
    while at + 16 <= len(capture):
        at += 16 + int.from_bytes(capture[at + 8 : at + 12], "little")
        count += at <= len(capture)
    return count


@pytest.mark.slow
@settings(max_examples=100)
@given(
    kinds=st.lists(st.integers(0, 8), min_size=1, max_size=40),
    fates=st.lists(st.tuples(st.booleans(), st.integers(1, 50)), min_size=40, max_size=40),
)
def test_match_recovers_the_truth(kinds, fates):
    # Keys repeat; a fifo drops some packets and delays the others, in order.
    before_ns = np.arange(len(kinds), dtype=np.int64) * 10
    key = np.array(kinds, np.uint64)
    departure, last = np.full(len(kinds), NEVER), 0
    for i, (survives, delay) in enumerate(fates[: len(kinds)]):
        if survives:
            last = departure[i] = max(last, before_ns[i] + delay)
    out = departure != NEVER
    found = departures_ns(match(key, before_ns, key[out], departure[out]), departure[out])
    if len(set(kinds)) == len(kinds):
        assert found.tolist() == departure.tolist()
    matched = found != NEVER
    assert sorted(found[matched]) == sorted(departure[out])
    assert (found[matched] >= before_ns[matched]).all()
    assert not matched[~np.isin(key, key[out])].any()


def test_bins_by_hand():
    bins = Bins(0.5, 2.0)
    assert bins.left_s.tolist() == [0, 0.5, 1, 1.5]
    time_s, values = np.array([0.1, 0.4, 0.5, 1.9, 2.5]), np.array([1.0, 3.0, 5.0, 7.0, 9.0])
    assert bins.sums(time_s, values).tolist() == [4, 5, 0, 7]
    assert bins.index(time_s).tolist() == [0, 0, 1, 3, -1]
    assert bins.last(time_s, values).tolist() == [5, 5, 5, 7]


def test_telemetry_of_a_driver_that_was_killed(tmp_path):
    path = tmp_path / "sender.csv"
    path.write_text("time_ns,cwnd_bytes,state\n10,1000,slow_start\n20,,recovery\n30,30")
    table = read_table(path)
    assert table["time_ns"].tolist() == [10, 20]
    assert table["cwnd_bytes"].iloc[0] == 1000
    assert len(read_table(tmp_path / "none.csv")) == 0


def raw_folder(folder: Path, *, size=1000, drops=0) -> Experiment:
    """Ten packets of 1042 bytes, 10 ms apart, of which the fourth is dropped; others wait 5 ms."""
    sent = [(T0_NS + i * 10_000_000, udp(i, size=size)) for i in range(10)]
    acks = [(T0_NS + 50_000_000, ack(0))]
    write_pcap(folder / "before.pcap", sent + acks)
    out = [(t + 5_000_000, udp(i, size=size, ttl=62)) for i, (t, _) in enumerate(sent) if i != 3]
    write_pcap(folder / "after.pcap", out)
    flow = {"port": 4001, "sender_ip": "10.1.0.1", "receiver_ip": "10.2.0.1", "bottlenecks": [0]}
    flow["window_bytes"] = 128 * 2**20
    result = {
        "t0_ns": T0_NS,
        "counted_ns": T0_NS + 10**9,
        "capture_drops": drops,
        "qdiscs": [[{"packets": 9, "drops": 1, "qlen": 0}]],
        "losses": [],
        "flows": [flow],
    }
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "flows/0").mkdir(parents=True)
    (folder / "flows/0/sender.csv").write_text(
        f"time_ns,cwnd_bytes,state\n{T0_NS + 10**7},14480,slow_start\n{T0_NS + 15 * 10**7},9000,\n"
    )
    (folder / "flows/0/receiver.csv").write_text(
        f"time_ns,bytes\n{T0_NS},0\n{T0_NS + 10**8},9000\n{T0_NS + 2 * 10**8},9000\n"
    )
    return Experiment(
        bottleneck=Bottleneck(rate_mbps=10, rtt_ms=20), flows=["tcp:cubic"], duration_s=0.2
    )


def test_dataset_by_hand(tmp_path):
    ds = build(tmp_path, raw_folder(tmp_path), {"seed": 1})
    # Bin 0 (0 to 0.1 s) holds all nine departures: 9 x 1042 x 8 bit / 0.1 s = 0.75024 Mbit/s.
    assert ds.throughput_mbps.values[0] == pytest.approx([0.75024, 0])
    np.testing.assert_allclose(ds.queue_delay_ms.values[0], [5, np.nan])
    assert ds.dropped_packets.values[0].tolist() == [1, 0]
    # 9000 bytes in the first 0.1 s are 0.72 Mbit/s.
    assert ds.goodput_mbps.values[0] == pytest.approx([0.72, 0])
    assert ds.cwnd_bytes.values[0].tolist() == [14480, 9000]
    assert int(ds.receiver_bytes[0]) == 9000
    assert ds.sizes["packet"] == 10
    assert ds.sizes["ack"] == 1
    assert np.flatnonzero(np.isnan(ds.packet_departure_s)).tolist() == [3]
    assert ds.packet_time_s.values[1] == pytest.approx(0.01)
    assert ds.sample_state.values.tolist() == [0, -1]
    assert json.loads(ds.attrs["warnings"]) == []
    assert all("units" in v.attrs and "long_name" in v.attrs for v in ds.data_vars.values())


def cut_off_folder(folder: Path) -> Experiment:
    """A `raw_folder` whose capture behind the queue ends before the last two packets."""
    experiment = raw_folder(folder)
    out = [(T0_NS + i * 10**7 + 5 * 10**6, udp(i, ttl=62)) for i in range(8) if i != 3]
    write_pcap(folder / "after.pcap", out)
    return experiment


def test_what_was_still_queued_is_of_unknown_fate(tmp_path):
    # The last two packets were in the queue when the capture ended, and the kernel says so.
    experiment = cut_off_folder(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    result["qdiscs"] = [[{"packets": 7, "drops": 1, "qlen": 2}]]
    (tmp_path / "result.json").write_text(json.dumps(result))
    ds = build(tmp_path, experiment, {})
    assert ds.packet_fate.values.tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 3, 3]
    assert ds.packet_fate.attrs["flag_meanings"] == "arrived queue_drop random_loss unknown"
    assert ds.dropped_packets.values.sum() == 1
    assert summary(ds)["loss_percent"].tolist() == [100 / 8]
    events = flow_events(ds, 0)
    assert events.lost_number.values.tolist() == [3]
    assert events.acked_number.values.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert packet_balance(ds).queued_packets.tolist() == [2, 2]
    assert json.loads(ds.attrs["warnings"]) == [
        "2 packets were still in bottleneck 1 when the capture ended; what became of them is "
        "unknown"
    ]


def test_random_loss_is_no_drop(tmp_path):
    # The queue lets the fourth packet out; it is lost after it.
    experiment = raw_folder(tmp_path)
    out = [(T0_NS + i * 10**7 + 5 * 10**6, udp(i, ttl=63)) for i in range(10)]
    write_pcap(tmp_path / "queue-0.pcap", out)
    result = json.loads((tmp_path / "result.json").read_text())
    result |= {"qdiscs": [[{"packets": 10, "drops": 0, "qlen": 0}]], "losses": [{"drops": 1}]}
    (tmp_path / "result.json").write_text(json.dumps(result))
    ds = build(tmp_path, experiment, {})
    assert json.loads(ds.attrs["warnings"]) == []
    assert np.flatnonzero(np.isnan(ds.packet_departure_s)).tolist() == [3]
    assert ds.dropped_packets.values.sum() == 0
    assert ds.random_loss_packets.values[0].tolist() == [1, 0]
    row = summary(ds).iloc[0]
    assert (row.loss_percent, row.queue_loss_percent, row.random_loss_percent) == (10, 0, 10)
    assert flow_events(ds, 0).lost_trigger.values.tolist() == ["random"]


def test_checks_of_every_run(tmp_path):
    experiment = raw_folder(tmp_path, size=5800, drops=3)
    (tmp_path / "flows/0/limits.json").write_text(
        '{"rwnd_limited_s": 0.1, "sndbuf_limited_s": 0.05}'
    )
    found = json.loads(build(tmp_path, experiment, {}).attrs["warnings"])
    assert any("frames of 5842 bytes passed the queue" in text for text in found)
    assert any("the capture lost 3 packets" in text for text in found)
    assert any("limited by its receive window for 50 %" in text for text in found)
    assert any("limited by its send buffer for 25 %" in text for text in found)


def test_packets_with_a_wrong_bit_are_said_not_to_count_as_lost(tmp_path):
    link = Bottleneck(rate_mbps=10, rtt_ms=20, corrupt_percent=5)
    experiment = raw_folder(tmp_path).model_copy(update={"bottleneck": link})
    result = json.loads((tmp_path / "result.json").read_text())
    result["losses"] = [{"packets": 9, "drops": 0}]
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert json.loads(build(tmp_path, experiment, {}).attrs["warnings"]) == [
        "one bit is wrong in 5 % of the packets to the receivers, which drop most of these by "
        "their checksum; they arrived, and do not count as lost"
    ]


def test_datagrams_that_a_full_socket_drops_are_reported(tmp_path):
    experiment = raw_folder(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    result["flows"][0].update(sender_overflows=0, receiver_overflows=230)
    (tmp_path / "result.json").write_text(json.dumps(result))
    found = json.loads(build(tmp_path, experiment, {}).attrs["warnings"])
    assert found == ["the receiver of tcp:cubic lost 230 datagrams, because its socket was full"]


def test_path_larger_than_the_receive_window_is_reported(tmp_path):
    # 1000 Mbit/s x 1 s are 119 MiB, and as much again fits into the queue.
    long_path = Bottleneck(rate_mbps=1000, rtt_ms=1000)
    experiment = raw_folder(tmp_path).model_copy(update={"bottleneck": long_path})
    found = json.loads(build(tmp_path, experiment, {}).attrs["warnings"])
    assert any(
        "tcp:cubic hold 238 MiB, more than its receive window of 128 MiB" in text for text in found
    )


def test_flow_that_sent_nothing_fails_the_run(tmp_path):
    experiment = raw_folder(tmp_path)
    silent = experiment.model_copy(update={"flows": (*experiment.flows, Flow("tcp", "bbr"))})
    result = json.loads((tmp_path / "result.json").read_text())
    other = {**result["flows"][0], "port": 4002, "sender_ip": "10.1.1.1", "receiver_ip": "10.2.1.1"}
    result["flows"].append(other)
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(RunFailed, match=r"flow 2 \(tcp:bbr\) sent no packet"):
        build(tmp_path, silent, {})


def test_a_capture_with_a_hole_fails_the_run(tmp_path):
    experiment = raw_folder(tmp_path)
    after = tmp_path / "after.pcap"
    octets = bytearray(after.read_bytes())
    octets[24:48] = bytes(24)  # what a page that was never written reads as
    octets[32:36] = b"\xff" * 4
    after.write_bytes(octets)
    with pytest.raises(
        RunFailed, match=r"incomplete: after\.pcap is damaged or cut off at byte 24 "
    ):
        build(tmp_path, experiment, {})


def test_captures_made_elsewhere(tmp_path):
    raw_folder(tmp_path)
    before, after = tmp_path / "before.pcap", tmp_path / "after.pcap"
    ds = read_pcaps(before, after, flows={4001: "mine"}, sender="10.1.0.1", rtt_ms=20)
    assert ds.label.values.tolist() == ["mine"]
    assert int(ds.dropped_packets.sum()) == 1
    assert np.nanmean(ds.queue_delay_ms) == pytest.approx(5)
    # There are no counters of the queue, so it is unknown who lost the packet.
    assert summary(ds)[["queue_loss_percent", "random_loss_percent"]].isna().all(axis=None)
    with pytest.raises(MetricError, match="its balance is unknown"):
        packet_balance(ds)
    shorter = read_pcaps(before, after, flows={4001: "mine"}, sender="10.1.0.1", propagation_ms=4.0)
    assert np.nanmean(shorter.queue_delay_ms) == pytest.approx(1)


def test_imported_captures_may_be_pcapng(tmp_path):
    how = {"flows": {4001: "mine"}, "sender": "10.1.0.1"}
    came_in = [(T0_NS + i * 10**7, udp(i)) for i in range(8)]
    went_out = [(ns + 5 * 10**6, udp(i, ttl=62)) for i, (ns, _) in enumerate(came_in) if i != 3]
    made = []
    for write, ending in ((write_pcap, "pcap"), (write_pcapng, "pcapng")):
        paths = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
        for path, frames in zip(paths, (came_in, went_out), strict=True):
            write(path, frames)
        made.append(read_pcaps(*paths, **how))
    xr.testing.assert_identical(*made)
    assert int(made[1].dropped_packets.sum()) == 1


def test_senders_and_base_rtts_are_found(tmp_path):
    ms = 10**6
    # Two senders; RTTs of 20 and 50 ms, and the second flow's first packet waits 5 ms in the queue.
    data = [(T0_NS + i * 2 * ms, udp(i)) for i in range(20, 60)]
    data += [(T0_NS + 3 * ms + i * 2 * ms, udp(i, flow=1)) for i in range(40, 60)]
    first = [(T0_NS, udp(0)), (T0_NS + 8 * ms, ack(0)), (T0_NS + 20 * ms, udp(1))]
    start_ns = T0_NS + 3 * ms
    second = [
        (start_ns, udp(0, flow=1)),
        (start_ns + 30 * ms, ack(0, flow=1)),
        (start_ns + 55 * ms, udp(1, flow=1)),
    ]
    before = sorted(first + second + data)
    after = [
        (ns + (5 * ms if frame == udp(0, flow=1) else 0), frame)
        for ns, frame in before
        if frame not in (ack(0), ack(0, flow=1))
    ]
    paths = tmp_path / "before.pcap", tmp_path / "after.pcap"
    for path, frames in zip(paths, (before, sorted(after)), strict=True):
        write_pcap(path, frames)
    flows = {4001: "a", 4002: "b"}
    found = read_pcaps(*paths, flows=flows)
    assert found.base_rtt_ms.values.tolist() == [20, 50]
    assert found.attrs["rtt_ms"] == 20
    named = read_pcaps(*paths, flows=flows, sender=["10.1.0.1", "10.1.1.1"], rtt_ms=20)
    assert found.packet_time_s.equals(named.packet_time_s)
    assert found.qb.warnings == [
        "the base RTT is that of the handshakes (20.00, 50.00 ms); give rtt_ms if known"
    ]
    assert named.qb.warnings == []
    longer = read_pcaps(*paths, flows=flows, rtt_ms=40)
    assert longer.qb.warnings == [
        "the base RTT cannot be 40 ms: the handshakes took 20.00, 50.00 ms; correct rtt_ms"
    ]
    shorter = read_pcaps(*paths, flows=flows, rtt_ms=2)
    assert shorter.qb.warnings == [
        "the base RTT is 2 ms, and the handshakes took 20.00, 50.00 ms: either the ends answered "
        "late, or rtt_ms is too small, and so are all RTTs of the run"
    ]
    write_pcap(paths[0], [(ns + ms, frame) for ns, frame in sorted(after)])
    one_way = read_pcaps(paths[1], paths[0], flows=flows)
    assert np.isnan(one_way.base_rtt_ms).all()
    assert "the captures hold no handshake; give rtt_ms" in one_way.qb.warnings[0]


def of_clients(folder: Path, ports: tuple[int, int] = (4001, 4001)) -> tuple[Path, Path]:
    """Captures of two hosts that send 20 packets each, and get ACKs, through a queue of 5 ms.

    The first SYN is lost, and repeated after 1 s; another connection begins meanwhile.
    """
    server, into = "10.2.0.1", []
    for host, port in enumerate(ports):
        ends = IP(src=f"10.1.0.{host + 1}", dst=server), IP(src=server, dst=f"10.1.0.{host + 1}")
        there = [TCP(sport=40_000, dport=port, flags=f, seq=i) for i, f in enumerate("SSAA")]
        sent_s = [0, 1, 1.05, 1.06] if host == 0 else [0.5, 1.01, 1.1, 1.2]
        into += [(t, ends[0] / each) for t, each in zip(sent_s, there, strict=True)]
        into.append((1.04, ends[1] / TCP(sport=port, dport=40_000, flags="SA")))
        for i in range(20):
            data = TCP(sport=40_000, dport=port, flags="A", seq=10 + i) / bytes(1000)
            into.append((2 + i / 100, ends[0] / data))
            into.append((2.02 + i / 100, ends[1] / TCP(sport=port, dport=40_000, ack=i)))
    out = [(t + 0.005, ip) for t, ip in into if ip.dst == server]
    paths = folder / "before.pcap", folder / "after.pcap"
    for path, packets in zip(paths, (into, out), strict=True):
        frames = sorted(((T0_NS + round(t * 1e9), bytes(Ether() / ip)) for t, ip in packets))
        write_pcap(path, frames)
    return paths


def test_data_of_all_clients_are_data(tmp_path):
    paths = of_clients(tmp_path)
    run = read_pcaps(*paths, flows={4001: "mine"})
    assert int((run.packet_size_bytes > 1000).sum()) == 40
    assert run.sizes["ack"] == 42  # with two SYN-ACKs
    assert run.base_rtt_ms.values == pytest.approx([45])  # from the second SYN on
    one = read_pcaps(*paths, flows={4001: "mine"}, sender="10.1.0.2")
    assert (one.sizes["packet"], one.sizes["ack"]) == (24, 21)
    assert "45 packets of" in one.qb.warnings[0]
    assert "are between other addresses, and are left out" in one.qb.warnings[0]


def test_imports_that_cannot_be_told_apart_are_refused(tmp_path):
    paths = of_clients(tmp_path, (4001, 4002))
    with pytest.raises(StoreError, match="import the flows of each direction on their own"):
        read_pcaps(*paths, flows={4001: "up", 4002: "x"}, sender=["10.1.0.1", "10.2.0.1"])
    large = [(T0_NS + i * 10**7, bytes(Ether() / IP(dst="10.2.0.1", src="10.1.0.1") / UDP(
        sport=9, dport=4001) / bytes([i] * 3000))) for i in range(20)]  # fmt: skip
    write_pcap(tmp_path / "gso.pcap", large)
    with pytest.raises(StoreError, match="one has frames of several packets: turn segmentation"):
        read_pcaps(tmp_path / "gso.pcap", paths[1], flows={4001: "x"})


def test_the_end_of_an_imported_capture_is_no_loss(tmp_path):
    cut_off_folder(tmp_path)
    paths = tmp_path / "before.pcap", tmp_path / "after.pcap"
    ds = read_pcaps(*paths, flows={4001: "mine"}, sender="10.1.0.1", rtt_ms=20)
    assert ds.packet_fate.values.tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 3, 3]
    assert int(ds.dropped_packets.sum()) == 1
    assert summary(ds)["loss_percent"].tolist() == [100 / 8]


def imported_part(folder: Path, into: range, out: range, wait_ms: int = 5) -> xr.Dataset:
    """Captures of a bulk transfer of 60 packets, 10 ms apart, of which both saw some."""
    sent = [(T0_NS + i * 10**7, udp(i)) for i in range(60)]
    came_back = [(ns + 8 * 10**6, ack(i)) for i, (ns, _) in enumerate(sent)]
    in_front = sorted(side[i] for i in into for side in (sent, came_back))
    write_pcap(folder / "before.pcap", in_front)
    write_pcap(folder / "after.pcap", [(sent[i][0] + wait_ms * 10**6, sent[i][1]) for i in out])
    return read_pcaps(folder / "before.pcap", folder / "after.pcap", flows={4001: "mine"})


def test_what_one_capture_did_not_see_is_no_loss_and_no_time(tmp_path):
    whole = summary(imported_part(tmp_path, range(60), range(60)))
    for out, words in (
        (range(30, 60), r"the first 0\.3 s of .*before\.pcap are left out, as .* begins later"),
        (range(30), r"the last 0\.295 s of .*before\.pcap are left out, as .* ends earlier"),
    ):
        run = imported_part(tmp_path, range(60), out)
        assert re.search(words, run.qb.warnings[0]), run.qb.warnings
        assert run.sizes["packet"] == 30
        assert summary(run)["loss_percent"].tolist() == [0]
        assert summary(run)["throughput_mbps"][0] == pytest.approx(
            whole["throughput_mbps"][0], rel=0.05
        )
    # The later capture was still there: what is missing in it was lost.
    lost = imported_part(tmp_path, range(60), [*range(30), 59])
    assert summary(lost)["loss_percent"][0] == pytest.approx(100 * 29 / 60)


def test_a_base_rtt_needs_the_begin_of_the_connection(tmp_path):
    assert not np.isnan(imported_part(tmp_path, range(60), range(60)).base_rtt_ms[0])
    run = imported_part(tmp_path, range(1, 60), range(60))
    assert np.isnan(run.base_rtt_ms[0])


def test_clocks_that_disagree_and_cut_packets_are_noticed(tmp_path):
    with pytest.raises(StoreError, match=r"2\.000 s later, or more: the clocks"):
        imported_part(tmp_path, range(60), range(60), wait_ms=2000)
    hint = r"no packet takes less than 5\.00 ms .* give propagation_ms"
    assert re.search(hint, imported_part(tmp_path, range(60), range(60)).qb.warnings[-1])
    with pytest.raises(StoreError, match=r"most packets of .* are not found in"):
        imported_part(tmp_path, [0, 1, 59], range(60))


def test_one_capture_for_both_sides_is_refused(tmp_path):
    raw_folder(tmp_path)
    with pytest.raises(StoreError, match="both are one capture; give one of each side"):
        read_pcaps(*[tmp_path / "before.pcap"] * 2, flows={4001: "mine"}, sender="10.1.0.1")


def test_a_repetition_of_a_dropped_packet_left_when_it_says():
    # Five packets wait 5 ms; the sixth is dropped, and sent again with the same bytes 300 ms later.
    key = np.array([1, 2, 3, 4, 5, 6, 6], np.uint64)
    before_ms = np.array([0, 10, 20, 30, 40, 50, 350])
    out = [0, 1, 2, 3, 4, 6]
    found = match(key, before_ms, key[out], before_ms[out] + 5)
    assert found.tolist() == [0, 1, 2, 3, 4, NEVER, 5]
    # In a queue of 400 ms, it may as well be the first one that left.
    long_ms = before_ms[out] + np.array([400, 400, 400, 400, 400, 20])
    assert match(key, before_ms, key[out], long_ms).tolist() == [0, 1, 2, 3, 4, 5, NEVER]


def test_goodput_between_two_reports_follows_the_packets():
    bins = Bins(0.1, 1.0)
    left = np.array([[0, 0, 8, 8, 0, 0, 8, 8, 8, 0]], float)
    reports = pd.DataFrame({"time_ns": [400_000_000, 900_000_000], "bytes": [160_000, 460_000]})
    (found,) = goodput_series([reports], 0, bins, left)["goodput_mbps"][1]
    assert found == pytest.approx([0, 0, 6.4, 6.4, 0, 0, 8, 8, 8, 0])
    assert received_bytes([reports, pd.DataFrame()]) == pytest.approx(
        [460_000, np.nan], nan_ok=True
    )
    # What an application gets at once came when it says, though no packet did.
    sudden = pd.DataFrame({"time_ns": [350_000_000, 560_000_000], "bytes": [160_000, 260_000]})
    (found,) = goodput_series([sudden], 0, bins, left)["goodput_mbps"][1]
    assert found.sum() * 0.1e6 / 8 == pytest.approx(260_000)
    assert found[6:] == pytest.approx(0)


@pytest.mark.guest
@pytest.mark.parametrize("duration_s", [4.0, 7.0])
def test_a_transfer_is_complete_only_if_its_bytes_came_in_time(duration_s: float):
    # All of it is in the sender's socket long before, and drains after the end.
    flows = ["quinn:cubic", Flow("tcp:cubic", bytes=5_000_000, start_s=1.0)]
    link = {"rate_mbps": 20, "rtt_ms": 20, "qdisc": "fq_codel"}
    ds = Experiment(bottleneck=link, flows=flows, duration_s=duration_s, start_window_s=0).run()
    row = summary(ds).iloc[1]
    assert 0.93 < row["goodput_mbps"] / row["throughput_mbps"] < 0.97
    is_whole = duration_s > 6
    assert (row["complete_s"] == "unfinished") != is_whole
    assert (ds.receiver_bytes.values[1] == 5_000_000) == is_whole
    assert bool(ds.qb.warnings) != is_whole


@pytest.mark.guest
def test_a_slow_link_has_no_burst_of_goodput():
    link = {"rate_mbps": 1, "rtt_ms": 20}
    ds = Experiment(bottleneck=link, flows=["tcp:cubic"], duration_s=6).run()
    goodput_mbps = ds.goodput_mbps.values[0]
    assert goodput_mbps[5:].min() > 0.7
    assert goodput_mbps.max() < 1.1
    assert goodput_mbps.sum() * ds.attrs["bin_s"] * 1e6 / 8 == pytest.approx(ds.receiver_bytes[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flows": {4009: "x"}}, "no packet of port 4009; most are of"),
        ({"sender": "10.9.9.9"}, "name all senders, or none"),
        ({"sender": "localhost"}, "is no IP address"),
        ({"flows": {}}, "at least one flow"),
        ({"rtt_ms": -5}, "rtt_ms is -5; it must be more than 0"),
    ],
)
def test_impossible_imports_are_one_sentence(tmp_path, change, words):
    raw_folder(tmp_path)
    given_words = {"flows": {4001: "x"}, "sender": "10.1.0.1", **change}
    with pytest.raises(StoreError, match=words):
        read_pcaps(tmp_path / "before.pcap", tmp_path / "after.pcap", **given_words)


def test_swapped_captures_are_noticed(tmp_path):
    raw_folder(tmp_path)
    with pytest.raises(StoreError, match="swapped"):
        read_pcaps(
            tmp_path / "after.pcap", tmp_path / "before.pcap", flows={4001: "x"}, sender="10.1.0.1"
        )
