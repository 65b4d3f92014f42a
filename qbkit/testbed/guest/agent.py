"""Run one experiment on this system: in the guest, or as root on a Linux host.

``agent.py FOLDER`` reads FOLDER/plan.json, builds the network, starts captures, receivers and
senders, stops them, and writes FOLDER/result.json; on any failure FOLDER/error.json with one
sentence. Standard library and Mininet only. Lines on stdout that start with ``QBKIT`` report
progress to the engine.
"""

import contextlib
import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import time

sys.path += [os.path.dirname(os.path.realpath(__file__)), "/usr/lib/python3/dist-packages"]

READY_S = 10.0
"""How long a receiver or the capture may take to print ready."""
GRACE_S = 5.0
"""How long a program may take to end after its time."""
LOST_CONNECTION = 3
"""Exit status of a driver whose connection ended before its time, and which wrote how it ended."""
ENDED_WELL = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit states of a program asked to end: by itself, by the signal, by a shell around it."""
DRAIN_PAUSE_S = 0.01
"""Least time between two readings of the queues; doubled each time."""
MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE, CLONE_NEWNS = 1, 0x1000, 0x4000, 0x40000, 0x20000
RB_POWER_OFF = 0x4321FEDC

libc = ctypes.CDLL(None, use_errno=True)


def main(folder):
    """Run the plan in the folder; return 0 if it wrote a result, else 1."""
    with open(f"{folder}/plan.json") as file:
        plan = json.load(file)
    say("start the guest agent")
    try:
        mount_all(plan)
        result = run_command(plan["command"]) if "command" in plan else Run(plan).result()
        write_json(f"{folder}/result.json", result)
        status = 0
    except (RunAborted, OSError) as error:
        write_json(f"{folder}/error.json", {"error": str(error)})
        status = 1
    if plan["engine"] != "host":
        power_off()
    return status


def power_off():
    """End the guest at once: ending its processes and networks first would cost 50 ms."""
    os.sync()
    libc.reboot(RB_POWER_OFF)


def mount(source, target, kind, flags=0, data=None):
    """Call mount(2); creates the mount point."""
    os.makedirs(target, exist_ok=True)
    words = [None if w is None else w.encode() for w in (source, target, kind)]
    if libc.mount(*words, flags, data.encode() if data else None):
        raise OSError(f"cannot mount {source} at {target}: {os.strerror(ctypes.get_errno())}")


def mount_all(plan):
    """Mount the fixed paths: hostfs in the guest, private bind mounts on a host."""
    on_host = plan["engine"] == "host"
    if on_host:
        if libc.unshare(CLONE_NEWNS):
            raise OSError(f"cannot make a mount namespace: {os.strerror(ctypes.get_errno())}")
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        mount("tmpfs", "/run/qb", "tmpfs")
        mount(os.path.realpath("run"), "/run/qb/run", None, MS_BIND)
    for target, number in plan["mounts"].items():
        if on_host:
            mount(os.path.realpath(f"mnt/{number}"), target, None, MS_BIND)
        else:
            mount("none", target, "hostfs", MS_RDONLY, f"/proc/self/cwd/mnt/{number}")


def run_command(argv):
    """Run one program instead of an experiment; return its output and exit status."""
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    version = os.uname().release
    return {"kernel_version": version, "exit": done.returncode, "output": done.stdout}


class RunAborted(Exception):
    """The run cannot continue; the message is a sentence for the user."""


def write_json(path, data):
    """Write beside and rename, so that the file is whole or absent."""
    with open(path + ".part", "w") as file:
        json.dump(data, file)
    os.replace(path + ".part", path)


def say(text):
    """Print one line for the engine."""
    print("QBKIT", text, flush=True)


class Program:
    """One process of the run, with its role in words and the file of its stderr."""

    def __init__(self, node, role, argv, log, env, foreign=False):
        self.role, self.log, self.foreign = role, log, foreign
        self.early_end = f"{os.path.splitext(log)[0]}-end.json"
        with open(log, "wb") as file:
            words = {"stdout": subprocess.PIPE, "stderr": file, "stdin": subprocess.DEVNULL}
            self.process = node.popen(argv, **words, env=env) if node else None
            if not node:
                self.process = subprocess.Popen(argv, env=env, **words)
        say(f"start {role}")

    def wait_ready(self):
        """Wait until the program prints "ready"; raises RunAborted when it ends or stays silent."""
        import select

        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if ready else b""
        if line.strip() != b"ready":
            if not ready:
                raise RunAborted(f"{self.role} was not ready within {READY_S:g} s")
            self.wait(GRACE_S)
            raise RunAborted(self.how_it_ended())

    def poll(self):
        """Exit status; None while it runs."""
        return self.process.poll()

    def wait(self, seconds):
        """Exit status; None if it still runs after that time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        """Send SIGTERM and wait; return the exit status. Raises RunAborted if it does not end."""
        if self.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        if self.wait(GRACE_S) is None:
            self.process.kill()
            raise RunAborted(f"{self.role} did not end within {GRACE_S:g} s of SIGTERM")
        return self.process.returncode

    @property
    def lost_connection(self):
        """Whether it ended because its connection did: the flow is over, not the run."""
        ended = self.poll() is not None if self.foreign else self.poll() == LOST_CONNECTION
        return ended and os.path.exists(self.early_end)

    def require_end_of_flow(self):
        """It ended too early: report that of a foreign program; else RunAborted if it did not."""
        if self.foreign and not os.path.exists(self.early_end):
            write_json(self.early_end, {"time_ns": time.time_ns(), "status": self.poll()})
        if not self.lost_connection:
            raise RunAborted(self.how_it_ended())

    def require_good_end(self):
        """Raise RunAborted if it ended in a state that fails the run."""
        if self.poll() not in ENDED_WELL and not self.lost_connection:
            raise RunAborted(self.how_it_ended())

    def how_it_ended(self):
        """One sentence on how it ended, with its last line on stderr."""
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code and code < 0 else f"exited with status {code}"
        with open(self.log, errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return f"{self.role} {how}" + (f": {lines[-1]}" if lines else "")


class Run:
    """The experiment from network to result."""

    def __init__(self, plan):
        import network

        self.plan = plan
        self.network = network
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/run", "LANG": "C.UTF-8"}
        self.programs = []

    def result(self):
        """Run everything; return the dictionary for result.json."""
        raise_limits(self.plan["tcp_memory_bytes"])
        directions = [flow["direction"] for flow in self.plan["flows"]]
        self.net = self.network.build(
            self.plan["topology"],
            directions,
            self.plan["tcp_buffer_bytes"],
            both_ways="return_tc" in self.plan,
        )
        try:
            self.choose_tcp()
            self.shape()
            capture = self.start_capture()
            listeners = [self.start(flow, flow["listens"]) for flow in self.plan["flows"]]
            for program in listeners:
                program.wait_ready()
            t0_ns = self.wait_for_start()
            starters = self.run_flows(t0_ns)
            end_ns = time.time_ns()
            flows = self.finish(starters, listeners)
            counters = self.drain()
            capture_drops = self.end_capture(capture)
            return {
                "t0_s": t0_ns / 1e9,
                "t0_ns": t0_ns,
                "end_ns": end_ns,
                "kernel_version": os.uname().release,
                "capture_drops": capture_drops,
                **counters,
                "flows": flows,
            }
        finally:
            self.clean_up()

    @property
    def changes(self):
        """The module for networks that change; a constant one must not even open its file."""
        import changes

        return changes

    def choose_tcp(self):
        """Set the TCP of each flow that asks for it: sysctls, controller, initial window."""
        for flow in self.plan["flows"]:
            for name, value in flow.get("sysctls", {}).items():
                for role in ("sender", "receiver"):
                    with self.net[flow[f"{role}_host"]].entered():
                        self.network.write_sysctl(name, value)
            node = self.net[flow["sender_host"]]
            if controller := flow.get("tcp_controller"):
                # Only controllers that every process may use can be the default of a namespace.
                allow_tcp_controller(controller)
                with node.entered():
                    self.network.write_sysctl("net/ipv4/tcp_congestion_control", controller)
            if packets := flow.get("tcp_initial_window_packets"):
                line = self.network.route_lines(self.net, self.net.topo, node)[-1]
                change = line.replace("add", "change") + f" initcwnd {packets}"
                self.network.configure("ip", [(node, [change])])

    def shape(self):
        """Set up the queues: the bottlenecks' by the plan, and the delay of every host."""
        per_node = {}
        for port, lines in self.links():
            per_node.setdefault(port.node, []).extend(
                line.replace("DEV", port.name) for line in lines
            )
        for flow in self.plan["flows"]:
            for name in ("sender", "receiver"):
                node = self.net[flow[f"{name}_host"]]
                port = self.network.ports(node)[0]
                per_node[node] = [f"qdisc add dev {port.name} root netem {flow[f'{name}_netem']}"]
        for kind, netem in self.plan["loss_netem"].items():
            for router, names in self.network.edges(self.net, kind).items():
                per_node.setdefault(router, []).extend(
                    f"qdisc add dev {name} root netem {netem}" for name in names
                )
        self.network.configure("tc", per_node.items())
        for port in self.links_with("dualpi2"):
            self.changes.set_dualpi2(port, self.plan["dualpi2"])
        if "mtu" in self.plan:
            self.network.configure("ip", self.changes.mtu_lines(self.links(), self.plan["mtu"]))

    def links(self):
        """The ports of the bottlenecks, each with its ``tc`` lines: there, then back."""
        ports, there = self.network.bottlenecks(self.net), self.net.topo.routers - 1
        forward = self.plan["bottleneck_tc"] + self.plan.get("front_tc", [])
        return [(port, forward) for port in ports[:there]] + [
            (port, self.plan["return_tc"]) for port in ports[there:]
        ]

    def links_with(self, kind):
        """The ports of the bottlenecks that have a discipline of a kind."""
        return [port for port, lines in self.links() if any(f" {kind}" in line for line in lines)]

    def start_capture(self):
        """Start the capture of both sides of the queue.

        Where ACKs pass a queue or random loss, what senders' ports send is captured like what
        receivers' ports send.
        """
        senders = "receivers" if self.acks_are_followed else "senders"
        routers = [
            f"{router.path}:{side}:{','.join(names)}"
            for kind, side in (("s", senders), ("d", "receivers"))
            for router, names in self.network.edges(self.net, kind).items()
        ]
        folder = "/run/qb/run"
        if self.plan["capture_queues"]:
            after = map(self.network.peer, self.network.bottlenecks(self.net))
            routers += [
                f"{port.node.path}:{folder}/queue-{k}.pcap:{port.name}"
                for k, port in enumerate(after)
            ]
        files = [f"{folder}/before.pcap", f"{folder}/after.pcap"]
        argv = [self.plan["capture"], *files, *routers]
        program = Program(None, "the capture", argv, f"{folder}/capture.log", self.env)
        self.programs.append(program)
        program.wait_ready()
        return program

    def start(self, flow, role):
        """Start the sender or receiver of a flow."""
        folder = f"/run/qb/run/flows/{flow['index']}"
        os.makedirs(folder, exist_ok=True)
        program = Program(
            self.net[flow[f"{role}_host"]],
            flow.get(f"{role}_title") or f"the {role} of flow {flow['index'] + 1} ({flow['name']})",
            flow[f"{role}_argv"],
            f"{folder}/{role}.log",
            {**self.env, **flow["env"], **flow.get(f"{role}_env", {})},
            # No driver: a program of a web load or of a user, or a server that sends.
            foreign="ends_early" in self.plan
            or "foreign" in flow
            or (role, flow["starts"]) == ("sender", "receiver"),
        )
        self.programs.append(program)
        return program

    def wait_for_start(self):
        """Wait for a whole second, which is t = 0, so that set-up time leaves no trace in it."""
        t0_ns = math.ceil(time.time() + 0.2) * 10**9
        for port in self.links_with("capacity"):
            self.changes.set_schedule(port, self.plan["schedule"], t0_ns)
        time.sleep(max(0.0, (t0_ns - time.time_ns()) / 1e9))
        return t0_ns

    def run_flows(self, t0_ns):
        """Start every flow at its time, stop those that must be stopped, watch them all.

        The sender starts a flow, or the receiver if the sender is a server.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        events = []
        for flow in self.plan["flows"]:
            events.append((flow["start_s"], 0, flow))
            if flow["stop_s"] is not None:
                events.append((flow["stop_s"], 1, flow))
        events.append((self.plan["duration_s"], 2, None))
        every_s = self.plan["report_every_s"]
        reports = math.ceil(self.plan["duration_s"] / every_s)
        events += [(k * every_s, 3, None) for k in range(1, reports)]
        events += [(at_s, 4, rtt_ms) for at_s, rtt_ms in self.plan.get("delays_s_ms", [])]
        starters = {}
        for at_s, kind, flow in sorted(events, key=lambda e: e[:2]):
            if self.sleep_until(t0_ns + round(at_s * 1e9), starters):
                break
            if kind == 0:
                starters[flow["index"]] = self.start(flow, flow["starts"])
            elif kind == 1 and flow["signalled"]:
                with contextlib.suppress(ProcessLookupError):
                    starters[flow["index"]].process.send_signal(signal.SIGTERM)
            elif kind == 3:
                say(f"time {at_s:.3f}")
            elif kind == 4:
                self.changes.set_rtt(self.net, self.plan, flow)
        return [starters[i] for i in range(len(starters))]

    def sleep_until(self, when_ns, starters):
        """Sleep; raises RunAborted if a program ends before that time, unless its connection did.

        Return whether the run is over, because all flows have ended and the plan ends with them.
        """
        while (left := when_ns - time.time_ns()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, left / 1e9)
            for program in self.programs:
                code = program.poll()
                unexpected = code or program not in starters.values()
                if code is not None and unexpected:
                    program.require_end_of_flow()
            if self.plan.get("ends_early") and self.all_ended(starters):
                return True
        return False

    def all_ended(self, starters):
        """Whether every flow has started and its starter has ended."""
        started = len(starters) == len(self.plan["flows"])
        return started and all(program.poll() is not None for program in starters.values())

    def finish(self, starters, listeners):
        """End all programs; return their exit states, one dictionary per flow."""
        flows = []
        for flow, starter, listener in zip(self.plan["flows"], starters, listeners, strict=True):
            if flow["bytes"] is not None and starter.poll() is None:
                starter.process.send_signal(signal.SIGTERM)
            grace_s = self.plan.get("grace_s", GRACE_S)
            code = starter.wait(grace_s)
            if code is None:
                starter.process.kill()
                if not listener.lost_connection:
                    raise RunAborted(
                        f"{starter.role} still ran {grace_s:g} s after its time was over"
                    )
                code = starter.wait(GRACE_S)
            exits = {flow["starts"]: code, flow["listens"]: listener.end()}
            for program, peer in ((starter, listener), (listener, starter)):
                ended_badly = program.poll() not in ENDED_WELL
                foreign = program.foreign or peer.foreign
                if not (ended_badly and foreign and peer.lost_connection):
                    program.require_good_end()
            flows.append({f"{role}_exit": code for role, code in exits.items()})
            flows[-1] |= self.ways(flow["index"])
            for role in ("sender", "receiver"):
                flows[-1][f"{role}_overflows"] = self.net[flow[f"{role}_host"]].udp_overflows()
            for key in ("starts", "port", "sender_ip", "receiver_ip", "window_bytes"):
                flows[-1][key] = flow[key]
        return flows

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

    def end_capture(self, capture):
        """Stop the capture; return how many packets it lost."""
        if capture.end():
            raise RunAborted(capture.how_it_ended())
        return int(capture.process.stdout.read().split()[-1])

    def drain(self):
        """Wait until the queues are empty, so that what is not captured after them was dropped.

        Return the counters of all queues for result.json, and when they were read. After the plan's
        time limit something may still be queued; the counters show how much.
        """
        time.sleep(self.plan["settle_s"])
        pause_s, end_s = DRAIN_PAUSE_S, time.monotonic() + self.plan["drain_limit_s"]
        before = None
        while True:
            counted_ns = time.time_ns()
            ports = self.network.bottlenecks(self.net)
            qdiscs = [self.counters(port.node, port.name) for port in ports]
            queued_bytes = max(found[0]["backlog"] for found in qdiscs)
            # Reading takes time, in which a packet may pass, so two readings must agree.
            if (qdiscs == before and not queued_bytes) or time.monotonic() > end_s:
                break
            before = qdiscs
            if queued_bytes:
                time.sleep(max(pause_s, queued_bytes / self.plan["rate_bytes_per_s"]))
                pause_s *= 2
            elif "late_s" in self.plan:
                time.sleep(self.plan["late_s"])
        in_front = {}
        if "front_tc" in self.plan or "mtu" in self.plan:
            in_front = self.changes.drops_in_front(ports, self.plan)
        losses = {name: self.losses(kind) for name, kind in (("losses", "d"), ("ack_losses", "s"))}
        return {"counted_ns": counted_ns, "qdiscs": qdiscs, **in_front, **losses}

    def losses(self, kind):
        """Counters of the random loss before each flow's host of a kind; empty without loss."""
        if kind not in self.plan["loss_netem"]:
            return []
        of_port = {}
        for router in self.network.edges(self.net, kind):
            for found in self.counters(router):
                of_port[router, found["dev"]] = found
        role = {"s": "sender", "d": "receiver"}[kind]
        hosts = [self.net[flow[f"{role}_host"]] for flow in self.plan["flows"]]
        ports = [self.network.peer(self.network.ports(node)[0]) for node in hosts]
        return [of_port[port.node, port.name] for port in ports]

    def counters(self, node, device=None):
        """Counters of the queues of a node, or of one of its ports, the roots first."""
        if "dualpi2" in self.plan:  # what tc of Debian 12 prints of it is no JSON
            return self.changes.counters(node, device)
        argv = ["tc", "-s", "-j", "qdisc", "show", *(["dev", device] if device else [])]
        output = node.popen(argv).communicate()[0]
        return sorted(json.loads(output.decode()), key=lambda found: not found.get("root"))

    def clean_up(self):
        """Kill the programs that still run, in the guest too, so that their exit flushes files.

        The namespaces end with the agent.
        """
        for program in self.programs:
            if program.poll() is None:
                program.process.kill()
                program.process.wait()


def allow_tcp_controller(name):
    """Let every process use a controller of the kernel's TCP."""
    with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "r+") as file:
        words = file.read().split()
        if name not in words:
            file.seek(0)
            file.write(" ".join([*words, name]))


def raise_limits(tcp_memory_bytes):
    """Raise the limits of socket buffers, of bursts, and of TCP's memory; never lower them.

    The kernel counts the memory of all TCP sockets in pages. Above its limit it shrinks every
    receive window to four packets.
    """
    wanted = {
        "core/rmem_max": [67108864],
        "core/wmem_max": [67108864],
        "core/netdev_max_backlog": [100000],
        "ipv4/tcp_mem": [tcp_memory_bytes // os.sysconf("SC_PAGE_SIZE")] * 3,
    }
    for name, least in wanted.items():
        with contextlib.suppress(OSError), open(f"/proc/sys/net/{name}", "r+") as file:
            found = [int(word) for word in file.read().split()]
            file.seek(0)
            file.write(" ".join(str(max(pair)) for pair in zip(found, least, strict=False)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
