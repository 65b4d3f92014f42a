"""Releases of noq, counted by ``noq-proto``, the crate with its controllers.

Before 1.0 its BBR is quinn's BBRv1; since then it is BBRv3.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.noq import Noq
from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import ALL_ABOVE, SOURCES, Generation, Releases
from qbkit.stacks.releases.crates import crate_release
from qbkit.stacks.releases.quinn import FEED
from qbkit.stacks.toolchains.rust import WORKSPACE

FOLDER = SOURCES / "noq"
QUINN = WORKSPACE / "quinn-flow/src"
PRESENT = WORKSPACE / "noq-flow/src"
LOSS_BASED = ("cubic", "newreno")


def _generation(
    since: str,
    *folders: Path,
    bbr: str,
    others: tuple[tuple[str, str], ...] = (),
    above: tuple[str, ...] = (),
) -> Generation:
    return Generation(
        since,
        (QUINN, *folders, FOLDER / "crate"),
        (*LOSS_BASED, bbr),
        tuple(Noq.options),
        others=others,
        above=above,
        sources_above=FEED if above else (),
    )


RELEASES = Releases(
    name=Noq.name,
    package="crate noq-proto",
    generations=(
        # Up to here the crate noq counts one ahead.
        _generation("0.16.0", FOLDER / "0.16", bbr="bbr", others=(("noq", "0.17.0"),)),
        _generation("0.17.0", FOLDER / "0.16", bbr="bbr", others=(("noq", "0.18.0"),)),
        _generation("1.0.0", PRESENT, FOLDER / "1.0", bbr="bbr3", above=ALL_ABOVE),
        _generation("1.2.0", PRESENT, bbr="bbr3", above=ALL_ABOVE),
    ),
    built=("0.16.0", "0.17.0", "1.0.0", "1.0.1", "1.1.1", "1.2.0", "1.3.0", "1.4.0"),
    make=crate_release(Noq(), "noq-proto").make,
)

register_releases(RELEASES)
