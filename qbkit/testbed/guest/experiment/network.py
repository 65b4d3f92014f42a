"""The network of an experiment: its links, addresses and routes, and its ports.

This runs under the system's Python beside Mininet, in the guest or (engine ``host``) as root on
Linux, and may import nothing else.
"""

import itertools
import subprocess

from mininet.net import Mininet
from namespaces import Namespace, Wire
from topologies import TOPOLOGIES

PRELOAD = "/run/qb/sections/sections.so"
IP6_PREFIX, IP6_BITS = "fd00::", 96
"""An IPv6 address is that of IPv4 after this prefix (`qbkit.stacks.ip6`)."""
QUIET_S = 5.0
"""After so long a host has told all routers its multicast groups (RFC 3810, 9.1 and 9.11)."""


def build(topology, directions, tcp_buffer_bytes, both_ways, beside=(), ip_version=4):
    """The Mininet network of a named topology, with its namespaces, links, addresses and routes."""
    topo = TOPOLOGIES[topology](
        directions=directions,
        tcp_buffer_bytes=tcp_buffer_bytes,
        both_ways=both_ways,
        beside=beside,
    )
    if ip_version == 6:
        for node in topo.nodes():
            topo.nodeInfo(node)["ip_version"] = 6
    net = Mininet(topo=topo, host=Namespace, link=Wire, controller=None, build=True)
    addressing = {node: address_lines(node) + route_lines(topo, node) for node in net.hosts}
    # Links can be created from any namespace; they come before their nodes are configured.
    sections = [(net.hosts[0], link_lines(net)), *addressing.items()]
    configure("ip", sections)
    return net


def link_lines(net):
    """``ip`` commands that create all veth pairs, each end inside its node's namespace."""
    return [
        f"link add name {a.name} netns {a.node.path} address {a.mac} type veth "
        f"peer name {b.name} netns {b.node.path} address {b.mac}"
        for a, b in ((link.intf1, link.intf2) for link in net.links)
    ]


def address_lines(node):
    """``ip`` commands that bring the node's ports up, with fixed neighbours (no ARP in the queue).

    gso_max_segs keeps frames at the MTU: a queue that gets 64 kB at once is not realistic.
    """
    lines = ["link set lo up"]
    for port in ports(node):
        other = peer(port)
        lines += [
            f"link set dev {port.name} gso_max_segs 1",
            f"addr add {with_bits(port)} dev {port.name}{' nodad' * has_ip6(node)}",
            f"link set dev {port.name} up",
            f"neigh add {_ip(other)} lladdr {other.mac} nud permanent dev {port.name}",
        ]
    return lines


def route_lines(topo, node):
    """Routes: a host's router, and on a router the way left or right along the line."""
    if not node.name.startswith("r"):
        return [f"route add default via {_ip(peer(ports(node)[0]))}"]
    here = int(node.name[1:]) - 1
    lines = []
    for i in range(len(topo.directions)):
        for prefix, end in zip((f"10.1.{i}.0/24", f"10.2.{i}.0/24"), topo.ends(i), strict=True):
            where = _number(prefix, node)
            if end > here:
                lines.append(f"route add {where} via {_number(f'10.0.{here}.2', node)}")
            elif end < here:
                lines.append(f"route add {where} via {_number(f'10.0.{here - 1}.1', node)}")
    return lines


def has_ip6(node):
    """Whether a node speaks IPv6."""
    return "ip_version" in node.params


def with_bits(port):
    """The address of a port, with the bits of its network."""
    return _number(port.params["address"], port.node)


def _number(four, node):
    """An IPv4 address or network, or the IPv6 one in its place on a node that speaks that."""
    if not has_ip6(node):
        return four
    address, slash, bits = four.partition("/")
    return f"{IP6_PREFIX}{address}" + (f"/{IP6_BITS + int(bits)}" if slash else "")


def ports(node):
    """The node's interfaces in the order of their creation."""
    return [node.intfs[number] for number in sorted(node.intfs)]


def peer(port):
    """The interface at the other end of the link."""
    return port.link.intf2 if port.link.intf1 is port else port.link.intf1


def bottlenecks(net):
    """The ports whose queue is a bottleneck: left to right, then right to left if data go so."""
    line = [net[f"r{k + 1}"] for k in range(net.topo.routers)]
    ways = [line, line[::-1]] if net.topo.both_ways else [line]
    return [
        port
        for way in ways
        for here, there in itertools.pairwise(way)
        for port in ports(here)
        if peer(port).node is there
    ]


def edges(net, kind):
    """Names of each router's ports towards senders ("s"), receivers ("d") or an attacker ("x")."""
    found = {}
    for node in net.hosts:
        names = [p.name for p in ports(node) if peer(p).node.name.startswith(kind)]
        if node.name.startswith("r") and names:
            found[node] = names
    return found


def configure(program, sections):
    """Run ``ip`` or ``tc`` once for all nodes; ``sections`` are pairs of a node and its lines.

    The preloaded library runs the program's main() once per section (native/sections.c). Raises
    OSError with the program's error.
    """
    text = "".join(
        "".join(f"{line}\n" for line in [f"section {node.path} {node.name}", *lines])
        for node, lines in sections
    )
    done = subprocess.run(
        [program],
        input=text.encode(),
        capture_output=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_PRELOAD": PRELOAD},
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").splitlines() or [f"status {done.returncode}"]
        raise OSError(f"{program} cannot configure {said[-1]}: {said[0]}")


def _ip(port):
    return with_bits(port).split("/")[0]
