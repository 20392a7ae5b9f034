"""Slow and obvious twins of the library's kernels."""

from __future__ import annotations

import numpy as np


def degree_matrix(W):
    """Return the diagonal matrix of the degrees of a dense graph, by two loops."""
    n = len(W)
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            D[i, i] += W[i, j]
    return D


def inverse_power(D, power):
    """Return ``D ** -power`` of a diagonal matrix, zero where the diagonal is zero."""
    return np.diag([0.0 if d == 0 else d**-power for d in np.diag(D)])


def identity_without_isolated(D):
    """Return the identity, with zeros for vertices without edges."""
    return np.diag([0.0 if d == 0 else 1.0 for d in np.diag(D)])


def n_components(W):
    """Count the connected components of a dense graph by flooding it."""
    unseen = set(range(len(W)))
    count = 0
    while unseen:
        count += 1
        front = [unseen.pop()]
        while front:
            i = front.pop()
            reached = {j for j in unseen if W[i, j] != 0}
            unseen -= reached
            front += reached
    return count


def mean_log_odds(c, g, h, A, B):
    """Return the mean of ``c - h(x) - h(y) + g(x) . g(y)`` over all pairs of two clusters."""
    return np.mean([c - h[x] - h[y] + g[x] @ g[y] for x in A for y in B])


def merged_greedily(items, rule):
    """Merge the best pair of clusters with a candidate between them, rescoring all every time."""
    clusters = {i: [i] for i in range(items.size.size)}
    merges = []
    while True:
        scores = {
            (a, b): _cluster_score(items, rule, clusters[a], clusters[b])
            for a in clusters
            for b in clusters
            if a < b
        }
        best = max(scores, key=scores.get, default=None)
        if best is None or not scores[best] > rule.stop:
            return merges
        a, b = best
        clusters[a] = clusters[a] + clusters.pop(b)
        merges.append((a, b, scores[best]))


def _cluster_score(items, rule, A, B):
    between = [
        answer
        for (x, y), answer in zip(items.pairs.tolist(), items.answer, strict=True)
        if (x in A and y in B) or (x in B and y in A)
    ]
    sides = {int(items.side[x]) for x in A}, {int(items.side[x]) for x in B}
    first, second = (side - {-1} for side in sides)
    if not between or (first and second and first != second):
        return -np.inf
    m, k = items.size[A].sum(), items.size[B].sum()
    mean = rule.c - items.h[A].sum() / m - items.h[B].sum() / k
    mean += items.g[A].sum(axis=0) @ items.g[B].sum(axis=0) / (m * k)
    weight = np.sqrt(2 * m * k / (m + k))
    score = rule.slope * (mean + rule.prior / np.sqrt(weight) - rule.cut)
    answer = sum(between)
    odds = score * weight + answer
    if answer == 0 or (answer > 0 and score > rule.level):
        return score
    if answer < 0:
        return min(score, odds)
    if odds > rule.level:  # for the answer's sake: after all that is above the level without
        return rule.level + 1e-9 * (odds - rule.level) / (1 + odds - rule.level)
    return odds
