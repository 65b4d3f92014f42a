"""The driver aioquic_flow with a controller of `qbkit.cca`; its command line, and more options.

cca_flow recv --listen IP:PORT --cert FILE --key FILE --out DIR [--option NAME=VALUE ...]
cca_flow send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR [...]
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from aioquic.quic import recovery  # noqa: F401 (fills the registry, which is ours after it)
from aioquic.quic.congestion.base import register_congestion_control
from aioquic_flow import receiver, sender
from aioquic_flow.link import open_socket

from qbkit.cca.builtin.fq_detect import FqDetect
from qbkit.cca.controller import Settings
from qbkit.cca.names import builtin
from qbkit.cca.options import COMMON, read_options
from qbkit.cca.shipped import ControllerError, load, unpack

from . import companion, connection, pair
from .adapter import Adapter
from .ecn import EcnSocket
from .guard import Guard
from .telemetry import Telemetry


def prepare_sender(name: str, source: str | None, words: Sequence[str]) -> None:
    """The driver's connections are ours from now on, and so are its controller and telemetry."""
    kind = load(unpack(source), name) if source else builtin(name)
    options = read_options(words, kind.all_options(), f"qbkit:{name}")

    def make(*, max_datagram_size: int) -> Adapter:
        settings, guard = Settings(max_datagram_size, options), Guard(name)
        return Adapter(guard.make(kind, settings) if source else kind(settings), guard)

    connection.install_extension()
    connection.install_recovery()
    register_congestion_control(name, make)
    sender.Connection = connection.SendingConnection
    if kind.uses_ecn:
        sender.open_socket = open_marking_socket
    sender.Telemetry = Telemetry
    if kind is FqDetect:
        sender.send = pair.send


def prepare_receiver(words: Sequence[str]) -> None:
    """A receiver does not know its flow's controller, and leaves that one's options alone."""
    ours = [word for word in words if word.partition("=")[0] in COMMON]
    options = read_options(ours, COMMON, "qbkit")
    ecn = connection.EcnCounter()

    def open_counting_socket() -> EcnSocket:
        ecn.socket = EcnSocket(open_socket())
        return ecn.socket

    connection.install_extension()
    receiver.open_socket = open_counting_socket
    receiver.Connection = partial(
        connection.ReceivingConnection, ack_every_packets=options["ack_every_packets"], ecn=ecn
    )


def open_marking_socket() -> EcnSocket:
    """The driver's, whose packets are ECT(0)."""
    marking = EcnSocket(open_socket())
    marking.mark()
    return marking


def main() -> None:
    """Take the options away; the rest of the command line is the driver's."""
    parser = argparse.ArgumentParser(prog="cca_flow", allow_abbrev=False, add_help=False)
    parser.add_argument("--controller")
    parser.add_argument("--source")
    parser.add_argument("--out", required=True)
    parser.add_argument("--option", action="append", default=[])
    ours, theirs = parser.parse_known_args()
    words = [word for word in ours.option if not word.startswith("qlog=")]
    try:
        if ours.controller:
            prepare_sender(ours.controller, ours.source, words)
            theirs += ["--controller", ours.controller]
        else:
            prepare_receiver(words)
            if companion.OPTION in words:
                ours.out = companion.fork(ours.out)
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    for word in sorted(set(ours.option) - set(words)):
        theirs += ["--option", word]
    sys.argv[1:] = [*theirs, "--out", ours.out]
    try:
        runpy.run_module("aioquic_flow", run_name="__main__")
    except ControllerError as error:
        sentence, _, details = str(error).partition("\n")
        print(sentence, file=sys.stderr)
        (Path(ours.out) / "failure.txt").write_text(details)
        sys.exit(1)


if __name__ == "__main__":
    main()
