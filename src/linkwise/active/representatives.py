"""Representatives: the samples that questions are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.active.regions import REGIONS, first_of_each

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.active.hypotheses import Beliefs, Hypotheses

CELLS, HEAVIEST, SMALLEST_CELL = 60, 12, 3  # cells at most; hypotheses that cut them; samples
ANCHORS = 2  # surest samples of each cluster
DENSITY = 0.2  # of the rank by density beside the sureness of a sample


def representatives(beliefs: Beliefs) -> Ints:
    """Return places of samples worth asking about, ascending.

    Of each cell in which the heaviest hypotheses agree and of each cluster that is shown, the
    surest samples; of each region the one in the middle; and all that were asked about.
    """
    hypotheses = beliefs.hypotheses
    # Rounded, so that ties do not depend on the last bits.
    degrees = np.round(hypotheses.degrees / hypotheses.degrees.max(), 9)
    density = np.argsort(np.argsort(degrees, kind="stable")) / hypotheses.samples.size
    score = np.round(hypotheses.sureness + DENSITY * density, 9)
    regions = hypotheses.regions
    largest = np.argsort(-regions.size, kind="stable")[:REGIONS]
    asked = beliefs.places([sample for one in beliefs.answers for sample in one[:2]])
    return np.unique(
        np.concatenate(
            (
                _of_cells(hypotheses, score),
                _of_clusters(hypotheses.shown, score),
                regions.medoid[largest],
                asked[asked >= 0],
            )
        )
    )


def _of_cells(hypotheses: Hypotheses, score: Floats) -> Ints:
    heaviest = np.argsort(-hypotheses.weights, kind="stable")[:HEAVIEST]
    cell = np.unique(hypotheses.labels[heaviest].T, axis=0, return_inverse=True)[1].ravel()
    size = np.bincount(cell)
    surest = first_of_each(cell, -score, size)
    largest = np.argsort(-size, kind="stable")[:CELLS]
    return surest[largest[size[largest] >= SMALLEST_CELL]]


def _of_clusters(labels: Ints, score: Floats) -> Ints:
    found = []
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        found.append(members[np.argsort(-score[members], kind="stable")[:ANCHORS]])
    return np.concatenate(found)


def touched(beliefs: Beliefs) -> Ints:
    """Return how many answers are about a sample of each region."""
    regions = beliefs.hypotheses.regions
    count = np.zeros(regions.size.size, np.intp)
    for one in beliefs.answers:
        places = beliefs.places(one[:2])
        count[np.unique(regions.number[places[places >= 0]])] += 1
    return count
