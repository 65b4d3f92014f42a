"""The emulated network as physics: rate, delay, buffer, loss, topology. Real flows, real guests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conservation import assert_conserved, busy_rate_mbps
from hypothesis import given
from hypothesis import strategies as st

from qbkit.errors import RunFailed
from qbkit.metrics.flows.lookup import delivered_packets
from qbkit.spec import QDISC_OPTIONS, Bottleneck, Experiment, Flow
from qbkit.testbed import engines
from qbkit.testbed.links import large_packets

pytestmark = pytest.mark.guest


def run(flows, *, duration_s=10.0, jitter_ms=0.0, seed=1, topology="dumbbell", **link):
    """A run of flows over a link, in which no packet is unaccounted for."""
    experiment = Experiment(
        bottleneck=Bottleneck(**link),
        flows=flows,
        duration_s=duration_s,
        jitter_ms=jitter_ms,
        seed=seed,
        topology=topology,
    )
    found = experiment.run(engine="virtual")
    assert_conserved(found)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One CUBIC flow over the default link, without jitter."""
    experiment = Experiment(flows=["tcp:cubic"], duration_s=20, jitter_ms=0.0)
    return experiment.run(engine="virtual", out=tmp_path_factory.mktemp("link") / "alone.nc")


def test_rate_is_exact(alone):
    # While packets wait, the link carries its rate: 20 Mbit/s of Ethernet frames.
    arrival, departure = alone.packet_time_s.values, alone.packet_departure_s.values
    out = np.isfinite(departure)
    arrival, departure = arrival[out], departure[out]
    size = alone.packet_size_bytes.values[out].astype(float)
    assert busy_rate_mbps(arrival, departure, size) == pytest.approx(20, rel=1e-3)


@pytest.mark.parametrize("frames", [1, 4])
def test_a_burst_of_frames_and_then_the_rate(frames):
    ds = run(["tcp:cubic"], burst_packets=frames)
    departure_s = ds.packet_departure_s.values
    left = np.isfinite(departure_s)
    departure_s, size = departure_s[left], ds.packet_size_bytes.values[left].astype(float)
    bytes_per_s, bucket_bytes = 20e6 / 8, 1514 * frames
    # The initial window of ten packets arrives at once, after the pause of the handshake, whose
    # last ACK has just taken 66 bytes from the bucket: 26 µs. A full frame takes 606 µs.
    first = np.flatnonzero(size > 1000)[:10]
    gaps_s = np.diff(departure_s[first])
    assert (gaps_s[: frames - 1] < 27e-6).all()
    assert gaps_s[frames - 1 :] == pytest.approx(1514 / bytes_per_s, rel=0.02)
    # A token bucket: no span carries more than the rate does in it and the bucket, and some do.
    above = np.cumsum(size) - bytes_per_s * departure_s
    most_bytes = (above - np.minimum.accumulate(above - size)).max()
    assert bucket_bytes - 100 < most_bytes < bucket_bytes + 100
    # While packets wait, the link carries its rate, whatever the bucket.
    busy = (departure_s > 5) & (departure_s < 9)
    carried_bytes, span_s = size[busy][1:].sum(), np.ptp(departure_s[busy])
    assert carried_bytes / span_s == pytest.approx(bytes_per_s, rel=1e-3)


def test_base_rtt_is_exact(alone):
    assert float(alone.min_rtt_ms.min()) == pytest.approx(50, abs=0.010)


@pytest.mark.parametrize("extra_ms", [0.0, 30.0])
def test_extra_rtt_of_a_flow(extra_ms):
    flow = Flow("tcp", "reno", extra_rtt_ms=extra_ms)
    ds = run([flow, "tcp:reno"], duration_s=3, rate_mbps=5, rtt_ms=20)
    found = ds.min_rtt_ms.min("time").values
    assert found == pytest.approx([20 + extra_ms, 20], abs=0.010)
    assert ds.base_rtt_ms.values == pytest.approx([20 + extra_ms, 20])


def test_jitter_keeps_the_mean_and_the_order():
    ds = run(["tcp:cubic"], duration_s=5, jitter_ms=0.5)
    # Packets of a sender reach the queue in the order they were sent: TCP sees no reordering, so
    # nothing is retransmitted but what the queue dropped.
    dropped = int(np.isnan(ds.packet_departure_s).sum())
    assert int(ds.retransmits.max()) <= dropped
    assert 49.5 <= float(ds.min_rtt_ms.min()) <= 50.0


def test_fifo_holds_its_bytes_to_within_one_packet(alone):
    arrival, departure = alone.packet_time_s.values, alone.packet_departure_s.values
    size = alone.packet_size_bytes.values.astype(int)
    dropped = np.flatnonzero(np.isnan(departure))
    assert len(dropped) > 5
    limit = alone.attrs["queue_bytes"]
    for i in dropped:
        inside = (arrival[:i] <= arrival[i]) & (departure[:i] > arrival[i])
        assert limit - 1514 < size[:i][inside].sum() <= limit


def test_link_is_filled_and_checks_are_clean(alone):
    assert float(alone.throughput_mbps.sel(time=slice(5, 19)).mean()) == pytest.approx(20, rel=0.02)
    assert json.loads(alone.attrs["warnings"]) == []
    assert alone.attrs["max_frame_bytes"] == 1514
    assert alone.attrs["capture_drops"] == 0


@pytest.mark.parametrize("qdisc", sorted(QDISC_OPTIONS))
def test_every_qdisc_carries_the_rate(qdisc):
    ds = run(["tcp:cubic", "tcp:cubic"], duration_s=6, rate_mbps=10, rtt_ms=20, qdisc=qdisc)
    assert float(ds.throughput_mbps.sum("flow").sel(time=slice(2, 5)).mean()) > 8.5
    assert float(ds.queue_delay_ms.max()) < 60


def test_qdisc_options_reach_the_queue():
    slow = run(["tcp:cubic"], duration_s=6, qdisc="fq_codel", qdisc_options={"target": "5ms"})
    lazy = run(["tcp:cubic"], duration_s=6, qdisc="fq_codel", qdisc_options={"target": "45ms"})
    later = slice(3, 6)
    assert float(slow.queue_delay_ms.sel(time=later).mean()) < float(
        lazy.queue_delay_ms.sel(time=later).mean()
    )


def test_a_value_that_a_queue_rejects_is_one_sentence():
    with pytest.raises(RunFailed, match=r"^tc cannot configure r1: .*Invalid argument$"):
        run(["tcp:cubic"], duration_s=0.1, qdisc="sfq", qdisc_options={"divisor": 3})


PATIENT = {"target": "1s", "interval": "10s"}
"""Options with which CoDel leaves the queue to fill."""


@pytest.mark.parametrize(
    ("qdisc", "options"),
    [
        ("fifo", {}),
        ("fq", {}),
        ("sfq", {}),
        ("cake", {"rtt": "10s"}),
        ("codel", PATIENT),
        ("fq_codel", PATIENT),
        ("pie", {"target": "1s"}),
    ],
)
def test_packet_buffer_counts_packets(qdisc, options):
    link = {"rate_mbps": 10, "rtt_ms": 20, "buffer_packets": 20}
    ds = run(["tcp:cubic"], duration_s=6, qdisc=qdisc, qdisc_options=options, **link)
    # A full queue of 20 frames of 1514 bytes at 10 Mbit/s drains in 24.2 ms, one frame in 1.2 ms.
    queueing_ms = delivered_packets(ds, 0)[2]
    assert float(queueing_ms.max()) == pytest.approx(24.2, abs=1.3)


def test_random_loss():
    ds = run(["tcp:bbr"], duration_s=20, loss_percent=2.0, buffer_bdp=10)
    steady = ds.packet_time_s.values > 5
    lost = np.isnan(ds.packet_departure_s.values)[steady]
    # 25,000 packets: 2 % ± 5 standard deviations of 0.09 %.
    assert lost.mean() == pytest.approx(0.02, abs=0.0045)
    # BBR fills no queue of ten BDP: nothing of it is a drop.
    assert float(ds.dropped_packets.sum()) == 0
    assert float(ds.random_loss_packets.sum()) == np.isnan(ds.packet_departure_s).sum()


def test_start_stop_and_bytes():
    flows = [Flow("tcp", "cubic", stop_s=3), Flow("tcp", "cubic", start_s=4, bytes=1_000_000)]
    ds = run(flows, duration_s=8)
    # Late acknowledgements draw small resets from the host of a sender that has ended.
    ds = ds.isel(packet=ds.packet_size_bytes.values > 100)
    first = ds.packet_flow.values == 0
    # Each starts within 10 RTTs of its start_s, and stops at its stop_s or after its bytes.
    starts_s = ds.start_s.values
    assert 0 < starts_s[0] < 0.5
    assert 4 < starts_s[1] < 4.5
    assert ds.packet_time_s.values[first].min() == pytest.approx(starts_s[0] + 0.075, abs=0.01)
    assert ds.packet_time_s.values[first].max() < 3.05
    # The handshake takes 50 ms, the first data another 25 ms to the queue.
    assert ds.packet_time_s.values[~first].min() == pytest.approx(starts_s[1] + 0.075, abs=0.01)
    assert int(ds.receiver_bytes[1]) == 1_000_000


@pytest.mark.parametrize("stack", ["quinn", "s2n-quic"])
def test_a_goodbye_may_take_as_long_as_a_deep_queue(stack):
    # A QUIC sender keeps a closed connection for three probe timeouts, and here an RTT takes 2.6 s.
    flows = [f"{stack}:cubic", "tcp:cubic"]
    found = run(flows, duration_s=20, rate_mbps=2, rtt_ms=40, buffer_bdp=64)
    assert np.nanmax(found["srtt_ms"]) > 2000


def test_parking_lot_fills_both_links():
    ds = run(["tcp:cubic"] * 3, duration_s=15, topology="parking_lot", rate_mbps=10, rtt_ms=20)
    mean = ds.throughput_mbps.sel(time=slice(5, 15)).mean("time").values
    assert mean[0] + mean[1] == pytest.approx(10, rel=0.03)
    assert mean[0] + mean[2] == pytest.approx(10, rel=0.03)
    delay_ms = ds.queue_delay_ms.sel(time=slice(5, 15)).mean("time").values
    assert delay_ms[0] == pytest.approx(delay_ms[1] + delay_ms[2], rel=0.2)  # it meets both queues


def test_many_flows():
    ds = run(["tcp:cubic"] * 12, duration_s=4, rate_mbps=50, rtt_ms=10)
    assert ds.sizes["flow"] == 12
    assert len(set(ds.label.values)) == 12
    assert (ds.receiver_bytes > 0).all()


def test_host_engine_in_physical_time():
    # A guest without time travel is a Linux host with root and netem: the engine runs for real.
    # It sees the project and its packages at fixed paths, wherever they are here.
    project = Path(__file__).parents[1]
    mounts = {"/mnt": str(project), "/srv": str(Path(np.__file__).parents[1])}
    python = str(Path(sys.executable).resolve())
    words = [
        "/usr/bin/env",
        "PYTHONPATH=/mnt:/srv",
        python,
        "-B",
        "/mnt/tests/guest_host_engine.py",
    ]
    done = engines.run_in_guest(words, mounts=mounts, time_travel=False)
    assert done["exit"] == 0, done["output"]
    report = json.loads(done["output"].splitlines()[-1])
    result = report["result"]
    seconds = (result["end_ns"] - result["t0_ns"]) / 1e9
    # Physical time: a busy machine is late and sends less, but never early and never more.
    assert 2.99 < seconds < 10
    sent_mbps = result["qdiscs"][0][0]["bytes"] * 8 / seconds / 1e6
    assert 0.5 < sent_mbps < 5.5
    assert report["sizes"]["before.pcap"] > report["sizes"]["after.pcap"] > 10_000


@given(st.integers(1, 1500), st.sampled_from([(4, 0), (6, 40)]))
def test_filters_cover_the_sizes_that_they_should(least: int, of_version: tuple[int, int]):
    version, header = of_version
    link = Bottleneck(reorder_percent=1, reorder_min_bytes=least)
    found = [match.split()[5:7] for match in large_packets(link, version)["matches"]]
    pairs = [(int(value, 16), int(mask, 16)) for value, mask in found]
    for size in {header + 1, least - 1, least, least + 1, 1500} - set(range(header)):
        # IPv6 counts what follows its header; no packet is shorter than that.
        chosen = sum((size - header) & mask == value for value, mask in pairs)
        assert chosen == (size >= least or least <= header)
