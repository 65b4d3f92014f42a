"""Command line of the driver.

aioquic_flow recv --listen IP:PORT --cert FILE --key FILE --out DIR [--option qlog=true]
aioquic_flow send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR [...]
"""

from __future__ import annotations

import argparse
import gc
import sys

from .ends import LOST_CONNECTION, ConnectionLost, write_end
from .failure import FlowFailed
from .receiver import receive
from .sender import send
from .signals import StopSignal


def parse(words: list[str]) -> argparse.Namespace:
    """Parse the command line; on an error exit with status 2 and the usage."""
    parser = argparse.ArgumentParser(prog="aioquic_flow", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    recv, sends = commands.add_parser("recv"), commands.add_parser("send")
    recv.add_argument("--listen", dest="address", required=True)
    recv.add_argument("--cert", required=True)
    recv.add_argument("--key", required=True)
    sends.add_argument("--connect", dest="address", required=True)
    sends.add_argument("--controller", required=True)
    limit = sends.add_mutually_exclusive_group(required=True)
    limit.add_argument("--duration-s", type=float)
    limit.add_argument("--bytes", dest="size_bytes", type=int)
    for command in (recv, sends):
        command.add_argument("--out", required=True)
        command.add_argument("--option", action="append", default=[], choices=QLOG)
    return parser.parse_args(words)


QLOG = {"qlog=true": True, "qlog=false": False}


def main() -> int:
    """Run the command; return the exit code. A failure is one sentence on stderr."""
    args = parse(sys.argv[1:])
    qlog = any(QLOG[word] for word in args.option)
    stop = StopSignal()
    gc.freeze()  # imported objects stay, so keep the collector from scanning them
    try:
        if args.command == "recv":
            receive(args.address, args.cert, args.key, args.out, qlog, stop)
        else:
            limit = {"duration_s": args.duration_s, "size_bytes": args.size_bytes}
            send(args.address, args.controller, args.out, qlog, stop, **limit)
    except ConnectionLost as lost:
        write_end(lost.report, args.out, "sender")
        return LOST_CONNECTION
    except (FlowFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
