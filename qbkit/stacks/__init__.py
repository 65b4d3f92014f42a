"""Who sends: the registry of stacks, and one file for each."""

from qbkit.stacks import aioquic, quic_go, quinn, tcp
from qbkit.stacks.base import Stack, Status
from qbkit.stacks.registry import all_stacks, get, register

__all__ = ["Stack", "Status", "aioquic", "all_stacks", "get", "quic_go", "quinn", "register", "tcp"]
