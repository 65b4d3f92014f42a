"""The cases of ``causes.py``: senders with one known change each, and unchanged ones.

They stand in ``senders.csv``, a row each: the set (the name of its table), the kind, both flows,
the names under which the change may be found, and the link, with outages as ``start_s+length_s``
and a queue discipline other than ``fifo``.
The truths of the unseen and the third set were written down before they were run; those of the
sets up to the tenth, which were kept back, without the rules of `qbkit.metrics.parameters` at hand
and before any case was judged; those of the eleventh to the fourteenth before any run, with the
rules known. A random generator drew the links and the values of the last two, and of the
fourteenth also the options; it has stacks alone, whose runs take the least time.

In the first set, HyStart has a deeper queue (one of 1 BDP overflows first), an application that
requests 30 kB at a time limits each delivery sample, and BBR has no case of an outage: with a
collapsed window and without it sends the same.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import changed_controllers  # noqa: F401  registers them
import eighth_controllers  # noqa: F401  likewise
import eleventh_controllers  # noqa: F401  likewise
import fourth_controllers  # noqa: F401  likewise
import further_controllers  # noqa: F401  likewise
import interrupted_controllers  # noqa: F401  likewise
import limited_controllers  # noqa: F401  likewise
import ninth_controllers  # noqa: F401  likewise
import ninth_loss_based  # noqa: F401  likewise
import seventh_controllers  # noqa: F401  likewise
import sixth_controllers  # noqa: F401  likewise
import tenth_controllers  # noqa: F401  likewise
import tenth_loss_based  # noqa: F401  likewise
import thirteenth_controllers  # noqa: F401  likewise
import twelfth_controllers  # noqa: F401  likewise
import unseen_controllers  # noqa: F401  likewise
import unseen_loss_based  # noqa: F401  likewise

from qbkit.spec import Bottleneck
from qbkit.spec.over_time import Outages

TABLE = Path(__file__).parent / "senders.csv"
OURS = [
    "changed",
    "further",
    "interrupted",
    "limited",
    "unseen",
    "fourth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
]
OUR_BBRS = tuple(f"qbkit:{name}-bbr" for name in OURS)


@dataclass(frozen=True)
class Case:
    """A changed sender, its reference, and the names under which the change may be found.

    The truth of an unchanged sender has no name.
    """

    kind: str
    flow: str
    reference: str
    truth: tuple[str, ...]
    link: Bottleneck

    @property
    def of_stack(self) -> bool:
        """Whether it is no Python, whose runs take the longest."""
        return not self.flow.startswith("qbkit")


def sets() -> dict[str, list[Case]]:
    """The cases of each set."""
    found: dict[str, list[Case]] = {}
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file, restval=""):
            truth = tuple(row["truth"].split())
            case = Case(row["kind"], row["flow"], row["reference"], truth, link_of(row))
            found.setdefault(row["set"], []).append(case)
    return found


def link_of(row: dict[str, str]) -> Bottleneck:
    """The link of a row; packets are dropped in its outages."""
    named = ("rate_mbps", "rtt_ms", "buffer_bdp", "qdisc")
    link = Bottleneck.model_validate({name: row[name] for name in named if row[name]})
    if not row["outages"]:
        return link
    starts_lengths = [outage.split("+") for outage in row["outages"].split()]
    times = tuple((float(start), float(length)) for start, length in starts_lengths)
    return link.model_copy(update={"outages": Outages(times=times, drops=True)})
