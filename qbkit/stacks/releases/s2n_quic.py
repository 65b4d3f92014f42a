"""Releases of s2n-quic.

1.17 and earlier are left out: they pin zerocopy 0.6.0, which its authors withdrew.
"""

from __future__ import annotations

from qbkit.stacks.registry import register_releases
from qbkit.stacks.release import SOURCES, Generation, Releases
from qbkit.stacks.releases.crates import OLD_RUSTLS, crate_release
from qbkit.stacks.s2n_quic import S2nQuic
from qbkit.stacks.toolchains.rust import WORKSPACE, folders_above

FOLDER = SOURCES / "s2n-quic"
PRESENT = WORKSPACE / "s2n-quic-flow/src"
NO_BUILDERS = (PRESENT, OLD_RUSTLS, FOLDER / "rustls-0.20", FOLDER / "before-builders")
BEFORE_1_33 = (*NO_BUILDERS, FOLDER / "before-1.33")
CONTROLLERS = ("cubic", "bbr")
OPTIONS = ("max_ack_delay_ms", "pacing", "segmentation", "hystart", "initial_window_packets")
UNSTABLE = {"RUSTFLAGS": "--cfg s2n_quic_unstable"}
"""Without it earlier releases let no program choose a controller."""

RELEASES = Releases(
    name=S2nQuic.name,
    package="crate s2n-quic",
    generations=(
        Generation("1.18.0", (*BEFORE_1_33, FOLDER / "1.18"), CONTROLLERS, OPTIONS[:1]),
        # From here on the crate calls its feature `unstable-congestion-controller`.
        Generation("1.21.0", (*BEFORE_1_33, FOLDER / "1.21"), CONTROLLERS, OPTIONS[:1]),
        Generation("1.27.0", (*BEFORE_1_33, FOLDER / "1.33"), CONTROLLERS, OPTIONS[:1]),
        Generation("1.33.0", (*NO_BUILDERS, FOLDER / "1.33"), CONTROLLERS, OPTIONS[:3]),
        Generation(
            "1.52.0",
            (PRESENT, FOLDER / "1.52"),
            CONTROLLERS,
            OPTIONS,
            above=("apps", "reads_slowly", "offers_window", "ip6"),
            sources_above=folders_above("s2n-quic-flow"),
        ),
    ),
    built=(
        *("1.18.0", "1.20.0", "1.24.0", "1.27.0", "1.30.0", "1.32.0"),
        *("1.33.0", "1.52.0", "1.70.0", "1.80.0", "1.91.0"),
    ),
    make=crate_release(S2nQuic(), "s2n-quic", build_env=UNSTABLE).make,
)

register_releases(RELEASES)
