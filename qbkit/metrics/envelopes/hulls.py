"""Convex hulls as arrays of vertices, and fast tests of which points lie inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from qbkit.traces.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import shapely

# SciPy and shapely take long to import, so the functions that need them import them.

BOUNDARY_TOLERANCE = 1e-9
"""In ms or Mbit/s; in ms a thousandth of a nanosecond. It makes the boundary count as inside."""

MANY_POINTS = 200


def convex_hull(points: FloatArray) -> FloatArray:
    """Vertices (v, 2) of the hull of points (n, 2), counter-clockwise.

    Identical points give one vertex, collinear points the two ends.
    """
    from scipy.spatial import ConvexHull, QhullError

    points = _outer_points(points) if len(points) > MANY_POINTS else points
    if len(points) > 2:
        try:
            return points[ConvexHull(points).vertices]
        except QhullError:
            pass  # Qhull refuses flat hulls; GEOS handles points and lines.
    return _flat_hull(points)


def _flat_hull(points: FloatArray) -> FloatArray:
    import shapely

    hull = shapely.convex_hull(shapely.multipoints(points))
    vertices = shapely.get_coordinates(hull)
    if hull.geom_type != "Polygon":
        return vertices
    return vertices[:-1] if shapely.is_ccw(hull.exterior) else vertices[:0:-1]


def pick(points: FloatArray, chosen: BoolArray) -> FloatArray:
    """``points[chosen]``, several times faster on points whose columns are contiguous."""
    return np.compress(chosen, points.T, axis=1).T


def _outer_points(points: FloatArray) -> FloatArray:
    """Points outside the quadrilateral of the four extreme ones (Akl and Toussaint's heuristic).

    Qhull takes most of the time of a bootstrap, and a hull depends on few of its points.
    """
    x, y = points[:, 0], points[:, 1]
    corner = points[[x.argmin(), y.argmin(), x.argmax(), y.argmax()]]
    outer = np.zeros(len(points), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corner.tolist(), corner[[1, 2, 3, 0]].tolist(), strict=True):
        # Counter-clockwise, so a positive product means inside; points in doubt are kept.
        outer |= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) <= BOUNDARY_TOLERANCE
    return pick(points, outer)


def half_planes(vertices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Normals (e, 2) and offsets (e,): p is inside if ``normals @ p >= offsets``.

    A single vertex is bounded along both axes, a line by its two sides and its two ends.
    """
    if len(vertices) == 1:
        normals = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        return normals, normals @ vertices[0]
    along = vertices[np.arange(1, len(vertices) + 1) % len(vertices)] - vertices
    along /= np.sqrt(along[:, :1] ** 2 + along[:, 1:] ** 2)
    normals = along[:, ::-1] * (-1.0, 1.0)
    offsets = np.einsum("ij,ij->i", normals, vertices)
    if len(vertices) == 2:
        ends = np.einsum("ij,ij->i", along, vertices)
        return np.concatenate([normals, along]), np.concatenate([offsets, ends])
    return normals, offsets


def inside(points: FloatArray, hulls: Sequence[FloatArray]) -> BoolArray:
    """Which points (n, 2) lie in at least one hull; the boundary counts as inside."""
    found = np.zeros(len(points), dtype=bool)
    for vertices in hulls:
        normals, offsets = half_planes(vertices)
        found |= (normals @ points.T - offsets[:, None]).min(axis=0) >= -BOUNDARY_TOLERANCE
    return found


def inside_moved(points: FloatArray, hulls: Sequence[FloatArray], shifts: FloatArray) -> BoolArray:
    """`inside` (m, n) of the points (n, 2) moved by each of the shifts (m, 2).

    For hundreds of shifts this takes a tenth of the time of as many calls of `inside`.
    """
    found = np.zeros((len(shifts), len(points)), dtype=bool)
    for vertices in hulls:
        normals, offsets = half_planes(vertices)
        depth = normals @ points.T - offsets[:, None] + BOUNDARY_TOLERANCE
        room = -(normals @ shifts.T)
        within = depth[0] >= room[0][:, None]
        for d, r in zip(depth[1:], room[1:], strict=True):
            within &= d >= r[:, None]
        found |= within
    return found


def to_geometry(hulls: Sequence[FloatArray]) -> shapely.Geometry:
    """The union of the hulls as a shapely geometry, to draw or to intersect."""
    import shapely

    shapes: list[shapely.Geometry] = []
    for vertices in hulls:
        if len(vertices) == 1:
            shapes.append(shapely.Point(vertices[0]))
        elif len(vertices) == 2:
            shapes.append(shapely.LineString(vertices))
        else:
            shapes.append(shapely.Polygon(vertices))
    return shapely.union_all(shapes)
