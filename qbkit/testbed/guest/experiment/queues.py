"""What the queues count, read once they are empty."""

import json
import time

import network

DRAIN_PAUSE_S = 0.01
"""Least time between two readings of the queues; doubled each time."""


def drain(links):
    """Wait until the queues are empty, so that what is not captured after them was dropped.

    Return the counters of all queues for result.json, and when they were read. After the plan's
    time limit something may still be queued; the counters show how much.
    """
    plan, ports = links.plan, network.bottlenecks(links.net)
    time.sleep(plan["settle_s"])
    pause_s, end_s = DRAIN_PAUSE_S, time.monotonic() + plan["drain_limit_s"]
    before = None
    while True:
        counted_ns = time.time_ns()
        qdiscs = [counters(links, port.node, port.name) for port in ports]
        queued_bytes = max(found[0]["backlog"] for found in qdiscs)
        # Reading takes time, in which a packet may pass, so two readings must agree.
        if (qdiscs == before and not queued_bytes) or time.monotonic() > end_s:
            break
        before = qdiscs
        if queued_bytes:
            time.sleep(max(pause_s, queued_bytes / plan["rate_bytes_per_s"]))
            pause_s *= 2
        elif "late_s" in plan:
            time.sleep(plan["late_s"])
    in_front = {}
    if "front_tc" in plan or "mtu" in plan:
        in_front = links.changes.drops_in_front(ports, plan)
    lost = {"losses": losses(links, "d"), "ack_losses": losses(links, "s")}
    return {"counted_ns": counted_ns, "qdiscs": qdiscs, **in_front, **lost}


def losses(links, kind):
    """Counters of the random loss before each flow's host of a kind; empty without loss."""
    if kind not in links.plan["loss_netem"]:
        return []
    of_port = {}
    for router in network.edges(links.net, kind):
        for found in counters(links, router):  # what is below a root drops by itself
            known = of_port.setdefault((router, found["dev"]), found)
            if known is not found:
                known["drops"] += found["drops"]
    role = {"s": "sender", "d": "receiver"}[kind]
    hosts = [links.host(flow, role) for flow in links.plan["flows"]]
    ports = [network.peer(network.ports(node)[0]) for node in hosts]
    return [of_port[port.node, port.name] for port in ports]


def counters(links, node, device=None):
    """Counters of the queues of a node, or of one of its ports, the roots first."""
    if "dualpi2" in links.plan:  # what tc of Debian 12 prints of it is no JSON
        return links.changes.counters(node, device)
    argv = ["tc", "-s", "-j", "qdisc", "show", *(["dev", device] if device else [])]
    output = node.popen(argv).communicate()[0]
    return sorted(json.loads(output.decode()), key=lambda found: not found.get("root"))
