"""Who sends: the registry of stacks, and one file for each."""

from qbkit.stacks import tcp
from qbkit.stacks.base import Stack, Status
from qbkit.stacks.registry import all_stacks, get, register

__all__ = ["Stack", "Status", "all_stacks", "get", "register", "tcp"]
