"""Mininet nodes and links that are cheap to create; see `network` for where this runs.

Each of Mininet's own nodes keeps a shell and configures every interface by separate commands, about
0.2 s of processor time per flow in the guest. Here a node is a bare network namespace, and one
``ip`` and one ``tc`` configure all of them (`network.configure`).
"""

import contextlib
import ctypes
import os
import subprocess

from mininet.link import Intf, Link
from mininet.node import Node

CLONE_NEWNET = 0x40000000
OWN_NAMESPACE = "/proc/thread-self/ns/net"
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
libc = ctypes.CDLL(None, use_errno=True)
IP6_SYSCTLS = {
    "net/ipv6/conf/all/disable_ipv6": "0",
    "net/ipv6/conf/default/disable_ipv6": "0",
    # No addresses, routes or packets but those of the plan.
    "net/ipv6/conf/default/addr_gen_mode": "1",
    "net/ipv6/conf/default/accept_ra": "0",
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
        """Do nothing: `network.build` configures all nodes at once."""
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
    """An interface set up by `network.configure`; ``params['address']`` is its IPv4 address."""

    def config(self, **_params):
        """Do nothing: `network.configure` sets up all ports at once."""
        return {}


class Wire(Link):
    """A veth pair, created together with all others."""

    def __init__(self, *args, **params):
        params["intf"] = Port
        super().__init__(*args, **params)

    @classmethod
    def makeIntfPair(cls, *_args, **_kwargs):
        """Do nothing: `network.configure` creates all pairs at once."""

    def stop(self):
        """Do nothing: the pair ends with its namespaces."""
