"""Releases of golang.org/x/net, whose package quic is public since 0.22."""

from __future__ import annotations

from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import Generation, Releases, make_release
from qbkit.stacks.releases.go_modules import GoRelease
from qbkit.stacks.x_net_quic import MODULE, SOURCES, XNetQuic


class XNetQuicRelease(GoRelease, XNetQuic):
    """A release of x/net/quic; `_make` makes the class of one."""

    module = MODULE
    present = SOURCES
    files = ("main.go", "end.go", "recv.go", "send.go", "telemetry.go")


def _make(releases: Releases, version: str, generation: Generation) -> XNetQuicRelease:
    return make_release(
        XNetQuicRelease,
        releases,
        version,
        generation,
        source=f"Go module {MODULE} {version}, its package quic",
    )


RELEASES = Releases(
    name=XNetQuic.name,
    package=f"Go module {MODULE}",
    generations=(Generation("0.22.0", (), XNetQuic().controllers()),),
    built=("0.22.0", "0.30.0", "0.40.0", "0.45.0", "0.50.0", "0.55.0", "0.60.0", "0.62.0"),
    make=_make,
)

register_releases(RELEASES)
