"""Carries the controllers of `qbkit.cca` on aioquic; runs in the guest.

Imports the standard library, aioquic, its driver ``aioquic_flow``, and ``qbkit.cca``, which is all
that the guest sees of qbkit. The stack is `qbkit.stacks.qbkit_cca`.
"""
