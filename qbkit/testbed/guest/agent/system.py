"""What root asks of the kernel itself: mounts, an end, and limits that no experiment may reach."""

import contextlib
import ctypes
import os

MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE, CLONE_NEWNS = 1, 0x1000, 0x4000, 0x40000, 0x20000
RB_POWER_OFF = 0x4321FEDC

libc = ctypes.CDLL(None, use_errno=True)


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
