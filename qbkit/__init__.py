"""qbkit: congestion control of real QUIC and TCP stacks, measured in virtual time.

``import qbkit as qb``; see `Experiment` for the first step.
"""
