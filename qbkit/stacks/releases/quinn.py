"""Releases of quinn, counted by ``quinn-proto``, the crate with its controllers."""

from __future__ import annotations

from qbkit.stacks.quinn import Quinn
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, SOURCES, Generation, Releases
from qbkit.stacks.releases.crates import OLD_RUSTLS, crate_release
from qbkit.stacks.toolchains.rust import WORKSPACE, folders_above

FOLDER = SOURCES / "quinn"
NEWEST = (WORKSPACE / "quinn-flow/src", FOLDER / "0.11")
OLD_TLS = (OLD_RUSTLS, FOLDER / "rustls-0.20")
WITH_MTU = (*NEWEST, *OLD_TLS, FOLDER / "0.10")
FIXED_MTU = (*WITH_MTU, FOLDER / "0.9")
FEED = folders_above("quinn-flow")
CONTROLLERS = ("cubic", "newreno", "bbr")
OPTIONS = ("initial_window_packets", "packet_threshold", "segmentation", "ack_every_packets")

RELEASES = Releases(
    name=Quinn.name,
    package="crate quinn-proto",
    generations=(
        Generation(
            "0.8.0",
            (*FIXED_MTU, FOLDER / "0.8"),
            CONTROLLERS,
            OPTIONS[:2],
            reports=("cwnd_bytes", "srtt_ms"),
        ),
        Generation("0.9.0", FIXED_MTU, CONTROLLERS, OPTIONS[:3]),
        Generation("0.10.0", WITH_MTU, CONTROLLERS, OPTIONS[:3]),
        Generation("0.11.0", NEWEST, CONTROLLERS, OPTIONS),
        # The crate quinn 0.11.9 asks for 0.11.12 or later, but calls a method that this one lacks.
        Generation("0.11.12", NEWEST, CONTROLLERS, OPTIONS, others=(("quinn", "0.11.8"),)),
        # From here on quinn lets a program bound what waits in a connection.
        Generation("0.11.14", NEWEST, CONTROLLERS, OPTIONS, above=ALL_ABOVE, sources_above=FEED),
    ),
    built=("0.8.4", "0.9.6", "0.10.6", "0.11.2", "0.11.8", "0.11.12", "0.11.14"),
    make=crate_release(Quinn(), "quinn-proto").make,
)

register_releases(RELEASES)
