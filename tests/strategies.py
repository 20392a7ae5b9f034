"""Hypothesis strategies: random inputs that are valid and small enough for obvious references."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from linkwise.constraints import Constraints

BELIEFS = (0.25, 0.5, 1.0)


@st.composite
def partitions(draw, *, min_samples=1, max_samples=8, max_clusters=3):
    """Labels of a few samples."""
    n = draw(st.integers(min_samples, max_samples))
    label = st.integers(0, max_clusters - 1)
    return np.array(draw(st.lists(label, min_size=n, max_size=n)))


@st.composite
def partial_labels(draw, labels):
    """The given labels, some of them replaced by -1; or None."""
    if draw(st.booleans()):
        return None
    known = draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels)))
    return np.where(known, labels, -1)


def _some_pairs(n):
    pairs = list(combinations(range(n), 2))
    return st.lists(st.sampled_from(pairs), max_size=12) if pairs else st.just([])


@st.composite
def constraints_from_a_partition(draw, *, max_samples=8, max_clusters=3):
    """Constraints without contradictions: certain pairs and labels agree with a partition."""
    y = draw(partitions(max_samples=max_samples, max_clusters=max_clusters))
    pairs = draw(_some_pairs(y.size))
    return Constraints(
        y.size,
        must_link=[(i, j) for i, j in pairs if y[i] == y[j]],
        cannot_link=[(i, j) for i, j in pairs if y[i] != y[j]],
        labels=draw(partial_labels(y)),
    )


@st.composite
def any_constraints(draw, *, max_samples=7, max_clusters=3):
    """Constraints of any kind, most of them contradictory, some of them uncertain."""
    y = draw(partitions(max_samples=max_samples, max_clusters=max_clusters))
    must = draw(_some_pairs(y.size))
    cannot = draw(_some_pairs(y.size))
    beliefs = [
        [draw(st.sampled_from(BELIEFS)) for _ in pairs]
        if draw(st.booleans())
        else [1.0] * len(pairs)
        for pairs in (must, cannot)
    ]
    return Constraints(
        y.size,
        must,
        cannot,
        must_link_belief=beliefs[0],
        cannot_link_belief=beliefs[1],
        labels=draw(partial_labels(y)),
    )
