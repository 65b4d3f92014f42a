"""Stacks that are not built from a package registry: found on this machine, or configured."""
