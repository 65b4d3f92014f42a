"""The network as the plan wants it: each flow's TCP, the queues and delays, the schedule."""

import math
import time

import namespaces
import network
from system import allow_tcp_controller


class Links:
    """A plan and its network."""

    def __init__(self, plan, net):
        self.plan, self.net = plan, net

    @property
    def changes(self):
        """The module for networks that change; a constant one must not even open its file."""
        import changes

        return changes

    def host(self, flow, role):
        """The node that is the sender or receiver of a flow."""
        return self.net[flow[f"{role}_host"]]

    def set_up(self):
        """Set up all but the schedule."""
        self.choose_tcp()
        if "ip_version" in self.plan:  # no queue may count what hosts tell their routers
            time.sleep(network.QUIET_S)
        self.shape()

    def choose_tcp(self):
        """Set the TCP of each flow that asks for it: sysctls, controller, initial window."""
        for flow in self.plan["flows"]:
            for name, value in flow.get("sysctls", {}).items():
                for role in ("sender", "receiver"):
                    with self.host(flow, role).entered():
                        namespaces.write_sysctl(name, value)
            node = self.host(flow, "sender")
            if controller := flow.get("tcp_controller"):
                # Only controllers that every process may use can be the default of a namespace.
                allow_tcp_controller(controller)
                with node.entered():
                    namespaces.write_sysctl("net/ipv4/tcp_congestion_control", controller)
            if packets := flow.get("tcp_initial_window_packets"):
                line = network.route_lines(self.net.topo, node)[-1]
                change = line.replace("add", "change") + f" initcwnd {packets}"
                network.configure("ip", [(node, [change])])

    def shape(self):
        """Set up the queues: the bottlenecks' by the plan, and the delay of every host."""
        per_node = {}
        for port, lines in self.bottlenecks():
            per_node.setdefault(port.node, []).extend(
                line.replace("DEV", port.name) for line in lines
            )
        for flow in self.plan["flows"]:
            for role in ("sender", "receiver"):
                node = self.host(flow, role)
                port = network.ports(node)[0]
                per_node[node] = [f"qdisc add dev {port.name} root netem {flow[f'{role}_netem']}"]
        for kind in self.plan["loss_netem"]:
            for router, names in network.edges(self.net, kind).items():
                per_node.setdefault(router, []).extend(
                    line.replace("DEV", name) for name in names for line in self.edge_lines(kind)
                )
        network.configure("tc", per_node.items())
        for port in self.bottlenecks_with("dualpi2"):
            self.changes.set_dualpi2(port, self.plan["dualpi2"])
        if "mtu" in self.plan:
            mtu_lines = self.changes.mtu_lines(self.bottlenecks(), self.plan["mtu"])
            network.configure("ip", mtu_lines)

    def edge_lines(self, kind):
        """``tc`` lines of the last routers' ports (``DEV``) towards a kind of host."""
        netem, large = self.plan["loss_netem"][kind], self.plan.get("large")
        if kind != "d" or not large:
            return [f"qdisc add dev DEV root netem {netem}"]
        return [
            "qdisc add dev DEV root handle 1: prio bands 2 priomap" + " 0" * 16,
            f"qdisc add dev DEV parent 1:1 netem {netem}",
            f"qdisc add dev DEV parent 1:2 netem {large['netem']}",
            *(f"filter add dev DEV parent 1: {match} flowid 1:2" for match in large["matches"]),
        ]

    def bottlenecks(self):
        """The ports of the bottlenecks, each with its ``tc`` lines: there, then back."""
        ports, there = network.bottlenecks(self.net), self.net.topo.routers - 1
        forward = self.plan["bottleneck_tc"] + self.plan.get("front_tc", [])
        return [(port, forward) for port in ports[:there]] + [
            (port, self.plan["return_tc"]) for port in ports[there:]
        ]

    def bottlenecks_with(self, kind):
        """The ports of the bottlenecks that have a discipline of a kind."""
        return [port for port, lines in self.bottlenecks() if any(f" {kind}" in s for s in lines)]

    def wait_for_start(self):
        """Wait for a whole second, which is t = 0, so that set-up time leaves no trace in it."""
        t0_ns = math.ceil(time.time() + 0.2) * 10**9
        for port in self.bottlenecks_with("capacity"):
            self.changes.set_schedule(port, self.plan["schedule"], t0_ns)
        time.sleep(max(0.0, (t0_ns - time.time_ns()) / 1e9))
        return t0_ns

    @property
    def acks_are_followed(self):
        """Whether ACKs may be lost: in a queue among data of other flows, or at random."""
        return self.net.topo.both_ways or "s" in self.plan["loss_netem"]

    def ways(self, index):
        """Bottlenecks that the data of a flow pass in order, and its ACKs if they may be lost."""
        topo = self.net.topo
        enters, leaves = topo.ends(index)
        found = {"bottlenecks": topo.crossed(enters, leaves)}
        if self.acks_are_followed:
            found["ack_bottlenecks"] = topo.crossed(leaves, enters) if topo.both_ways else []
        return found
