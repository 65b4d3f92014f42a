"""Congestion controllers written in Python, on aioquic.

Runs in the guest under the base interpreter, as the package ``cca``: it imports nothing but the
standard library, aioquic and (where it is run as a program) the driver ``aioquic_flow``. The stack
is `qbkit.stacks.qbkit_cca`.
"""
