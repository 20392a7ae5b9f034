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
