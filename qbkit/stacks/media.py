"""Video over RTP, with Google congestion control or SCReAM: no transfer, but frames that must come.

The sender makes 30 frames each second, as large as its controller's target rate allows (the encoder
of RFC 8593, section 5), and sends them as RTP packets of 1200 bytes. ``gcc`` is pion's Google
congestion control with its pacer and transport-wide feedback each 100 ms; it has no probing, so its
rate grows by 8 % each second. ``scream`` is Ericsson's SCReAM (RFC 8298) with feedback of RFC 8888.

A lost packet is sent again once the receiver asks for it (NACK), as a new packet of the same
stream. Frames are shown in order; after 3 s without one the receiver asks for a key frame (PLI).
The ``objects`` of a run's dataset are the frames; one that was never shown has not arrived.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from qbkit.errors import SpecError
from qbkit.stacks.base import Options, Transfer
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.golang import GO, GoStack

MODULES = {"gcc": "github.com/pion/interceptor", "scream": "github.com/mengelbart/scream-go"}
DEFAULTS = {"min_kbps": 150.0, "start_kbps": 1000.0, "max_mbps": 50.0, "fps": 30.0}
MOST = {"min_kbps": 1e6, "start_kbps": 1e6, "max_mbps": 1e3, "fps": 240.0}


class Media(GoStack):
    """Our Go driver of pion's interceptors and of scream-go."""

    name = "media"
    source = "Go modules pion/interceptor and mengelbart/scream-go"
    controller_names = tuple(MODULES)
    module = MODULES["gcc"]
    sources = Path(__file__).parent / "drivers/media"
    tools: ClassVar[dict[str, str]] = {**GO, "g++": "g++"}
    minutes = 2
    cgo = True
    flags = (
        "-trimpath",
        "-tags=netgo,osusergo",
        "-ldflags=-s -w -linkmode external -extldflags -static",
    )
    bulk = False
    reports = ("pacing_rate_mbps", "delivery_rate_mbps", "latest_rtt_ms")
    options: ClassVar[dict[str, str]] = {
        "min_kbps": "least target rate in kbit/s; 150 by default (gcc: unless 10 % are lost)",
        "start_kbps": "first target rate in kbit/s; 1000 by default",
        "max_mbps": "largest target rate in Mbit/s; 50 by default",
        "fps": "frames each second; 30 by default",
    }

    def check(self, controller: str, options: Options, source: str | None) -> None:
        """As every stack, and rates are numbers in order."""
        super().check(controller, options, source)
        for name, value in options.items():
            if isinstance(value, str | bool) or not 0 < value <= MOST[name]:
                raise SpecError(
                    f"media's option {name} is {value!r}; "
                    f"give a number above 0 and up to {MOST[name]:g}"
                )
        least, first, most = _rates_kbps(options)
        if not least <= first <= most:
            raise SpecError(
                f"media's target rate cannot start at {first:g} kbit/s, outside of {least:g} to "
                f"{most:g} kbit/s; change start_kbps, min_kbps or max_mbps"
            )

    def version(self) -> str:
        """Versions of both modules, and of our driver."""
        return f"{super().version()}, scream-go {self.required(MODULES['scream'])}"

    def send_argv(self, transfer: Transfer) -> list[str]:
        """As every driver, with the defaults of the options that are not set."""
        return super().send_argv(replace(transfer, options={**DEFAULTS, **transfer.options}))

    def receiver_options(self, controller: str, options: Options) -> Options:
        """None: the receiver answers what comes."""
        return {}


def _rates_kbps(options: Options) -> tuple[float, float, float]:
    """Least, first and largest target rate."""
    wanted = {**DEFAULTS, **options}
    least, first, most = (float(wanted[name]) for name in ("min_kbps", "start_kbps", "max_mbps"))
    return least, first, most * 1e3


register(Media())
