"""quiche 0.7.0: a release whose CUBIC never reverts a window reduction.

Later releases do, as after a spurious loss ("Detecting spurious congestion events" in the crate's
cubic.rs): 0.8.1 to 0.10.0 when fewer than ten packets were lost, 0.12.0 to 0.30.0 when fewer than
20 % of the window were. A full queue seldom drops more at a time, so few of their reductions last.
0.7.0 uses QUIC draft 29 at both ends of a flow, does not pace, and has a fixed initial window.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from qbkit.stacks.base import Stack
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.above import with_above
from qbkit.stacks.toolchains.rust import CMAKE, RustStack, workspace_beside


class Quiche07(RustStack):
    """Our small driver of an old release, beside `qbkit.stacks.quiche`."""

    name = "quiche-0.7"
    source = "crate quiche, version 0.7.0"
    controller_names = ("cubic", "reno")
    crate = "quiche"
    workspace = Path(__file__).parent / "drivers/rust-quiche-0.7"
    reads_slowly = offers_window = False
    certificate = "browser-"
    tools: ClassVar[dict[str, str]] = CMAKE
    minutes = 3
    reports = ("cwnd_bytes", "srtt_ms", "lost_packets")
    options: ClassVar[dict[str, str]] = {"hystart": "false: CUBIC and Reno without HyStart++"}

    def for_app(self) -> Stack:
        """Its driver with something above the transport."""
        members = {self._program(): ("rust", "quiche-streams", "quiche-0.7")}
        workspace = workspace_beside(self.workspace, members)
        return with_above(self, workspace=workspace, target=self.target)

    def _program(self) -> str:
        return "quiche-flow"  # cargo allows no dot in a package's name


register(Quiche07())
