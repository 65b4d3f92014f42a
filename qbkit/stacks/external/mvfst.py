"""mvfst (Meta), by its sample program ``tperf``, which is server and client.

Its server sends to any client until the client leaves. Command line: ``tperf --help``, in the
sources the DEFINE_... lines of quic/tools/tperf/tperf.cpp; controllers by their names in
quic/QuicConstants.h. Without pacing its BBRs become CUBIC (validateCongestionAndPacing in
quic/api/QuicTransportBaseLite.cpp), so they are always paced. The others are paced only on request,
as by tperf's default (QUICbench paces all).
"""

from __future__ import annotations

import math
from typing import ClassVar

from qbkit.errors import SpecError
from qbkit.stacks.base import ServingStack, Transfer
from qbkit.stacks.external.launcher import WINDOW_BYTES, External
from qbkit.stacks.registry import register


class Mvfst(External, ServingStack):
    """``tperf -mode=server`` sends to ``tperf -mode=client``."""

    name: ClassVar[str] = "mvfst"
    source: ClassVar[str] = "external: github.com/facebook/mvfst"
    setting: ClassVar[str] = "QBKIT_MVFST"
    programs: ClassVar[tuple[str, ...]] = ("tperf",)
    how: ClassVar[str] = "build tperf of github.com/facebook/mvfst (with its tests)"
    names: ClassVar[dict[str, str]] = {
        "cubic": "cubic",
        "reno": "newreno",
        "bbr": "bbr",
        "bbr2": "bbr2",
        "bbr2modular": "bbr2modular",
        "copa": "copa",
    }
    options: ClassVar[dict[str, str]] = {
        "pacing": "true: send with pacing",
        "latency_factor": "Copa's delta (0.5): a smaller one sends faster, with more delay",
        "qlog": "write a full qlog",
    }

    def serve_argv(self, transfer: Transfer) -> list[str]:
        """The server, which chooses the controller."""
        controller, paced = transfer.controller, transfer.options.get("pacing", False)
        if controller.startswith("bbr"):
            if not transfer.options.get("pacing", True):
                raise SpecError(f"mvfst has no {controller} without pacing; leave pacing out")
            paced = True
        flags = [f"-congestion={self.names[controller]}", f"-pacing={str(bool(paced)).lower()}"]
        if "latency_factor" in transfer.options:
            if controller != "copa":
                raise SpecError(
                    f"latency_factor is of mvfst's copa, not of its {controller}; leave it out"
                )
            flags.append(f"-latency_factor={transfer.options['latency_factor']}")
        if transfer.options.get("qlog"):
            flags.append(f"-server_qlogger_path={transfer.out}")
        return self.listen(transfer.address, [*self._tperf("server", transfer.address), *flags])

    def fetch_argv(self, transfer: Transfer) -> list[str]:
        """The client; tperf takes whole seconds only, so its own limit is a little later."""
        if transfer.duration_s is None:
            raise SpecError(
                "mvfst's tperf sends for a duration, not a number of bytes; leave bytes out"
            )
        limit = [f"-duration={math.ceil(transfer.duration_s) + 1}", f"-window={WINDOW_BYTES}"]
        return self.connect([*self._tperf("client", transfer.address), *limit], transfer.duration_s)

    def _tperf(self, mode: str, address: str) -> list[str]:
        ip, _, port = address.rpartition(":")
        return [self.at("tperf"), f"-mode={mode}", f"-host={ip}", f"-port={port}"]


register(Mvfst())
