"""Releases of tquic.

They pace since 0.13; ``pacing_rate_mbps`` of earlier ones is what the controller asked for. The
statistics of a path are public since 0.15: earlier drivers read the qlog, and those before 0.8 the
debug log, which has no round-trip times.
"""

from __future__ import annotations

from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, SOURCES, Generation, Releases
from qbkit.stacks.releases.crates import crate_release
from qbkit.stacks.toolchains.rust import WORKSPACE, folders_above
from qbkit.stacks.tquic import Tquic

FOLDER = SOURCES / "tquic"
PRESENT = (WORKSPACE / "tquic-flow/src", FOLDER / "manifest")
FEWER_KNOBS = (*PRESENT, FOLDER / "before-1.2")
QLOG = (*FEWER_KNOBS, FOLDER / "before-0.15")
LOG = (*QLOG, FOLDER / "before-0.8")
FIRST = (*LOG, FOLDER / "before-0.3")

CONTROLLERS = ("cubic", "bbr", "bbr3", "copa")
ACK = ("max_ack_delay_ms",)
RTT = (*ACK, "initial_rtt_ms")
WINDOWS = (*RTT, "initial_window_packets", "min_window_packets")
PACING = (*WINDOWS, "pacing")
BBR = (
    *PACING,
    "initial_ssthresh_packets",
    "bbr_probe_bw_cwnd_gain",
    "bbr_min_rtt_window_ms",
    "bbr_probe_rtt_ms",
    "bbr_probe_rtt_cwnd_gain",
)
LOGGED = ("cwnd_bytes", "bytes_in_flight", "lost_packets")
ALL = (*LOGGED, "srtt_ms", "min_rtt_ms", "pacing_rate_mbps")

RELEASES = Releases(
    name=Tquic.name,
    package="crate tquic",
    generations=(
        Generation("0.1.0", FIRST, CONTROLLERS, ACK, LOGGED),
        Generation("0.3.0", LOG, CONTROLLERS, RTT, LOGGED),
        Generation("0.4.0", LOG, CONTROLLERS, WINDOWS, LOGGED),
        Generation("0.8.0", QLOG, CONTROLLERS, WINDOWS, ALL),
        Generation("0.13.0", QLOG, CONTROLLERS, PACING, ALL),
        Generation("0.14.0", QLOG, CONTROLLERS, BBR, ALL),
        Generation(
            "0.15.0", FEWER_KNOBS, CONTROLLERS, (*BBR, "pacing_granularity_ms", "qlog"), ALL
        ),
        Generation(
            "1.2.0",
            PRESENT,
            CONTROLLERS,
            tuple(Tquic.options),
            ALL,
            above=ALL_ABOVE,
            sources_above=folders_above("tquic-flow"),
        ),
    ),
    built=(
        *("0.1.0", "0.3.0", "0.4.0", "0.8.1", "0.9.0", "0.10.0"),
        *("0.12.0", "0.13.0", "0.14.0", "0.15.0", "1.1.0", "1.2.0", "1.6.0"),
    ),
    make=crate_release(Tquic(), "tquic", ours=("common", "udp")).make,
)

register_releases(RELEASES)
