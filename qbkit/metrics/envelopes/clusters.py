"""k-means clusters of operating points, and the choice of their number.

BBR's phases form separate clouds, and one hull over all of them covers much of the plane where the
flow never was. The authors of IMC'22 use clusters in their follow-up (IMC'23, doi
10.1145/3618257.3624811), to which we have no access, so this rule is ours.

The number of clusters is the k in 2..4 with the best mean silhouette (Rousseeuw 1987), if that is
above 0.7, Kaufman and Rousseeuw's (1990) threshold of a strong structure, and if no cluster has
fewer than the 5 % of points that the envelope rejects as outliers anyway. Otherwise it is 1. The
threshold is strict on purpose: two halves of a uniform line already have about 0.6. Axes are first
scaled to their range, so that neither ms nor Mbit/s dominates. The search is seeded and sorts the
points first, so the result depends on the points alone.
"""

from __future__ import annotations

import numpy as np

from qbkit.traces.arrays import FloatArray, IntArray

MAX_CLUSTERS = 4
MIN_SILHOUETTE = 0.7
MIN_SHARE = 0.05
RESTARTS = 5
ITERATIONS = 20
SEED = 2022
MAX_SILHOUETTE_POINTS = 2000


def cluster_points(points: FloatArray) -> IntArray:
    """Cluster number (n,) of each point (n, 2), by the rule in the module's docstring."""
    best = np.zeros(len(points), dtype=np.int64)
    order = np.lexsort((points[:, 1], points[:, 0]))
    span = np.ptp(points, axis=0)
    scaled = ((points - points.min(axis=0)) / np.where(span > 0, span, 1.0))[order]
    best_silhouette = MIN_SILHOUETTE
    for k in range(2, MAX_CLUSTERS + 1):
        labels = _kmeans(scaled, k)
        if labels is None or np.bincount(labels).min() < max(3.0, MIN_SHARE * len(points)):
            continue
        value = silhouette(scaled, labels)
        if value > best_silhouette:
            best_silhouette = value
            best[order] = labels
    return best


def silhouette(points: FloatArray, labels: IntArray) -> float:
    """Mean silhouette of a clustering; of every i-th point if there are more than 2000."""
    from scipy.spatial.distance import cdist  # SciPy takes 0.3 s to load

    step = -(-len(points) // MAX_SILHOUETTE_POINTS)
    points, labels = points[::step], labels[::step]
    members = np.eye(int(labels.max()) + 1)[labels]
    sizes = members.sum(axis=0)
    sums = cdist(points, points) @ members
    row = np.arange(len(points))
    own = sums[row, labels] / np.maximum(sizes[labels] - 1, 1)
    others = sums / np.maximum(sizes, 1)
    others[:, sizes == 0] = np.inf
    others[row, labels] = np.inf
    nearest = others.min(axis=1)
    largest = np.maximum(own, nearest)
    value = np.where(largest > 0, (nearest - own) / np.where(largest > 0, largest, 1.0), 0.0)
    return float(np.where(sizes[labels] > 1, value, 0.0).mean())


def _kmeans(points: FloatArray, k: int) -> IntArray | None:
    """Labels of the tightest of five seeded k-means++ runs, ordered by position; None if none."""
    from scipy.cluster.vq import ClusterError, kmeans2

    tightest, best = np.inf, None
    if len(np.unique(points, axis=0)) < k:
        return None
    for restart in range(RESTARTS):
        try:
            centres, labels = kmeans2(
                points, k, iter=ITERATIONS, minit="++", missing="raise", seed=SEED + restart
            )
        except ClusterError:
            continue
        squares = float(((points - centres[labels]) ** 2).sum())
        if squares < tightest * (1 - 1e-9):
            rank = np.argsort(np.lexsort((centres[:, 1], centres[:, 0])))
            tightest, best = squares, rank[labels].astype(np.int64)
    return best
