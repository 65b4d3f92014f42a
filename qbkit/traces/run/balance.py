"""The conservation law of packets: each packet that enters a queue leaves it, is lost, or is in it.

We count the packets of each flow and bottleneck in the captures; the kernel's queues count for
themselves. Both must agree in every run, whatever the queue discipline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from qbkit.traces.arrays import BoolArray, IntArray
from qbkit.traces.run.frames import Packets
from qbkit.traces.run.journey import Captures, Fate, Journey, Route, flow_between_hosts
from qbkit.traces.run.match import NEVER
from qbkit.traces.run.schema import Variable, variable

CAPTURED = {
    "balance_in_packets": "packets that reached the queue",
    "balance_out_packets": "packets that left the queue, and were not lost at random after it",
    "balance_dropped_packets": "packets dropped at the bottleneck, by its queue or in front of it",
    "balance_random_loss_packets": "packets lost at random after the queue",
    "balance_queued_packets": "packets still queued when the counters were read",
}
"""Counts from the captures for each flow at each bottleneck: name → meaning."""
EXTRA = "balance_extra_packets"
"""Packets that left a bottleneck and are no packet that went in: duplicates, and packets whose
headers were corrupted (which count as lost, too). Runs without either do not have it."""
QDISC = {
    "qdisc_sent_packets": ("packets", "packets that the queue says it sent"),
    "qdisc_dropped_packets": ("drops", "packets that the queue says it dropped"),
    "qdisc_queued_packets": ("qlen", "packets that the queue says it held in the end"),
}
"""Counters of each bottleneck: name → (word of ``tc -s``, meaning)."""
TOO_BIG = "too_big_packets"
"""Counter of bottlenecks with a smaller MTU than the hosts believe."""
POLICER, MARKED = "policer_dropped_packets", "qdisc_marked_packets"
"""Counters of bottlenecks that police or mark: of a policer in front, and of the marks with CE."""
COMMON = frozenset(
    [
        *("dev", "handle", "root", "parent", "refcnt", "options"),
        *("bytes", "packets", "drops", "qlen", "backlog", "overlimits", "requeues"),
    ]
)
"""What ``tc -s`` says of every discipline."""
MARKS = ("ecn_mark", "ecn_marks", "marked", "ce_mark")
"""How disciplines call the number of packets that they marked."""
ARRIVED = "path_out_packets"
"""Packets of each flow that left its path, and what the path itself counts (`NETEM_SENT`)."""
NETEM, NETEM_SENT = "netem_lost_packets", "netem_sent_packets"
NETEM_ACKS = {
    "netem_sent_ack_packets": ("packets", "sent"),
    "netem_lost_ack_packets": ("drops", "dropped"),
}
"""Counters of the random loss of each flow's ACKs: name → (word of ``tc -s``, its verb)."""
ACKS = {
    "ack_in_packets": "packets back that reached the routers",
    "ack_out_packets": "packets back that left the routers to the sender",
    "ack_random_loss_packets": "packets back lost at random",
}
"""Counts from the captures for each flow whose ACKs meet random loss and no queue."""
ACKS_TOO_BIG = "ack_too_big_packets"
"""The same for packets back that a router dropped as too big; runs without any do not have it."""


def routes_of(flows: Sequence[dict[str, Any]]) -> list[Route]:
    """The routes of the flows of a result.json, then those of their ACKs, if ACKs may be lost."""
    acks = [f for f in flows if "ack_bottlenecks" in f]
    return [
        *(Route(f["sender_ip"], f["receiver_ip"], f["bottlenecks"]) for f in flows),
        *(Route(f["receiver_ip"], f["sender_ip"], f["ack_bottlenecks"]) for f in acks),
    ]


def counter_variables(result: dict[str, Any], *, has_extra: bool = False) -> dict[str, Variable]:
    """The counters of the kernel's queues, from a result.json.

    ``has_extra`` is as in `balance_variables`.
    """
    roots = [found[0] for found in result["qdiscs"]]
    counted = {
        name: variable("bottleneck", np.array([root[word] for root in roots]), "1", meaning)
        for name, (word, meaning) in QDISC.items()
    }
    number = variable("bottleneck", np.arange(len(roots)), "1", "bottleneck, left to right")
    counted["bottleneck"] = number
    if "policed" in result:
        policed, text = np.array(result["policed"]), "packets that the policer says it dropped"
        counted[POLICER] = variable("bottleneck", policed, "1", text)
    if "too_big" in result:
        text = "packets larger than the MTU, which the router says it dropped"
        counted[TOO_BIG] = variable("bottleneck", np.array(result["too_big"]), "1", text)
    if any(marks := [marks_of(found) for found in result["qdiscs"]]):
        text = "packets that the queue says it marked with CE"
        counted[MARKED] = variable("bottleneck", np.array(marks), "1", text)
    lost = [_lost(found) for found in result["losses"]] or [0] * len(result["flows"])
    meaning = "packets that the random loss on the way to the {} says it {}"
    counted[NETEM] = variable("flow", np.array(lost), "1", meaning.format("receiver", "dropped"))
    if has_extra:
        sent = np.array([found["packets"] for found in result["losses"]])
        counted[NETEM_SENT] = variable("flow", sent, "1", meaning.format("receiver", "sent"))
    if result.get("ack_losses"):
        for name, (word, verb) in NETEM_ACKS.items():
            seen = np.array([found[word] for found in result["ack_losses"]])
            counted[name] = variable("flow", seen, "1", meaning.format("sender", verb))
    return counted


def _lost(found: dict[str, Any]) -> int:
    """What the disciplines of a port dropped, all added up: prio counts its children's, too."""
    drops = int(found["drops"])
    return drops // 2 if found.get("kind") == "prio" else drops


def own_counters(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What each bottleneck's queue counts beside what all count, as ``tc -s`` names it.

    Its queue is the last discipline, but for the one (clsact) that a policer in front needs.
    """
    queues = (
        next(one for one in reversed(found) if one.get("kind") != "clsact")
        for found in result["qdiscs"]
    )
    return [{word: one[word] for word in one if word not in COMMON} for one in queues]


def marks_of(disciplines: Sequence[dict[str, Any]]) -> int:
    """How many packets the disciplines of a bottleneck say they marked."""
    found = [one for top in disciplines for one in (top, *top.get("tins", []))]
    return sum(int(one.get(name, 0)) for one in found for name in MARKS)


def balance_variables(
    journey: Journey,
    captures: Captures,
    routes: Sequence[Route],
    flows: int,
    counted_ns: int,
    *,
    has_extra: bool = False,
) -> dict[str, Variable]:
    """Counts from the captures up to ``counted_ns``, when the kernel's counters were read.

    ``routes`` are as `routes_of` gives them. A bottleneck carries the data of a flow or its ACKs,
    never both. ``has_extra`` says whether packets may be duplicated or corrupted.
    """
    shape = (len(routes), len(journey.out_ns))
    counts = {name: np.zeros(shape, np.int64) for name in CAPTURED}
    after = _per_flow(captures.after, routes, counted_ns)
    queues = [_per_flow(queue, routes, counted_ns) for queue in captures.queues]
    entered = np.bincount(
        journey.flow[journey.packets.time_ns <= counted_ns], minlength=len(routes)
    )
    if has_extra:
        counts[EXTRA] = np.zeros(shape, np.int64)
        arrived = (journey.arrived_ns != NEVER) & (journey.arrived_ns <= counted_ns)
        extra = after - np.bincount(journey.flow[arrived], minlength=len(routes))
    for i, route in enumerate(routes):
        if has_extra and route.bottlenecks:
            counts[EXTRA][i, route.bottlenecks[-1]] = extra[i]
        for k in route.bottlenecks:
            first, last = k == route.bottlenecks[0], k == route.bottlenecks[-1]
            counts["balance_in_packets"][i, k] = entered[i] if first else queues[k - 1][i]
            counts["balance_out_packets"][i, k] = after[i] if last else queues[k][i]
    for k in range(shape[1]):
        for name, chosen in _ends_here(journey, routes, k, counted_ns).items():
            counts[name][:, k] = np.bincount(journey.flow[chosen], minlength=len(routes))
    both = ("flow", "bottleneck")
    of_flow = {name: found.reshape(-1, flows, shape[1]).sum(0) for name, found in counts.items()}
    texts = {**CAPTURED, EXTRA: "packets that left twice, or with other headers"}
    found = {name: variable(both, of_flow[name], "1", texts[name]) for name in counts}
    if has_extra:
        text = "packets that left the path to the receiver"
        found[ARRIVED] = variable("flow", np.array(after[:flows]), "1", text)
    if any(not route.bottlenecks for route in routes):
        lost = (journey.fate == Fate.RANDOM_LOSS) & (journey.packets.time_ns <= counted_ns)
        per_route = (entered, after, np.bincount(journey.flow[lost], minlength=len(routes)))
        for (name, text), count in zip(ACKS.items(), per_route, strict=True):
            found[name] = variable("flow", count[flows:], "1", text)
        dropped = (journey.fate == Fate.QUEUE_DROP) & (journey.packets.time_ns <= counted_ns)
        too_big = np.bincount(journey.flow[dropped], minlength=len(routes))[flows:]
        if too_big.any():
            text = "packets back that were larger than the MTU"
            found[ACKS_TOO_BIG] = variable("flow", too_big, "1", text)
    return found


def _per_flow(packets: Packets, routes: Sequence[Route], until_ns: int) -> IntArray:
    """How many packets of each flow were captured up to ``until_ns``."""
    flow = flow_between_hosts(packets, routes)[packets.time_ns <= until_ns]
    return np.bincount(flow[flow >= 0], minlength=len(routes))


def _ends_here(
    journey: Journey, routes: Sequence[Route], k: int, until_ns: int
) -> dict[str, BoolArray]:
    """Masks of the packets that were dropped or lost at a bottleneck, or are still in it."""
    at_ns, out_ns, fate = journey.at_ns[k], journey.out_ns[k], journey.fate
    here = (at_ns != NEVER) & (at_ns <= until_ns)
    last = np.array([k in route.bottlenecks[-1:] for route in routes])[journey.flow]
    waits = ((out_ns == NEVER) & (fate == Fate.UNKNOWN)) | (out_ns > until_ns)
    return {
        "balance_dropped_packets": here & (out_ns == NEVER) & (fate == Fate.QUEUE_DROP),
        "balance_random_loss_packets": here & last & ~waits & (fate == Fate.RANDOM_LOSS),
        "balance_queued_packets": here & waits,
    }


def violations(run: xr.Dataset) -> list[str]:
    """A sentence for each breach of the law in a run, and for packets left in a queue."""
    found = []
    for k in run["bottleneck"].values:
        at = run.isel(bottleneck=k)
        left = int(at["qdisc_queued_packets"])
        if left:
            found.append(
                f"{left} packets were still in bottleneck {k + 1} when the capture ended; what "
                "became of them is unknown"
            )
        else:
            found += _against_counters(at, f"bottleneck {k + 1}")
        for i in np.flatnonzero(unaccounted(at)):
            found.append(
                f"{int(unaccounted(at)[i]):+d} packets of {run.label.values[i]} are unaccounted "
                f"for at bottleneck {k + 1}: they went in, but were not seen to come out, nor lost"
            )
    return found + _of_acks(run) + _random_losses(run)


def _of_acks(run: xr.Dataset) -> list[str]:
    """A sentence for each flow whose ACKs are unaccounted for, though they meet no queue."""
    if not set(ACKS) <= set(run.variables):
        return []
    entered, left, lost = (run[name].values for name in ACKS)
    if ACKS_TOO_BIG in run:
        lost = lost + run[ACKS_TOO_BIG].values
    return [
        f"{missing:+d} packets back to the sender of {label} are unaccounted for"
        for label, missing in zip(run.label.values, entered - left - lost, strict=True)
        if missing
    ]


def _random_losses(run: xr.Dataset) -> list[str]:
    """Where the captures and the counters of the random loss disagree, in both directions.

    The loss may also take what a router sends of its own: an ICMP message for each packet that is
    too big. No capture of flows has those.
    """
    if EXTRA in run:
        return _copies(run)
    messages = int(run[TOO_BIG].sum()) if TOO_BIG in run else 0
    captured = run["balance_random_loss_packets"].sum("bottleneck").values
    counted = run[NETEM].values
    if "ack_random_loss_packets" in run:
        captured = captured + run["ack_random_loss_packets"].values
    if "netem_lost_ack_packets" in run:
        counted = counted + run["netem_lost_ack_packets"].values
    return [
        f"random loss dropped {said} packets of {label} by its own count, and {lost} by the "
        "captures"
        for label, lost, said in zip(run.label.values, captured, counted, strict=True)
        if not lost <= said <= lost + messages
    ]


def _copies(run: xr.Dataset) -> list[str]:
    """Where the captures and the counters of what arrives disagree, if packets may be copied.

    A copy may be lost while its original arrives, so the two counts of losses differ. A packet with
    a corrupted address is no longer the flow's in the captures, so they may have fewer.
    """
    return [
        f"the path of {label} sent {said} packets by its own count, and {int(seen)} by the captures"
        for label, seen, said in zip(
            run.label.values, run[ARRIVED].values, run[NETEM_SENT].values, strict=True
        )
        if seen > said
    ]


def unaccounted(run: xr.Dataset) -> IntArray:
    """Packets that went in, less those that came out, were lost, or are inside; 0 by law."""
    entered, *ends = (run[name].values for name in CAPTURED)
    extra = run[EXTRA].values if EXTRA in run else 0
    difference: IntArray = entered + extra - sum(ends)
    return difference


def _against_counters(at: xr.Dataset, where: str) -> list[str]:
    """Where the captures of an empty bottleneck and the kernel's counters disagree."""
    out, dropped, lost = (
        at[f"balance_{name}_packets"].values for name in ("out", "dropped", "random_loss")
    )
    extra = at[EXTRA].values if EXTRA in at else 0
    before = sum(int(at[name]) for name in (POLICER, TOO_BIG) if name in at)
    pairs = [
        ("sent", int((out + lost - extra).sum()), int(at["qdisc_sent_packets"])),
        ("dropped", int(dropped.sum()), int(at["qdisc_dropped_packets"]) + before),
    ]
    return [
        f"{where} {word} {counted} packets by its own count, and {captured} by the captures"
        for word, captured, counted in pairs
        if captured != counted
    ]
