"""Causes that `qb.explain` names, beside the truth: senders with one known change each.

    python benchmarks/causes.py [--unseen | --third | --fourth | --fifth | --sixth | --seventh |
        --eighth | --ninth | --tenth | --eleventh | --twelfth | --thirteenth |
        --fourteenth] [--kind bbr …] [--write]

The tables are ``causes`` (each case), ``causes_by_kind`` and, of all sets, ``causes_by_votes``. A
case is right if the cause named first is the change, near if it is among the first three, undecided
if none is named, and wrong otherwise; an unchanged sender, run with other seeds than its reference,
is to be silent. ``votes`` is the part of the precedents' votes that names the first cause. The last
column is the outcome if the sides are exchanged: what sets them apart is the same. Judged are
lone flows, as in `qb.explain`, for 60 s with four seeds: on their link and, if they model their
path, on one that probes them (`qbkit.studies.probing`). The first three sets, whose runs would take
half a day, have fewer: senders that model their path run only on the one that probes them. The
first two have two seeds (those in Python, whose runs take the longest, one), and one of the others.
The first is at 10 Mbit/s and 50 ms, its loss-based senders at 1 BDP (with HyStart, or without it,
at 6 BDP). What a sender does after a pause or an outage is judged with an application that pauses,
or a path that has two outages of 2 s. The eight released senders are at 20 Mbit/s, as in the issue,
on both. No competitor runs, so no cause is weighed by the sign of what a sender gains or loses.
Runs that exist are loaded. The kinds that end with "later" were added when the rules had been
written; the tables of those that no rule had seen are ``causes_unseen`` and
``causes_unseen_by_kind``, and those of a third set ``causes_third`` and ``causes_third_by_kind``.
Those of a fourth to a tenth set, which were kept back, and of later ones are named likewise.
The set ``precedents``, with one or two seeds, is run by ``precedents.py`` alone.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence

import xarray as xr
from markdown_tables import add_write, publish, record, rows_of, table
from sender_cases import OUR_BBRS, Case, sets

from qbkit.execution.many import run_all
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.parameters import (
    Difference,
    Parameters,
    compare,
    known_precedents,
    observed,
    voted,
)
from qbkit.metrics.parameters.laws import BBRS
from qbkit.metrics.parameters.relations import RECEIVERS
from qbkit.spec import Bottleneck, Experiment
from qbkit.spec.flow import controller_of
from qbkit.spec.network_words import network_text
from qbkit.studies.lone import is_one_sender, laws_by_name
from qbkit.studies.probing import ALONE_S, ALONE_SEEDS, SEEDS, alone, interrupted, probing

LONE = {"duration_s": ALONE_S, "seeds": ALONE_SEEDS}
OTHER_SEED = 11
HEAD = (
    *("kind", "link", "flow", "reference", "truth"),
    *("named first", "votes", "then", "outcome", "exchanged"),
)
KEYS = HEAD[:4]
SETS = sets()
RELEASED = [Bottleneck(rate_mbps=20, rtt_ms=50, buffer_bdp=bdp) for bdp in (1, 3)]
"""The links of released senders."""
FEW_SEEDS = ("causes", "causes_unseen", "precedents")
"""Sets with one or two seeds."""
PATH_ALONE = ("causes", "causes_unseen", "causes_third")
"""Sets whose senders that model their path run on the one that probes them, and on no other."""
OUTCOMES = ("right", "near", "undecided", "wrong", "silent", "spoke")
WITH_PRECEDENTS = ("causes_eighth", "causes_ninth", "causes_tenth")
"""Sets that were kept back until precedents voted."""
PARTS_OF_VOTES = (0.95, 0.8, 0.6, 0.4, 0.2, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = sorted({case.kind for cases in SETS.values() for case in cases})
    other = parser.add_mutually_exclusive_group()
    for name in (name for name in SETS if name.startswith("causes_")):
        option = f"--{name.removeprefix('causes_')}"
        other.add_argument(option, dest="name", action="store_const", const=name, help="that set")
    parser.set_defaults(name="causes")
    parser.add_argument("--kind", nargs="*", choices=kinds)
    add_write(parser)
    words = parser.parse_args()
    for case in SETS[words.name]:
        if not words.kind or case.kind in words.kind:
            record(words.name, judged(case, words.name), KEYS, words.write)
    if words.write:
        publish(f"{words.name}_by_kind", by_kind(rows_of(words.name)))
        publish("causes_by_votes", by_votes())


def judged(case: Case, name: str) -> Iterator[dict[str, object]]:
    """The row of a case; none if a run of it cannot be had here."""
    first = OTHER_SEED if case.flow == case.reference else 1
    test, reference = (
        parameters(case, flow, seed, name)
        for flow, seed in ((case.flow, first), (case.reference, 1))
    )
    if test and reference:
        found = named(case, test, reference, name)
        exchanged = outcome(case, named(case, reference, test, name))
        first, *others = [d.name for d in found[:3]] or [""]
        votes = f"{found[0].votes:.2f}" if found and not math.isnan(found[0].votes) else ""
        link = network_text(case.link, ("rate_mbps", "buffer_bdp"))
        link += f", {case.link.qdisc}" if case.link.qdisc != "fifo" else ""
        cells = (case.kind, link, case.flow, case.reference, ", ".join(case.truth))
        seen = (first, votes, ", ".join(others), outcome(case, found), exchanged)
        yield dict(zip(HEAD, (*cells, *seen), strict=True))


def named(case: Case, test: Parameters, reference: Parameters, name: str) -> list[Difference]:
    """The suspects, likeliest first; precedents of the case's own set have no vote."""
    known = models_path(case.flow) or models_path(case.reference)
    laws = laws_by_name(map(controller_of, (case.flow, case.reference)))
    found = compare(test, reference, by_name=BBRS if known else laws)
    if is_one_sender((case.flow, case.reference)):
        found = voted(found, test, reference, known_precedents(name), models_path=known)
        return [d for d in found if d.is_suspect]
    suspects = [d for d in found if d.is_suspect]
    # Of a sender that models its path, the receiver is said to differ, but not to be the cause.
    if suspects and suspects[0].of_model and suspects[0].name in RECEIVERS:
        return []
    return [d for d in suspects if not (d.of_model and d.name in RECEIVERS)]


def models_path(flow: str) -> bool:
    return kernel_counterpart(flow.partition("?")[0]) == "tcp:bbr" or flow.startswith(OUR_BBRS)


def outcome(case: Case, found: Sequence[Difference]) -> str:
    names = [d.name for d in found]
    if not case.truth:
        return "spoke" if names else "silent"
    if not names:
        return "undecided"
    if names[0] in case.truth:
        return "right"
    return "near" if {*names[:3]} & {*case.truth} else "wrong"


def parameters(case: Case, flow: str, first_seed: int, name: str) -> Parameters | None:
    """What one side of a case of a set shows; None if it has no runs."""
    few, models = name in FEW_SEEDS, models_path(flow)
    much = LONE | {"seeds": 1} if few else LONE
    seeds = SEEDS if not few else 2 if case.of_stack else 1
    path_alone = name in PATH_ALONE and case.link not in RELEASED
    wanted = (
        [] if models and path_alone else alone(flow, case.link, **much),
        probing(flow, case.link, seeds=seeds) if models else [],
        interrupted(flow, case.link, **much),
    )
    done = [
        runs([run.model_copy(update={"seed": run.seed + first_seed - 1}) for run in some])
        for some in wanted
    ]
    return observed(*done) if any(done) else None


def runs(wanted: Sequence[Experiment]) -> list[xr.Dataset]:
    return [done.run for done in run_all(wanted) if done.run is not None]


def by_kind(rows: Sequence[dict[str, str]]) -> str:
    """How many cases of each kind have each outcome, in Markdown."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    counted = [
        [kind, *(sum(r["kind"] == kind and r["outcome"] == o for r in rows) for o in OUTCOMES)]
        for kind in kinds
    ]
    return table(["kind", *OUTCOMES], counted)


def by_votes() -> str:
    """How often the first cause is right, by the part of the precedents' votes that name it."""
    every = [name for name in SETS if rows_of(name)]
    counted = []
    for chosen, words in ((every, "all"), (WITH_PRECEDENTS, "eighth to tenth")):
        rows = [row for name in chosen for row in rows_of(name) if row["votes"] and row["truth"]]
        most = math.inf
        for least in PARTS_OF_VOTES:
            found = [row["outcome"] for row in rows if least <= float(row["votes"]) < most]
            counted.append([words, least, *(found.count(o) for o in ("right", "near", "wrong"))])
            most = least
    return table(["sets", "least part of the votes", "right", "near", "wrong"], counted)


if __name__ == "__main__":
    main()
