"""Networks that change during a run, and queues that this system's ``tc`` does not know: netlink.

A schedule lies in the kernel before the flows start; delays change at their times. See
rtnetlink(7), linux/pkt_sched.h and, for the discipline ``capacity``, sch_capacity.c.
"""

import contextlib
import os
import socket
import struct

import namespaces
import network

CLSACT, CLSACT_EGRESS, MATCHALL_ACT, ACT_STATS = 0xFFFFFFF1, 0xFFFFFFF3, 2, 4
RTM_NEWQDISC, RTM_GETQDISC, RTM_GETTFILTER = 36, 38, 46
NLMSG_ERROR, NLMSG_DONE = 2, 3
REQUEST, ACK, DUMP, NESTED = 1, 4, 0x300, 0x8000
ROOT = 0xFFFFFFFF
KIND, OPTIONS, STATS2 = 1, 2, 7
BASIC, QUEUE, APP = 1, 3, 4
SEGMENTS, APPEND, MODE, REPEAT, START = 1, 2, 3, 4, 5
MOST_SEGMENTS = 3500
"""Of one message: an attribute has at most 65,535 bytes."""
REORDER, LATENCY64, JITTER64 = 3, 10, 11
LIMIT_PACKETS = 1_000_000
PR_SET_TIMERSLACK = 29
DUALPI2_COUNTERS = (
    "prob",
    "delay_c",
    "delay_l",
    "packets_in_c",
    "packets_in_l",
    "maxq",
    "ecn_mark",
    "step_marks",
)


def set_schedule(port, schedule, t0_ns):
    """Give a port's discipline ``capacity`` its schedule, which begins at ``t0_ns``."""
    segments = schedule["segments"]
    for first in range(0, len(segments), MOST_SEGMENTS):
        some = segments[first : first + MOST_SEGMENTS]
        options = [
            (SEGMENTS, b"".join(struct.pack("=QQ", *segment) for segment in some)),
            (APPEND, struct.pack("=I", 1) if first else b""),
            (MODE, struct.pack("=I", schedule["mode"])),
            (REPEAT, struct.pack("=I", schedule["repeat"])),
            (START, struct.pack("=Q", t0_ns)),
        ]
        change(port, 0x10000, ROOT, "capacity", options)


def set_rtt(net, plan, rtt_ms):
    """Give all hosts the delay of another base RTT."""
    for flow in plan["flows"]:
        for role, jitter_ms in (("sender", plan["jitter_ms"]), ("receiver", 0.0)):
            port = network.ports(net[flow[f"{role}_host"]])[0]
            set_delay(port, (rtt_ms + flow["extra_rtt_ms"]) / 2, jitter_ms)


def set_delay(port, delay_ms, jitter_ms):
    """Change the delay of a port's netem; its rate, distribution and random numbers stay."""
    before = struct.pack("=6I", 0, LIMIT_PACKETS, 0, 0, 0, 0)
    options = [
        (LATENCY64, struct.pack("=q", round(delay_ms * 1e6))),
        (JITTER64, struct.pack("=q", round(jitter_ms * 1e6))),
    ]
    change(port, 0, ROOT, "netem", options, before)


@contextlib.contextmanager
def exact_timers():
    """Inside the block the agent wakes at its time, not with a timer up to 50 µs later: prctl(2).

    What it starts would inherit that, so it is for waiting only.
    """
    namespaces.libc.prctl(PR_SET_TIMERSLACK, 1)
    try:
        yield
    finally:
        namespaces.libc.prctl(PR_SET_TIMERSLACK, 0)  # the default


def set_loss(net, plan, percent):
    """Give the last routers another random loss; what else their netem does stays."""
    share = struct.pack("=I", round(percent / 100 * 0xFFFFFFFF))
    for flow in plan["flows"]:
        for role in plan["bursts"]["before"]:
            port = network.peer(network.ports(net[flow[f"{role}_host"]])[0])
            known = netem(port)
            rest = attributes(known[24:])
            options = [
                (kind, rest[kind]) for kind in (REORDER, LATENCY64, JITTER64) if kind in rest
            ]
            change(port, 0, ROOT, "netem", options, known[:8] + share + known[12:24])


def netem(port):
    """The options of a port's netem: a ``struct tc_netem_qopt``, and attributes."""
    with port.node.entered():
        index = socket.if_nametoindex(port.name)
        messages = talk(RTM_GETQDISC, DUMP, header(0, 0, 0))
    mine = (m for m in messages if struct.unpack_from("=I", m, 4)[0] == index)
    return next(attributes(message[20:])[OPTIONS] for message in mine)


def set_dualpi2(port, attributes):
    """Set the options of the dualpi2 below a port's shaper, as (attribute, bytes, value)."""
    options = [(kind, value.to_bytes(size, "little")) for kind, size, value in attributes]
    change(port, 0x100000, 0x10001, "dualpi2", options)


def change(port, handle, parent, kind, options, before=b""):
    """Change a queue discipline of a port; OSError says which, and why it cannot be."""
    words = b"".join(attribute(number, data) for number, data in options if data)
    with port.node.entered():
        body = header(socket.if_nametoindex(port.name), handle, parent)
        body += attribute(KIND, kind.encode() + b"\0")
        body += attribute(OPTIONS | (0 if before else NESTED), before + words)
        for message in talk(RTM_NEWQDISC, ACK, body):
            error = struct.unpack_from("=i", message)[0]
            if error:
                raise OSError(f"cannot change {kind} of {port.name}: {os.strerror(-error)}")


def counters(node, device=None):
    """Counters of a node's disciplines, the roots first, as `Run.counters` gives them."""
    with node.entered():
        messages = talk(RTM_GETQDISC, DUMP, header(0, 0, 0))
        found = [discipline(message) for message in messages if has_queue(message)]
    mine = [one for one in found if device in (None, one["dev"])]
    return sorted(mine, key=lambda one: not one["root"])


def mtu_lines(links, mtu):
    """``ip`` lines by node for an MTU of the bottlenecks, and for routers that do not report it."""
    lines = {}
    for port, _ in links:
        for end in (port, network.peer(port)):
            lines.setdefault(end.node, []).append(f"link set dev {end.name} mtu {mtu['bytes']}")
    if not mtu["icmp"]:  # what a router sends by itself is lost: nothing but ICMP
        for words in lines.values():
            words.append("rule add pref 1 iif lo blackhole")
    return list(lines.items())


def drops_in_front(ports, plan):
    """What each bottleneck's router dropped before the queue, by reason, for result.json."""
    found = {}
    if any("police" in line for line in plan.get("front_tc", [])):
        found["policed"] = [policed(port) for port in ports]
    if "mtu" in plan:  # larger than the MTU, so that the router could not forward them
        found["too_big"] = [port.node.snmp("Ip", "FragFails") for port in ports]
    return found


def policed(port):
    """How many packets the policer in front of a port says it dropped; 0 without one."""
    with port.node.entered():
        egress = header(socket.if_nametoindex(port.name), 0, CLSACT_EGRESS)
        messages = talk(RTM_GETTFILTER, DUMP, egress)
    return sum(drops(attributes(message[20:])) for message in messages)


def drops(words):
    """Packets that the actions of one filter of kind matchall say they dropped."""
    if words.get(KIND, b"").rstrip(b"\0") != b"matchall" or OPTIONS not in words:
        return 0
    actions = attributes(attributes(words[OPTIONS]).get(MATCHALL_ACT, b""))
    found = 0
    for action in map(attributes, actions.values()):
        stats = attributes(action[ACT_STATS]) if ACT_STATS in action else {}
        found += struct.unpack_from("=3I", stats[QUEUE])[2] if QUEUE in stats else 0
    return found


def has_queue(message):
    """Whether a discipline holds packets: clsact and noqueue count nothing of what follows."""
    stats = attributes(attributes(message[20:]).get(STATS2, b""))
    return BASIC in stats and QUEUE in stats and struct.unpack_from("=I", message, 12)[0] != CLSACT


def discipline(message):
    """One discipline of a dump: its kind, and the counters that all have, or dualpi2."""
    index, parent = (struct.unpack_from("=I", message, at)[0] for at in (4, 12))
    words = attributes(message[20:])
    stats = attributes(words[STATS2])
    size, packets = struct.unpack_from("=QI", stats[BASIC])
    qlen, backlog, drops = struct.unpack_from("=3I", stats[QUEUE])
    kind = words[KIND].rstrip(b"\0").decode()
    found = {"dev": socket.if_indextoname(index), "kind": kind, "root": parent == ROOT}
    found |= {"bytes": size, "packets": packets}
    found |= {"drops": drops, "qlen": qlen, "backlog": backlog}
    if kind == "dualpi2":
        values = struct.unpack_from(f"={len(DUALPI2_COUNTERS)}I", stats[APP])
        found |= zip(DUALPI2_COUNTERS, values, strict=True)
    return found


def header(index, handle, parent):
    """A ``struct tcmsg`` for a device of the current namespace, or for all (0)."""
    return struct.pack("=BxxxiIII", 0, index, handle, parent, 0)


def attribute(kind, data):
    """A netlink attribute, padded."""
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def attributes(data):
    """The attributes in a message, by number."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & ~NESTED] = data[4:length]
        data = data[length + 3 & ~3 :]
    return found


def talk(kind, flags, body):
    """Send a message in the current namespace; return the bodies of the answers."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.send(struct.pack("=IHHII", 16 + len(body), kind, flags | REQUEST, 1, 0) + body)
        answers = []
        while True:
            data = link.recv(1 << 20)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == NLMSG_DONE:
                    return answers
                answers.append(data[16:length])
                if kind == NLMSG_ERROR:
                    return answers
                data = data[length + 3 & ~3 :]
