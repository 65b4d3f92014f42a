"""Makes the evaluations that notebooks/16_rfc9743.ipynb opens: ten processor minutes a sender.

python data/evaluations/make.py [SENDER ...]

Runs are stored as always, so it can be stopped and started at any time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import qbkit as qb

HERE = Path(__file__).parent
SENDERS = ("tcp:reno", "tcp:cubic", "tcp:bbr", "quinn:cubic", "quinn:bbr", "picoquic:bbr")


def main(senders: list[str]) -> None:
    """Evaluate each sender quickly, and write its file."""
    for sender in senders:
        found = qb.evaluate(sender, quick=True, progress=True)
        qb.save_evaluation(found, HERE / f"{sender.replace(':', '-')}.json")


if __name__ == "__main__":
    main(sys.argv[1:] or list(SENDERS))
