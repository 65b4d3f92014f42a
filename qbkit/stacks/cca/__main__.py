"""The driver aioquic_flow with the controllers of this package; its command line, and their knobs.

cca recv --listen IP:PORT --cert FILE --key FILE --out DIR [--option KNOB=VALUE ...]
cca send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR [...]
"""

from __future__ import annotations

import argparse
import runpy
import sys
from functools import partial

from aioquic.quic import recovery  # noqa: F401 (fills the registry, which is ours after it)
from aioquic.quic.congestion.base import register_congestion_control
from aioquic_flow import receiver, sender

from . import telemetry
from .bbr import Bbr
from .connection import ReceivingConnection, SendingConnection, install
from .cubic import Cubic
from .knobs import Knobs, read_knobs
from .reno import Reno

CONTROLLERS: dict[str, type[Bbr | Cubic | Reno]] = {"bbr": Bbr, "cubic": Cubic, "reno": Reno}


def prepare(knobs: Knobs) -> None:
    """The driver's connections are ours from now on, and so are its controllers and telemetry."""
    install()
    telemetry.install()
    for name, controller in CONTROLLERS.items():
        register_congestion_control(name, partial(controller, knobs))
    sender.QuicConnection = SendingConnection
    receiver.QuicConnection = partial(
        ReceivingConnection, ack_every_packets=knobs.ack_every_packets
    )


def main() -> None:
    """Take the knobs away; the rest of the command line is the driver's."""
    parser = argparse.ArgumentParser(prog="cca", allow_abbrev=False, add_help=False)
    parser.add_argument("--controller")
    parser.add_argument("--option", action="append", default=[])
    ours, theirs = parser.parse_known_args()
    knobs = [word for word in ours.option if not word.startswith("qlog=")]
    try:
        prepare(read_knobs(knobs, ours.controller))
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    if ours.controller:
        theirs += ["--controller", ours.controller]
    for word in sorted(set(ours.option) - set(knobs)):
        theirs += ["--option", word]
    sys.argv[1:] = theirs
    runpy.run_module("aioquic_flow", run_name="__main__")


main()
