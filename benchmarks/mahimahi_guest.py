"""mm-link of mahimahi in the guest, and packets that pass it; by the guest's Python.

``mahimahi_guest.py PLAN`` is root: it starts mm-link with the plan's trace, and prints when each
packet came out, in ns after the trace began, as JSON. Inside of mm-link the same file sends them.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

MM_LINK, LOG, PORT = "/run/qb/mahimahi/usr/bin/mm-link", Path("/tmp/open/log"), 5000
IP_UDP_BYTES, MS_NS, START_MS, SO_RCVBUFFORCE = 28, 1_000_000, 35_000, 33
"""Earlier, and a minute after the start, the kernel's router solicitations take opportunities."""
DRAIN_S = 10
STUBS = {
    "iptables": "#!/bin/sh\n",  # the kernel has no NAT, and nobody needs it here
    "dnsmasq": "#!/usr/bin/python3\n"
    "import socket\nserver = socket.socket(type=socket.SOCK_DGRAM)\n"
    "server.bind(('', 53))\nwhile True:\n    server.recv(512)\n",
}


def main(path):
    """Print the times at which packets left mm-link, or send them in it."""
    plan = json.loads(Path(path).read_text())
    if "MAHIMAHI_BASE" in os.environ:
        send(plan["packets"])
        return
    prepare(plan["opportunities_ms"])
    inbox = socket.socket(type=socket.SOCK_DGRAM)
    inbox.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
    inbox.bind(("", PORT))
    inbox.settimeout(60)
    traces = ["/tmp/up", "/tmp/down", f"--uplink-log={LOG}"]
    again = [sys.executable, os.path.realpath(__file__), path]
    # mm-link wants to be installed setuid root, and run by somebody else.
    link = subprocess.Popen(
        [MM_LINK, *traces, "--", *again],
        preexec_fn=lambda: (os.setresgid(1000, 1000, 1000), os.setresuid(1000, 0, 0)),
        env={"PATH": "/usr/bin:/bin", "HOME": "/tmp", "USER": "nobody", "SHELL": "/bin/sh"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    left = {}
    try:
        while len(left) < len(plan["packets"]):
            datagram = inbox.recv(2048)
            left[int.from_bytes(datagram[:4], "big")] = time.time_ns()
    except TimeoutError:
        print(f"{len(left)} packets came out:", link.communicate()[0].decode(), file=sys.stderr)
        sys.exit(1)
    start_ns = began_ns(plan["opportunities_ms"][-1])
    print(json.dumps([left[k] - start_ns for k in range(len(left))]))


def prepare(opportunities_ms):
    """The traces, and the programs that mm-link wants to start."""
    programs, shared = Path("/tmp/sbin"), LOG.parent
    programs.mkdir()
    shared.mkdir()
    shared.chmod(0o777)
    for name, text in STUBS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "ip").symlink_to("/bin/ip")
    bind = 4096
    if ctypes.CDLL(None).mount(b"/tmp/sbin", b"/usr/sbin", None, bind, None):
        sys.exit("cannot put programs in the place of the system's")
    subprocess.run(["/bin/ip", "link", "set", "lo", "up"], check=True)
    for path, text in (
        ("/proc/sys/net/ipv4/ip_forward", "1"),
        ("/tmp/up", "".join(f"{ms}\n" for ms in opportunities_ms)),
        ("/tmp/down", "1\n"),
    ):
        Path(path).write_text(text)


def began_ns(period_ms):
    """A time at which the trace begins anew, from its first beginning in mm-link's log."""
    lines = [line for line in LOG.read_text().splitlines() if " timestamp: " in line]
    words = dict(line[2:].split(": ", 1) for line in lines)
    base_ms = int(words["init timestamp"]) + int(words["base timestamp"])
    return (base_ms + -(-START_MS // period_ms) * period_ms) * MS_NS


def send(packets):
    """Send each packet, of a time in ns and a size of its IP packet, at its time."""
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.connect((os.environ["MAHIMAHI_BASE"], PORT))
    start_ns = began_ns(int(Path("/tmp/up").read_text().split()[-1]))
    for number, (at_ns, size) in enumerate(packets):
        time.sleep(max(0, start_ns + at_ns - time.time_ns()) / 1e9)
        sock.send(number.to_bytes(4, "big") + bytes(size - IP_UDP_BYTES - 4))
    time.sleep(DRAIN_S)  # what mm-link still holds ends with this program


main(sys.argv[1])
