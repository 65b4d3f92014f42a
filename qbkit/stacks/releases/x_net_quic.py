"""Releases of golang.org/x/net, whose package quic is public since 0.22."""

from __future__ import annotations

from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, SOURCES, Generation, Releases
from qbkit.stacks.releases.go_modules import GoRelease
from qbkit.stacks.x_net_quic import XNetQuic


class XNetQuicRelease(GoRelease, XNetQuic):
    """A release of x/net/quic."""

    origin = f"Go module {XNetQuic.module} {{version}}, its package quic"
    present = XNetQuic.sources
    files = ("main.go", "end.go", "recv.go", "send.go", "telemetry.go")


RELEASES = Releases(
    name=XNetQuic.name,
    package=f"Go module {XNetQuic.module}",
    generations=(
        Generation(
            "0.22.0",
            (),
            XNetQuic.controller_names,
            above=ALL_ABOVE,
            sources_above=(SOURCES / "x-net-quic/above-before-0.59",),
        ),
        Generation("0.59.0", (), XNetQuic.controller_names, above=ALL_ABOVE),
    ),
    built=("0.22.0", "0.30.0", "0.40.0", "0.45.0", "0.50.0", "0.55.0", "0.60.0", "0.62.0"),
    make=XNetQuicRelease.make,
)

register_releases(RELEASES)
