"""Run published points again, and compare."""

from qbkit.studies.reproduction.check import Reproduced, reproduce
from qbkit.studies.reproduction.points import Point, published_points

__all__ = ["Point", "Reproduced", "published_points", "reproduce"]
