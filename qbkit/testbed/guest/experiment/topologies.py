"""Mininet topologies: hosts on a line of routers, and their sysctls; see `network`."""

from mininet.topo import Topo

SYSCTLS = {
    # No flow may learn from an earlier one.
    "net/ipv4/tcp_no_metrics_save": "1",
    # Router solicitations and neighbour discovery would share the queue with the flows.
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}
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
        """Numbers of the `network.bottlenecks` between two routers, in the order of the path."""
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


def _mac(address):
    """A locally administered MAC address derived from the IPv4 address."""
    return "02:00:" + ":".join(f"{int(x):02x}" for x in address.split("/")[0].split("."))


TOPOLOGIES = {"dumbbell": Dumbbell, "parking_lot": ParkingLot}
