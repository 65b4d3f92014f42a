"""Experiments over IPv6: who has it, what they send, and that nothing of IPv4 moves."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conservation import assert_conserved
from scapy.layers.inet import TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

import qbkit as qb
from qbkit import stacks
from qbkit.cli.group import group
from qbkit.errors import SpecError
from qbkit.execution.runner import kept_folder
from qbkit.spec import Experiment
from qbkit.stacks.variants import ip6
from qbkit.testbed.plan import plan_data
from qbkit.traces.run.headers import Headers, source_of

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
HEADER, ETHERNET = 40, 14


def test_experiments_over_ipv4_keep_their_names_and_plans():
    flows = ["tcp:cubic"]
    assert Experiment(flows=flows, ip_version=4).to_json() == Experiment(flows=flows).to_json()
    six = Experiment(flows=flows, ip_version=6)
    assert Experiment.from_json(six.to_json()) == six
    assert six.hash != Experiment(flows=flows).hash
    plan = plan_data(Experiment(flows=flows), [stacks.get("tcp")], "virtual", "capture")
    assert "ip_version" not in plan and plan["flows"][0]["sender_ip"] == "10.1.0.1"


def test_addresses_and_commands():
    assert ip6.address("10.2.3.1") == "fd00::a02:301"
    words = ["serve", "4001", "--listen", "10.2.3.1:4001", "10.2.3.1", "https://10.2.3.1:4001/"]
    assert ip6.command(words, {"10.1.3.1": 4001, "10.2.3.1": 4001}) == [
        *("serve", "4001", "--listen", "[fd00::a02:301]:4001", "fd00::a02:301"),
        "https://[fd00::a02:301]:4001/",
    ]


@pytest.mark.parametrize("stack", stacks.all_stacks(), ids=lambda stack: stack.name)
def test_a_stack_has_ipv6_or_is_refused(stack: stacks.Stack):
    if stack.name in ip6.names():
        assert ip6.with_ip6(stack).controllers() == stack.controllers()
        return
    with pytest.raises(SpecError) as caught:
        qb.run(Experiment(flows=[f"{stack.name}:{stack.controllers()[0]}"], ip_version=6))
    assert str(caught.value).startswith(f"{stack.name} runs over IPv4 alone here; over IPv6 do ")
    assert "\n" not in str(caught.value)


def test_an_application_over_ipv6_is_in_the_driver_that_has_both():
    for name in ("msquic", "tquic"):
        assert ip6.with_ip6(stacks.get(name), app=True).name == f"{name}-app"


def test_the_guide_names_the_stacks_that_lack_it():
    external = {"lsquic-external", "mvfst", "quicly", "xquic"}
    lack = {stack.name for stack in stacks.all_stacks()} - {*ip6.names(), *external}
    guide = (Path(__file__).parents[1] / "docs/howto/own-network.md").read_text()
    assert lack == {"media", "neqo", "qbkit"}
    assert "media, neqo, qbkit and the external stacks know IPv4 alone" in guide


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ip_version": 5}, "ip_version"),
        ({"ip_version": 6, "bottleneck": {"mtu_bytes": 1300}}, "mtu_bytes is for IPv4; leave out"),
        ({"ip_version": 6, "attacks": ["1 reset on-path"]}, "attacks is for IPv4; leave out"),
        (
            {"ip_version": 6, "flows": ["tcp:cubic?receiver=optimistic"]},
            "receiver is for IPv4; leave out",
        ),
    ],
)
def test_what_ipv6_cannot_be_with(fields: dict, words: str):
    with pytest.raises(SpecError, match=words) as caught:
        Experiment(**{"flows": ["tcp:cubic"], **fields})
    assert "\n" not in str(caught.value)


def test_a_file_a_sweep_and_the_command_line(tmp_path):
    file = tmp_path / "six.yaml"
    file.write_text("{flows: [tcp:cubic], ip_version: 6}")
    assert Experiment.from_file(file).ip_version == 6
    sweep = qb.Sweep(name="x", base={"flows": ["tcp:cubic"]}, sweep={"ip_version": [4, 6]})
    assert [point.experiment.ip_version for point in sweep.points()] == [4, 6]
    done = CliRunner().invoke(group, ["run", "neqo:cubic", "--ipv6"])
    assert done.exit_code and "neqo runs over IPv4 alone here" in str(done.exception)


def test_headers_of_version_6_are_dissected():
    ip = ETHER / IPv6(src="fd00::a01:1", dst="fd00::a02:1", tc=3)
    sender, headers = "fd00::a01:1", Headers()
    frames = [
        bytes(ip / TCP(seq=7 + 100 * k, ack=9, flags="A", options=[("NOP", 0)]) / bytes(100))
        for k in range(2)
    ]
    for frame in frames:
        assert source_of(frame) == sender
        headers.see(sender, frame)
    fields = headers.fields(frames[1])
    assert (fields["seq"], fields["payload_bytes"], fields["ecn"]) == (100, 100, "CE")
    datagram = bytes(ip / UDP() / (b"\xc0" + bytes(30)))
    headers.see(sender, datagram)
    assert headers.fields(datagram)["protocol"] == "QUIC"
    assert headers.fields(datagram)["payload_bytes"] == 31


def frames_of(path) -> list[bytes]:
    """The captured bytes of a pcap file of this machine's byte order."""
    octets, at, found = path.read_bytes(), 24, []
    while at < len(octets):
        size = struct.unpack_from("=I", octets, at + 8)[0]
        found.append(octets[at + 16 : at + 16 + size])
        at += 16 + size
    return found


@pytest.mark.guest
@pytest.mark.parametrize("name", ip6.names())
def test_every_stack_that_has_ipv6_speaks_it(name: str, tmp_path):
    flow = f"{name}:{stacks.get(name).controllers()[0]}"
    spec = Experiment(
        bottleneck={"rate_mbps": 20, "rtt_ms": 20}, flows=[flow], duration_s=3, ip_version=6
    )
    run = spec.run(out=tmp_path / "run.nc", keep="pcap")
    assert_conserved(run)
    assert json.loads(run.attrs["warnings"]) == []
    assert float(run.throughput_mbps.sel(time=slice(1, None)).mean()) > 18
    frames = frames_of(kept_folder(tmp_path / "run.nc") / "before.pcap")
    # Nothing but the flow: no neighbours are looked up, no groups joined, and no IPv4.
    assert {frame[12:14] for frame in frames} == {b"\x86\xdd"}
    assert {source_of(frame) for frame in frames} == {"fd00::a01:1", "fd00::a02:1"}
    # The length that the queue counts is that of the header, IPv6's 40 bytes, and Ethernet's.
    data = [frame for frame in frames if source_of(frame) == "fd00::a01:1"]
    lengths = [int.from_bytes(frame[18:20]) + HEADER + ETHERNET for frame in data]
    sizes = run.packet_size_bytes.values.tolist()  # those of the experiment's time
    assert lengths[: len(sizes)] == sizes
    assert len(sizes) > 4000
    table = run.qb.packets(around_s=2.0, count=20)
    assert (table.payload_bytes > 0).any()


@pytest.mark.guest
def test_a_segment_has_20_bytes_less_and_the_link_carries_as_much():
    rates = []
    for version in (4, 6):
        spec = Experiment(
            bottleneck={"rate_mbps": 20, "rtt_ms": 20},
            flows=["tcp:cubic"],
            duration_s=5,
            ip_version=version,
        )
        run = spec.run()
        row = run.qb.summary().iloc[0]
        full = int(run.packet_size_bytes.max())
        rates.append((row.throughput_mbps, row.goodput_mbps / row.throughput_mbps, full))
    # Ethernet, IP, TCP with time stamps, and the rest are data.
    assert [full for *_, full in rates] == [1514, 1514]
    assert rates[0][0] == pytest.approx(rates[1][0], rel=0.01)
    for (_, part, _), header in zip(rates, (20, 40), strict=True):
        assert part == pytest.approx((1514 - 14 - header - 32) / 1514, rel=0.005)


@pytest.mark.guest
@pytest.mark.parametrize("topology", ["dumbbell", "parking_lot"])
def test_what_happens_on_the_path_happens_to_ipv6(topology: str):
    spec = Experiment(
        bottleneck={
            **{"rate_mbps": 20, "rtt_ms": 20, "buffer_bdp": 2},
            **{"qdisc": "fq_codel", "policer_mbps": 18, "delay": [(0, 20), (2, 40)]},
            **{"loss_model": "bursts gap_s=0.5 length_s=0.05", "loss_direction": "both"},
            **{"reorder_percent": 1, "duplicate_percent": 1, "outages": "3:0.2"},
        },
        flows=[
            *("tcp:cubic?app=rate mbps=2 fps=25", "msquic:cubic", "ngtcp2:cubic"),
            qb.Flow("tcp:reno", direction="reverse"),
        ],
        duration_s=4,
        topology=topology,
        ip_version=6,
    )
    run = spec.run()
    assert_conserved(run)
    assert int(run.policer_dropped_packets.sum()) > 0
    assert (run.throughput_mbps.mean("time") > 0.2).all()
    assert len(run.object_size_bytes) > 20


@pytest.mark.guest
def test_marks_and_a_path_that_clears_ecn():
    link = {"rate_mbps": 20, "rtt_ms": 20, "qdisc": "codel", "qdisc_options": {"ecn": True}}
    flows, more = ["tcp:cubic?ecn=true"], {"duration_s": 4, "ip_version": 6}
    marked = Experiment(bottleneck=link, flows=flows, **more).run()
    cleared = Experiment(bottleneck={**link, "bleach_ecn": True}, flows=flows, **more).run()
    for run in (marked, cleared):
        assert_conserved(run)
    assert int(np.nansum(marked.ce_marked_packets)) > 0
    assert "ce_marked_packets" not in cleared
