"""Doubts: the clustering that is shown with a part of a cluster in another one.

The candidates of :class:`~linkwise.Auto` may share one mistake, which no question finds that only
tells them apart. Large parts that no answer has placed are therefore doubted, until one has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.active.hypotheses import Beliefs, Rival
from linkwise.partition import kmeans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.active.answers import Answer
    from linkwise.active.hypotheses import Hypotheses

DOUBT = 0.2  # weight of all doubts together, before any answer
PARTS = 3  # of a cluster
LEAST_PART, MOST_DOUBTS = 0.04, 24  # share of the samples in a part; number of doubts


def doubts(hypotheses: Hypotheses, answers: Sequence[Answer]) -> list[Rival]:
    """Return the clustering that is shown with one part moved, weighted by what answers say."""
    moved = [
        labels for _, labels in zip(range(MOST_DOUBTS), with_part_moved(hypotheses), strict=False)
    ]
    if not moved:
        return []
    labels = np.vstack((*moved, hypotheses.shown))
    each = replace(hypotheses, labels=labels, weights=np.full(len(labels), 1 / len(labels)))
    weights = Beliefs(each, (), each.weights).after_all(answers).weights
    relative = np.minimum(weights[:-1] / weights[-1], 1.0)
    share = DOUBT / len(moved)
    return [Rival(one, share * by) for one, by in zip(moved, relative.tolist(), strict=True)]


def with_part_moved(hypotheses: Hypotheses) -> Iterator[Ints]:
    """Yield the clustering that is shown with one part in the cluster nearest to it."""
    Z, shown = hypotheses.coordinates, hypotheses.shown
    k = int(shown.max()) + 1
    if k < 2:
        return
    means = np.array([Z[shown == c].mean(axis=0) for c in range(k)])
    for part in sorted(parts(Z, shown), key=lambda one: -one.size):
        far = ((means - Z[part].mean(axis=0)) ** 2).sum(axis=1)
        far[shown[part[0]]] = np.inf
        labels = shown.copy()
        labels[part] = far.argmin()
        yield labels


def parts(Z: Floats, labels: Ints) -> Iterator[Ints]:
    """Yield large parts of clusters, but no whole one."""
    least = max(2, LEAST_PART * labels.size)
    for c in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == c)
        if members.size < 2 * least:
            continue
        found = kmeans(Z[members], PARTS, np.random.RandomState(0), n_init=3).labels
        for number in range(PARTS):
            part = members[found == number]
            if least <= part.size < members.size:
                yield part
