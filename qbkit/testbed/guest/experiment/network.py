"""qbkit's Mininet topologies, with nodes and links that are cheap to create.

This runs under the system's Python beside Mininet, in the guest or (engine ``host``) as root on
Linux, and may import nothing else. Each of Mininet's own nodes keeps a shell and configures every
interface by separate commands, about 0.2 s of processor time per flow in the guest. Here a node is
a bare network namespace, and one ``ip`` and one ``tc`` configure all of them (`configure`).
"""

import contextlib
import ctypes
import itertools
import os
import subprocess

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

CLONE_NEWNET = 0x40000000
OWN_NAMESPACE = "/proc/thread-self/ns/net"
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
PRELOAD = "/run/qb/sections/sections.so"
libc = ctypes.CDLL(None, use_errno=True)

SYSCTLS = {
    # No flow may learn from an earlier one.
    "net/ipv4/tcp_no_metrics_save": "1",
    # Router solicitations and neighbour discovery would share the queue with the flows.
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}
IP6_SYSCTLS = {
    "net/ipv6/conf/all/disable_ipv6": "0",
    "net/ipv6/conf/default/disable_ipv6": "0",
    # No addresses, routes or packets but those of the plan.
    "net/ipv6/conf/default/addr_gen_mode": "1",
    "net/ipv6/conf/default/accept_ra": "0",
}
IP6_PREFIX, IP6_BITS = "fd00::", 96
"""An IPv6 address is that of IPv4 after this prefix (`qbkit.stacks.ip6`)."""
QUIET_S = 5.0
"""After so long a host has told all routers its multicast groups (RFC 3810, 9.1 and 9.11)."""
ROUTER_SYSCTLS = {**SYSCTLS, "net/ipv4/ip_forward": "1", "net/ipv4/conf/all/rp_filter": "0"}


def host_sysctls(tcp_buffer_bytes):
    """Sysctls of a host whose TCP sockets may use that much memory each way.

    Receive windows never limit a flow (IMC'22 §2 sets them alike for all). Send buffers grow with
    the window as by default; if they were full from the start, they would fill the memory.
    """
    return {
        "net/ipv4/tcp_rmem": f"4096 {tcp_buffer_bytes} {tcp_buffer_bytes}",
        "net/ipv4/tcp_wmem": f"4096 1048576 {tcp_buffer_bytes}",
        **SYSCTLS,
    }


@contextlib.contextmanager
def staying_here():
    """Return the agent to its own network namespace after the block."""
    here = os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        enter(here)
        os.close(here)


def enter(file):
    """Enter a network namespace by setns(2); raises OSError."""
    if libc.setns(file, CLONE_NEWNET):
        raise OSError(f"cannot enter a network namespace: {last_error()}")


def last_error():
    """The error of the last call of ``libc``."""
    return os.strerror(ctypes.get_errno())


def write_sysctl(name, value):
    """Set a sysctl of the agent's current namespace."""
    file = os.open(f"/proc/sys/{name}", os.O_WRONLY)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


class Namespace(Node):
    """A Mininet node that is a network namespace held open by the agent: no process, no shell.

    A fork of Python costs the guest 20 ms; changing a thread's namespace and back costs 20 µs.
    """

    @classmethod
    def setup(cls):
        """Do nothing: Mininet would look for its programs with a shell."""

    def startShell(self, mnopts=None):
        """Create the namespace and set its sysctls."""
        with staying_here():
            if libc.unshare(CLONE_NEWNET):
                raise OSError(f"cannot make a network namespace: {last_error()}")
            self.file = os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
            for name, value in self.sysctls().items():
                with contextlib.suppress(FileNotFoundError):
                    write_sysctl(name, value)

    def sysctls(self):
        """Sysctls of the namespace by name."""
        if "ip_version" not in self.params:
            return self.params["sysctls"]
        forwards = str(int("net/ipv4/ip_forward" in self.params["sysctls"]))
        forward = {"net/ipv6/conf/all/forwarding": forwards}
        return {**self.params["sysctls"], **IP6_SYSCTLS, **forward}

    @property
    def path(self):
        """Path by which another process finds the namespace."""
        return f"/proc/{os.getpid()}/fd/{self.file}"

    @contextlib.contextmanager
    def entered(self):
        """Inside the block, the agent and what it starts are in the namespace."""
        with staying_here():
            enter(self.file)
            yield

    def popen(self, argv, **words):
        """Start a program in the namespace, its output in pipes as Mininet has it."""
        with self.entered():
            return subprocess.Popen(argv, **{**PIPES, **words})

    def config(self, **_params):
        """Do nothing: `build` configures all nodes at once."""
        return {}

    configDefault = config

    def mountPrivateDirs(self):
        """Do nothing: there are none."""

    def snmp(self, protocol, counter):
        """A counter of a protocol (RFC 4293, as Linux names it) in this namespace."""
        with self.entered(), open("/proc/thread-self/net/snmp") as file:
            names, values = [line.split() for line in file if line.startswith(f"{protocol}:")]
        return int(values[names.index(counter)])

    def udp_overflows(self):
        """Number of datagrams that found a full socket buffer in this namespace."""
        if "ip_version" not in self.params:
            return self.snmp("Udp", "RcvbufErrors")
        with self.entered(), open("/proc/thread-self/net/snmp6") as file:
            return next(int(line.split()[1]) for line in file if "Udp6RcvbufErrors" in line)


class Port(Intf):
    """An interface set up by `configure`; ``params['address']`` is its IPv4 address."""

    def config(self, **_params):
        """Do nothing: `configure` sets up all ports at once."""
        return {}


class Wire(Link):
    """A veth pair, created together with all others."""

    def __init__(self, *args, **params):
        params["intf"] = Port
        super().__init__(*args, **params)

    @classmethod
    def makeIntfPair(cls, *_args, **_kwargs):
        """Do nothing: `configure` creates all pairs at once."""

    def stop(self):
        """Do nothing: the pair ends with its namespaces."""


class RouterLine(Topo):
    """Hosts on a line of routers; the links between routers, left to right, are the bottlenecks.

    If they are so ``both_ways``, they are also bottlenecks from right to left. Flow i runs from
    host ``s<i>`` to ``d<i>``, which have the addresses 10.1.i.1 and 10.2.i.1.
    """

    routers = 2

    def span(self, flow):
        """Indices of the leftmost and the rightmost router on the flow's path."""
        raise NotImplementedError

    def ends(self, flow):
        """Indices of the routers at which the flow enters and leaves the line."""
        left, right = self.span(flow)
        return (right, left) if self.directions[flow] == "reverse" else (left, right)

    def crossed(self, enters, leaves):
        """Numbers of the `bottlenecks` between two routers, in the order of the path."""
        if enters < leaves:
            return list(range(enters, leaves))
        links = self.routers - 1
        return list(range(2 * links - enters, 2 * links - leaves))

    def build(self, directions, tcp_buffer_bytes, both_ways, beside=()):
        """Create the nodes and links of the flows, each "forward" or "reverse".

        ``beside`` are names of more hosts at the last router, with addresses 10.3.k.1.
        """
        self.directions, self.both_ways = directions, both_ways
        sysctls = host_sysctls(tcp_buffer_bytes)
        names = [f"r{k + 1}" for k in range(self.routers)]
        for name in names:
            self.addHost(name, sysctls=ROUTER_SYSCTLS)
        for k in range(self.routers - 1):
            self._wire(names[k], f"10.0.{k}.1/30", names[k + 1], f"10.0.{k}.2/30")
        for i in range(len(directions)):
            enters, leaves = self.ends(i)
            self.addHost(f"s{i}", sysctls=sysctls)
            self.addHost(f"d{i}", sysctls=sysctls)
            self._wire(f"s{i}", f"10.1.{i}.1/24", names[enters], f"10.1.{i}.254/24")
            self._wire(f"d{i}", f"10.2.{i}.1/24", names[leaves], f"10.2.{i}.254/24")
        for k, name in enumerate(beside):
            self.addHost(name, sysctls=sysctls)
            self._wire(name, f"10.3.{k}.1/24", names[-1], f"10.3.{k}.254/24")

    def _wire(self, node1, address1, node2, address2):
        self.addLink(
            node1,
            node2,
            addr1=_mac(address1),
            addr2=_mac(address2),
            params1={"address": address1},
            params2={"address": address2},
        )


class Dumbbell(RouterLine):
    """All flows share the one queue between two routers."""

    def span(self, flow):
        """The first router and the second."""
        return 0, 1


class ParkingLot(RouterLine):
    """Two queues in a row: flow 0 crosses both, the odd flows the first, the even the second."""

    routers = 3

    def span(self, flow):
        """Flow 0 goes all the way."""
        if flow == 0:
            return 0, 2
        return (0, 1) if flow % 2 else (1, 2)


TOPOLOGIES = {"dumbbell": Dumbbell, "parking_lot": ParkingLot}


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
    addressing = {node: address_lines(node) + route_lines(net, topo, node) for node in net.hosts}
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


def route_lines(net, topo, node):
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


def _mac(address):
    """A locally administered MAC address derived from the IPv4 address."""
    return "02:00:" + ":".join(f"{int(x):02x}" for x in address.split("/")[0].split("."))
