"""Stacks that are not built from a package registry: found on this machine, or configured."""

from qbkit.stacks.external import configured, lsquic, mvfst, quicly, xquic

__all__ = ["configured", "lsquic", "mvfst", "quicly", "xquic"]
