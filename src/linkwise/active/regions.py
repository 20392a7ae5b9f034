"""Regions: small parts of clusters, each of which belongs to one cluster as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.partition import kmeans

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints

REGIONS, REGION_SIZE = 60, 8  # regions at most; samples of one, on average at least


class Regions(NamedTuple):
    """Parts of clusters that hang together."""

    number: Ints  # of each sample
    size: Ints  # of each region
    medoid: Ints  # a sample in the middle of each


def find_regions(Z: Floats, labels: Ints) -> Regions:
    """Cut clusters of points into small regions."""
    n = labels.size
    wanted = max(2, min(REGIONS, n // REGION_SIZE))
    small = kmeans(Z, min(wanted, n), np.random.RandomState(0), n_init=1).labels
    keys = small * (int(labels.max()) + 1) + labels
    number = np.unique(keys, return_inverse=True)[1].ravel()
    size = np.bincount(number)
    mean = np.zeros((size.size, Z.shape[1]))
    np.add.at(mean, number, Z)
    off = ((Z - (mean / size[:, None])[number]) ** 2).sum(axis=1)
    # Rounded, so that ties, as of two samples, do not depend on the last bits.
    off = np.round(off / max(float(off.max()), 1e-300), 9)
    return Regions(number, size, first_of_each(number, off, size))


def first_of_each(number: Ints, key: Floats, size: Ints) -> Ints:
    """Return the sample with the smallest key of each part."""
    order = np.lexsort((key, number))
    first: Ints = order[np.concatenate(([0], np.cumsum(size)[:-1]))]
    return first
