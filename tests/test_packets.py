"""`run.qb.packets`: each packet with its flow, its fate and the fields of its header."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.layers.quic import QUIC_Handshake, QUIC_Initial, QUIC_Version
from scapy.utils import PcapWriter
from synthetic import synthetic_run

from qbkit.cli.group import group
from qbkit.errors import StoreError, TraceError
from qbkit.execution.runner import kept_folder
from qbkit.spec import Experiment
from qbkit.store import load_run, save_run
from qbkit.traces.run.headers import Headers, quic_words

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
"""With addresses, or else scapy would ask the network for them."""
SNAPLEN = 128
START_S = 1_000
ISN = (2**32 - 700, 5_000)
"""First sequence numbers of the sender, which wraps, and of the receiver."""


def initial(**fields) -> bytes:
    return bytes(QUIC_Initial(DstConnID=b"\xaa" * 8, SrcConnID=b"\xbb" * 4, **fields))


def frames_of(ds):
    """A frame for each row of a run: flow 0 is QUIC, flow 1 is TCP; in order of time."""
    rows = []
    for table, side in (("packet", 0), ("ack", 1)):
        columns = (ds[f"{table}_{name}"].values for name in ("time_s", "flow", "size_bytes"))
        rows += [(*row, side) for row in zip(*columns, strict=True)]
    rows.sort(key=lambda row: row[0])
    begun, sent = set(), [ISN[0], ISN[1]]
    for time_s, flow, size, side in rows:
        ends = [f"10.1.{flow}.1", f"10.2.{flow}.1"]
        ip = ETHER / IP(src=ends[side], dst=ends[1 - side], tos=2 * (flow == 1))
        ports = {("sport", "dport")[side]: 40_000, ("dport", "sport")[side]: 4001 + int(flow)}
        if flow == 1:
            options = [("SAck", (sent[0], (sent[0] + 1448) % 2**32))] if side else []
            numbers = {"seq": sent[side], "ack": sent[1 - side], "window": 500}
            whole = ip / TCP(**ports, **numbers, flags="A", options=options)
        else:
            first = (flow, side) not in begun
            whole = ip / UDP(**ports) / (initial(Length=1182) if first else b"\x60")
        begun.add((flow, side))
        padding = bytes(int(size) - len(whole))
        if flow == 1:
            sent[side] = (sent[side] + len(padding)) % 2**32
        yield time_s, bytes(whole / padding)


def write_capture(path, ds, start_s=START_S):
    path.parent.mkdir()
    with PcapWriter(str(path), nano=True, linktype=1) as writer:
        writer.write_header(None)
        noise = bytes(ETHER / IP(src="10.1.0.1", dst="10.2.0.1") / UDP() / b"before the start")
        writer.write_packet(noise, sec=start_s - 1, usec=123)
        for time_s, frame in frames_of(ds):
            ns = round(time_s * 1e9)
            at = {"sec": start_s + ns // 10**9, "usec": ns % 10**9}
            writer.write_packet(frame[:SNAPLEN], **at, wirelen=len(frame))


def in_whole_ns(ds: xr.Dataset) -> xr.Dataset:
    """A run whose packets came at whole nanoseconds, as a capture has them."""
    for table in ("packet", "ack"):
        ds[f"{table}_time_s"].values[:] = np.rint(ds[f"{table}_time_s"].values * 1e9) / 1e9
    return ds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A stored run with a capture beside it that has the same packets."""
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    ds = in_whole_ns(synthetic_run(duration_s=3, rate_mbps=1))
    save_run(ds, path)
    write_capture(kept_folder(path) / "before.pcap", ds)
    return load_run(path)


def test_rows_are_the_packets_nearest_to_the_time(run):
    found = run.qb.packets(around_s=1.5, count=40)
    assert len(found) == 40
    every = np.sort(np.concatenate([run.packet_time_s.values, run.ack_time_s.values]))
    nearest = np.sort(every[np.argsort(np.abs(every - 1.5), kind="stable")[:40]])
    assert found.time_s.to_numpy() == pytest.approx(nearest, abs=1e-9)
    # The noise is packet 1 of the capture.
    assert found.index.tolist() == (np.searchsorted(every, nearest) + 2).tolist()
    assert set(found.direction) == {"to receiver", "to sender"}
    assert set(found.flow) == {"quic-go:cubic", "tcp:cubic"}


def test_fate_and_delay_are_those_of_the_run(run):
    found = run.qb.packets(around_s=1.5, count=2000)
    place = np.searchsorted(run.packet_time_s.values, 1.5)
    data = found[found.direction == "to receiver"]
    assert (data.fate == "dropped at the bottleneck").sum() == int(
        (run.packet_fate.values[np.isin(run.packet_time_s.values, data.time_s)] == 1).sum()
    )
    row = data.iloc[np.argmin(np.abs(data.time_s - run.packet_time_s.values[place]))]
    waited_ms = (run.packet_departure_s.values[place] - run.packet_time_s.values[place]) * 1e3
    assert row.queue_delay_ms == pytest.approx(waited_ms, nan_ok=True)


def test_acks_that_a_path_holds_wait_in_no_queue(run):
    source = run.encoding
    held = run.assign(
        ack_departure_s=("ack", run.ack_time_s.values + 0.005),
        ack_in_packets=("flow", [10, 10]),  # ACKs that meet no queue (`packet_balance`)
    )
    held.encoding = source
    found = held.qb.packets(around_s=1.5, count=200)
    back = found.direction == "to sender"
    assert back.any() and found.queue_delay_ms[back].isna().all()
    queued = held.drop_vars("ack_in_packets")
    queued.encoding = source
    found = queued.qb.packets(around_s=1.5, count=200)
    assert found.queue_delay_ms[back].to_numpy() == pytest.approx(5.0)


def test_tcp_numbers_count_from_the_first_and_wrap(run):
    found = run.qb.packets(around_s=0, flow="tcp:cubic", count=30)
    data = found[found.direction == "to receiver"]
    payload = 1514 - 54
    assert data.seq.tolist() == [i * payload for i in range(len(data))]
    assert set(data.payload_bytes) == {payload}
    assert set(data.window) == {500}
    acks = found[found.direction == "to sender"]
    seen = [(data.time_s < t).sum() * payload for t in acks.time_s]
    assert acks.ack.tolist() == seen
    assert acks.header.iloc[0] == f"ACK, SACK {seen[0]}–{seen[0] + 1448}"
    assert set(found.ecn) == {"ECT(0)"}
    assert set(found.protocol) == {"TCP"}


def test_quic_shows_what_is_not_encrypted(run):
    found = run.qb.packets(around_s=0, flow=0, count=12)
    assert found.header.iloc[0] == "Initial, version 1, dcid aaaaaaaaaaaaaaaa, scid bbbbbbbb + …"
    data = found[found.direction == "to receiver"]
    assert set(data.header.iloc[1:]) == {"1-RTT, spin 1"}
    # No column without a value.
    assert not {"seq", "ack", "window", "ecn"} & set(found.columns)
    assert found.payload_bytes.tolist() == [b - 42 for b in found.frame_bytes]


def test_flows_chosen_from_a_run_keep_their_addresses(run):
    one = run.sel(flow=[1])
    assert set(one.qb.packets(around_s=1, count=9).flow) == {"tcp:cubic"}
    assert one.qb.packets(around_s=1, flow=0, count=9).equals(one.qb.packets(1, count=9))


def test_coalesced_and_other_headers():
    handshake = bytes(QUIC_Handshake(Version=1, DstConnID=b"\x01", Length=30)) + bytes(29)
    whole = initial(Length=21) + bytes(20) + handshake + b"\x40" + bytes(20)
    first = "Initial, version 1, dcid aaaaaaaaaaaaaaaa, scid bbbbbbbb"
    second = "Handshake, version 1, dcid 01, scid –"
    assert quic_words(whole, len(whole)) == f"{first} + {second} + 1-RTT, spin 0"
    assert quic_words(whole[:40], len(whole)) == f"{first} + …"
    padded = initial(Length=21) + bytes(40)
    assert quic_words(padded, len(padded)) == first
    # In version 2, the type of Initial is 1 (RFC 9369).
    two = bytes([0xD0]) + bytes(QUIC_Initial(Version=0x6B3343CF, Length=9))[1:] + bytes(8)
    assert quic_words(two, len(two)) == "Initial, version 6b3343cf, dcid –, scid –"
    choice = bytes(QUIC_Version(DstConnID=b"\x05", SupportedVersions=[1]))
    assert quic_words(choice, len(choice)) == "Version Negotiation, dcid 05, scid –"
    token = initial(TokenLen=90, Token=b"t" * 90, Length=1000)[:86]
    assert quic_words(token, 1200) == first
    assert quic_words(b"\xc0\x00\x00\x00\x01\x08", 1200) == "long header, cut off"


def test_udp_that_is_not_quic_is_called_udp():
    headers = Headers()
    frame = bytes(ETHER / IP(src="10.1.0.1", dst="10.2.0.1") / UDP() / b"\x40 none")
    headers.see("10.1.0.1", frame)
    assert headers.fields(frame) == {"protocol": "UDP", "ecn": "", "payload_bytes": 6}


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"around_s": 4}, "around_s = 4: the run lasts from 0 to 3 s"),
        ({"around_s": -1}, "around_s = -1: the run lasts from 0 to 3 s"),
        ({"around_s": float("nan")}, "around_s = nan: the run lasts from 0 to 3 s"),
        ({"around_s": 1, "count": 0}, "count = 0: give a number of packets from 1 on"),
    ],
)
def test_impossible_wishes_are_one_sentence(run, how, sentence):
    with pytest.raises(TraceError, match=f"^{re.escape(sentence)}$"):
        run.qb.packets(**how)


def test_without_a_capture_it_says_how_to_keep_one(tmp_path):
    save_run(synthetic_run(duration_s=3, rate_mbps=1), tmp_path / "run.nc")
    ds = load_run(tmp_path / "run.nc")
    how = r"no capture of this run was kept; run it again with keep='pcap' .* --keep pcap"
    with pytest.raises(StoreError, match=how):
        ds.qb.packets(around_s=1)
    # The capture of another run has other packets.
    write_capture(
        kept_folder(tmp_path / "run.nc") / "before.pcap",
        synthetic_run(duration_s=3, rate_mbps=1, seed=2),
    )
    with pytest.raises(StoreError, match="damaged, or of another run"):
        ds.qb.packets(around_s=1)
    with pytest.raises(StoreError, match="was imported"):
        ds.assign_attrs(spec="").qb.packets(around_s=1)


def test_the_command_prints_the_table(run):
    words = ["packets", run.encoding["source"], "--around-s", "1.5", "--count", "3"]
    text = CliRunner().invoke(group, words).output
    lines = text.strip().splitlines()
    assert lines[0].split()[:4] == ["packet", "time_s", "flow", "direction"]
    assert len(lines) == 4
    expected = run.qb.packets(1.5, count=3)
    for line, time_s in zip(lines[1:], expected.time_s, strict=True):
        assert f"{time_s:.6f}" in line
    assert "<NA>" not in text
    many = CliRunner().invoke(group, [*words[:-1], "40"]).output
    assert "to sender" in many and " nan " not in many
    assert '"time_s":' in CliRunner().invoke(group, [*words, "--json"]).output
    words[2] = "--at"  # as of replay
    assert CliRunner().invoke(group, words).output == text


@pytest.mark.guest
def test_packets_of_a_real_run(tmp_path):
    experiment = Experiment(flows=["aioquic:reno", "tcp:cubic"], duration_s=3)
    run = experiment.run(out=tmp_path / "run.nc", keep="pcap")
    begin = run.qb.packets(around_s=0, flow="tcp:cubic", count=4)
    assert begin.header.iloc[0].startswith("SYN, MSS 1460, SACK permitted")
    assert begin.header.iloc[1].startswith("SYN, ACK")
    assert begin[["seq", "ack"]].iloc[2].tolist() == [1, 1]
    hello = run.qb.packets(around_s=0, flow="aioquic:reno", count=2)
    assert hello.header.iloc[0].startswith("Initial, version 1")
    middle = run.qb.packets(around_s=2)
    assert len(middle) == 50
    assert set(middle.protocol) == {"QUIC", "TCP"}
    data = middle[(middle.direction == "to receiver") & (middle.fate == "arrived")]
    assert (data.queue_delay_ms > 0).all()
