"""Run a command where system calls are forbidden, as containers forbid them.

    forbidding.py NAME[,NAME…]|docker COMMAND…

``docker`` approximates Docker's default profile for a user without capabilities: the list of
https://docs.docker.com/engine/security/seccomp/ for x86-64, and new namespaces by clone(2).
"""

import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
"""Offsets in struct seccomp_data."""
EPERM, ENOSYS, ALLOW = 0x00050001, 0x00050026, 0x7FFF0000
CLONE, CLONE3 = 56, 435
NEW_NAMESPACES = 0x7E020000
NUMBERS = {"ptrace": 101, "seccomp": 317}
DOCKER = {
    **{"acct": 163, "add_key": 248, "bpf": 321, "clock_adjtime": 305, "clock_settime": 227},
    **{"create_module": 174, "delete_module": 176, "finit_module": 313, "get_kernel_syms": 177},
    **{"get_mempolicy": 239, "init_module": 175, "ioperm": 173, "iopl": 172, "kcmp": 312},
    **{"kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212},
    **{"mbind": 237, "mount": 165, "move_pages": 279, "name_to_handle_at": 303},
    **{"nfsservctl": 180, "open_by_handle_at": 304, "perf_event_open": 298, "pivot_root": 155},
    **{"process_vm_readv": 310, "process_vm_writev": 311, "query_module": 178, "quotactl": 179},
    **{"reboot": 169, "request_key": 249, "set_mempolicy": 238, "setns": 308},
    **{"settimeofday": 164, "swapoff": 168, "swapon": 167, "_sysctl": 156, "sysfs": 139},
    **{"umount2": 166, "unshare": 272, "uselib": 134, "userfaultfd": 323, "ustat": 136},
    **{"vhangup": 153, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427},
}


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def steps(which: str) -> list[tuple[int, int, int, int]]:
    """The filter: each forbidden call fails, all others pass."""
    docker = which == "docker"
    numbers = list(DOCKER.values()) if docker else [NUMBERS[name] for name in which.split(",")]
    program = [(LOAD, 0, 0, NUMBER)]
    for number in numbers:
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
    if docker:
        program += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ENOSYS)]
        program += [(EQUAL, 0, 3, CLONE), (LOAD, 0, 0, FIRST_ARGUMENT)]
        program += [(ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, EPERM)]
    return [*program, (RETURN, 0, 0, ALLOW)]


def forbid(which: str) -> None:
    """Forbid the calls to this process and its children."""
    filter_ = steps(which)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in filter_))
    program = Program(len(filter_), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("cannot give up privileges")
    if libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0):
        sys.exit("cannot set the filter")


if __name__ == "__main__":
    forbid(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
