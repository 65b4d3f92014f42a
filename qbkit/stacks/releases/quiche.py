"""Releases of quiche.

Up to 0.25 its BBR and BBRv2 are its own; since 0.26 the only BBR is the BBRv2 that it took over
from Google QUICHE, and before 0.16 it has none.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.quiche import Quiche
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import SOURCES, Generation, Releases
from qbkit.stacks.releases.crates import crate_release
from qbkit.stacks.toolchains.rust import WORKSPACE, folders_above

FOLDER = SOURCES / "quiche"
PRESENT = WORKSPACE / "quiche-flow/src"
BY_NAME = FOLDER / "by-name"
ONE_PATH = FOLDER / "one-path"
PATHS = FOLDER / "paths"
LOSS_BASED = ("cubic", "reno")
OPTIONS = ("hystart",)


FEED = folders_above("quiche-flow")


def _generation(
    since: str, *folders: Path, bbr: tuple[str, ...] = (), resumes: bool = False
) -> Generation:
    return Generation(
        since,
        (PRESENT, BY_NAME, *folders),
        (*LOSS_BASED, *bbr),
        OPTIONS,
        reports=Quiche.reports,
        above=("apps", "ip6", *(["resumes"] if resumes else [])),
        sources_above=FEED if resumes else (*FEED, FOLDER / "above-before-0.26"),
        # With pacing, these releases take bytes without end, and send them long after an on-time.
        without=() if resumes else ("onoff",),
    )


RELEASES = Releases(
    name=Quiche.name,
    package="crate quiche",
    generations=(
        _generation("0.9.0", ONE_PATH),
        _generation("0.16.0", PATHS, bbr=("bbr",)),
        _generation("0.20.0", PATHS, bbr=("bbr", "bbr2")),
        _generation("0.24.0", bbr=("bbr", "bbr2")),
        _generation("0.26.0", bbr=("bbr2",), resumes=True),
    ),
    built=("0.9.0", "0.12.0", "0.16.0", "0.18.0", "0.20.1", "0.22.0", "0.24.5", "0.26.1", "0.30.0"),
    make=crate_release(Quiche(), "quiche", ours=("common", "udp")).make,
)

register_releases(RELEASES)
