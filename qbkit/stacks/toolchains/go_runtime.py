"""Go's runtime without system calls that achieve nothing on one processor in virtual time.

Go's monitor thread wakes with every packet, to preempt goroutines that compute for long and to take
the processor from those that block in a system call. Here computing takes no time, and our driver
does not block in system calls. A thread with nothing to run polls the network without waiting,
looks for work of other processors, and polls again. Here there is one processor. And Go always
watches a descriptor for room to write, so that every datagram sent wakes the program. Here it does
so once a write has to wait.
"""

from __future__ import annotations

import json
from pathlib import Path

from qbkit.stacks.toolchains import build

CHANGES = {
    "proc.go": {
        'const haveSysmon = GOARCH != "wasm"': "const haveSysmon = false",
        "if netpollinited() && netpollAnyWaiters() && sched.lastpoll.Load() != 0 && "
        "sched.pollingNet.Swap(1) == 0 {": "if false {",
    },
    "netpoll.go": {
        'if GOOS == "solaris" || GOOS == "illumos" || GOOS == "aix" || GOOS == "wasip1" {\n'
        "\t\tnetpollarm(pd, mode)": "if mode == 'w' {\n\t\tnetpollarm(pd, mode)",
    },
    "netpoll_epoll.go": {
        "linux.EPOLLIN | linux.EPOLLOUT | linux.EPOLLRDHUP | linux.EPOLLET": (
            "linux.EPOLLIN | linux.EPOLLRDHUP | linux.EPOLLET"
        ),
        'func netpollarm(pd *pollDesc, mode int) {\n\tthrow("runtime: unused")': """\
func netpollarm(pd *pollDesc, mode int) {
	var ev linux.EpollEvent
	ev.Events = linux.EPOLLIN | linux.EPOLLOUT | linux.EPOLLRDHUP | linux.EPOLLET
	tp := taggedPointerPack(unsafe.Pointer(pd), pd.fdseq.Load())
	*(*taggedPointer)(unsafe.Pointer(&ev.Data)) = tp
	linux.EpollCtl(epfd, linux.EPOLL_CTL_MOD, int32(pd.fd), &ev)""",
    },
}
"""File of the runtime → its text → ours."""


def fingerprint() -> str:
    """Of the changes."""
    return build.fingerprint([], json.dumps(CHANGES))


def overlay(go_root: Path, scratch: Path) -> list[str]:
    """Return the flags of ``go build`` for this runtime; none for a Go that it does not fit."""
    replaced = {}
    for name, changes in CHANGES.items():
        released = go_root / "src/runtime" / name
        text = released.read_text()
        for theirs, ours in changes.items():
            if text.count(theirs) != 1:
                return []
            text = text.replace(theirs, ours)
        (scratch / name).write_text(text)
        replaced[str(released)] = str(scratch / name)
    (scratch / "overlay.json").write_text(json.dumps({"Replace": replaced}))
    return [f"-overlay={scratch / 'overlay.json'}"]
