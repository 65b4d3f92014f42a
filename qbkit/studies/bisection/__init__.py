"""Which version of a stack is the first that behaves differently."""

from qbkit.studies.bisection.bisect import Bisection, bisect

__all__ = ["Bisection", "bisect"]
