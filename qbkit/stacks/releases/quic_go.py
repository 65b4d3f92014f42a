"""Releases of quic-go.

0.36 and earlier are left out: they carry copies of the standard library's TLS (qtls) for Go 1.20
and older alone.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.quic_go import MODULE, SOURCES, QuicGo
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, Generation, Releases
from qbkit.stacks.release import SOURCES as ADAPTERS
from qbkit.stacks.releases.go_modules import GoRelease

UPLOADS_ABOVE = ("uploads-above",)
INTERFACES_ABOVE = (*UPLOADS_ABOVE, "interfaces-above")


class QuicGoRelease(GoRelease, QuicGo):
    """A release of quic-go.

    Its driver has the present one's files for flows of its own; the others serve browsers and the
    web.
    """

    origin = f"Go module {MODULE} {{version}}; CUBIC by one changed Boolean"
    options: ClassVar[dict[str, str]] = {}
    module = MODULE
    present = SOURCES
    files = (
        *("main.go", "recv.go", "send.go", "socket.go", "sampler.go", "types.go", "telemetry.go"),
        "end.go",
    )
    changed_above = ("roles.go",)


def _generation(since: str, *folders: str, above: tuple[str, ...] = UPLOADS_ABOVE) -> Generation:
    sources, more = (
        tuple(ADAPTERS / "quic-go" / name for name in names) for names in (folders, above)
    )
    return Generation(since, sources, ("cubic", "reno"), above=ALL_ABOVE, sources_above=more)


RELEASES = Releases(
    name=QuicGo.name,
    package=f"Go module {MODULE}",
    generations=(
        _generation(
            "0.37.0", "uploads", "common", "tracer_interface", "interfaces", above=INTERFACES_ABOVE
        ),
        _generation("0.40.0", "uploads", "common", "logging", "interfaces", above=INTERFACES_ABOVE),
        _generation("0.53.0", "uploads", "common", "logging"),
        _generation("0.56.0", "uploads"),
    ),
    built=("0.37.5", "0.41.0", "0.45.0", "0.48.2", "0.52.0", "0.55.0", "0.59.1", "0.65.0"),
    make=QuicGoRelease.make,
)

register_releases(RELEASES)
