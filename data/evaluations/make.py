"""Makes the evaluations that notebooks/16_rfc9743.ipynb opens: ten processor minutes a sender.

python data/evaluations/make.py [SENDER ...]

Runs are stored as always, so it can be stopped and started at any time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import qbkit as qb

HERE = Path(__file__).parent
SENDERS = (
    *("tcp:reno", "tcp:cubic", "tcp:bbr", "tcp:dctcp"),
    *("quinn:cubic", "quinn:bbr", "quic-go:cubic", "s2n-quic:cubic", "noq:bbr3"),
    *("picoquic:bbr", "picoquic:c4", "picoquic:prague", "google-quiche:bbr2"),
    *("qbkit:copa", "qbkit:ledbat", "qbkit:quic-dc"),
)
WHOLE = ("tcp:dctcp",)
"""With every setting and five seeds; only these have DCTCP's environment, the data centre."""


def main(senders: list[str]) -> None:
    """Evaluate each sender, and write its file."""
    for sender in senders:
        found = qb.evaluate(sender, quick=sender not in WHOLE, progress=True)
        qb.save_evaluation(found, HERE / f"{sender.replace(':', '-')}.json")


if __name__ == "__main__":
    main(sys.argv[1:] or list(SENDERS))
