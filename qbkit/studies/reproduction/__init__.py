"""Run published points again, and compare."""

from qbkit.studies.reproduction.check import Reproduced, reproduce
from qbkit.studies.reproduction.inputs import made_with
from qbkit.studies.reproduction.points import Point, Recipe, Table, recipe_of
from qbkit.studies.reproduction.sources import published_points, without_points
from qbkit.studies.reproduction.values import Precision

__all__ = [
    "Point",
    "Precision",
    "Recipe",
    "Reproduced",
    "Table",
    "made_with",
    "published_points",
    "recipe_of",
    "reproduce",
    "without_points",
]
