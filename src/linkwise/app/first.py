"""Clusters and questions in a moment, for the time until the first clustering is there.

Only NumPy is needed: the libraries that cluster are still being imported then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.app import layout
from linkwise.app.engine import N_PROPOSALS, Found, Known, Question

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints

QUICK = 20_000  # samples that the clusters are found from
DEFAULT_CLUSTERS = 8  # while the number is not known
N_ROUNDS = 20


def close_calls(probability: Floats, labels: Ints, n: int = N_PROPOSALS) -> list[Question]:
    """Return questions about samples between two clusters, against a clear case of one of them.

    Samples in turn from different pairs of clusters, so that questions differ.
    """
    k = probability.shape[1]
    if k < 2:
        return []
    order = np.argsort(-probability, axis=1)[:, :2]
    rows = np.arange(len(labels))
    margin = probability[rows, order[:, 0]] - probability[rows, order[:, 1]]
    clear = [int(np.argmax(np.where(labels == c, probability[:, c], -1.0))) for c in range(k)]
    border = order.min(axis=1) * k + order.max(axis=1)
    nearest = np.argsort(margin, kind="stable")[: 50 * n]
    rank: dict[int, int] = {}
    found = []
    for sample in nearest.tolist():
        c = int(border[sample])
        rank[c] = rank.get(c, -1) + 1
        found.append((rank[c], sample))
    questions = []
    for _, sample in sorted(found)[:n]:
        first, second = (int(c) for c in order[sample])
        other = clear[first] if clear[first] != sample else clear[second]
        if other != sample:
            pair = (min(sample, other), max(sample, other))
            questions.append(Question(pair, "a close call between two clusters"))
    return questions


def provisional(data: Any, known: Known, seed: int = 0) -> Found:
    """Return clusters in a moment: k-means."""
    points = data.X if layout.has_columns(data) else layout.principal_axes(data).astype(np.float64)
    k = max(min(known.n_clusters or DEFAULT_CLUSTERS, len(points) - 1), 1)
    rng = np.random.RandomState(seed)
    some = rng.permutation(len(points))[:QUICK]
    scaled = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12)
    far = squared_distances(scaled, k_means(scaled[some], k, rng))
    nearness = np.exp(-(far - far.min(axis=1, keepdims=True)) / max(float(np.median(far)), 1e-12))
    probability = nearness / nearness.sum(axis=1, keepdims=True)
    labels = far.argmin(axis=1).astype(np.intp)
    questions = close_calls(probability, labels)
    return Found(known, labels, probability, questions, method="k-means, for the moment")


def k_means(points: Floats, k: int, rng: np.random.RandomState) -> Floats:
    """Return the means of Lloyd's algorithm, which starts with samples far from each other."""
    means = points[[rng.randint(len(points))]]
    far = squared_distances(points, means)[:, 0]
    while len(means) < k:
        total = float(far.sum())
        chosen = rng.choice(len(points), p=far / total) if total > 0 else rng.randint(len(points))
        means = np.vstack((means, points[[chosen]]))
        far = np.minimum(far, squared_distances(points, means[-1:])[:, 0])
    for _ in range(N_ROUNDS):
        nearest = squared_distances(points, means).argmin(axis=1)
        size = np.bincount(nearest, minlength=k)
        sums = np.zeros_like(means)
        for cluster in np.flatnonzero(size):  # one without samples stays where it is
            sums[cluster] = points[nearest == cluster].mean(axis=0)
        means = np.where((size > 0)[:, None], sums, means)
    return means


def squared_distances(points: Floats, means: Floats) -> Floats:
    """Return the squared distance of each sample to each mean."""
    lengths = np.einsum("ij,ij->i", points, points)[:, None]
    far: Floats = lengths - 2 * points @ means.T + np.einsum("ij,ij->i", means, means)
    return np.maximum(far, 0.0)
