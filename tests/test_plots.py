"""Colours of clusterings that are drawn beside each other."""

from __future__ import annotations

import numpy as np

from linkwise.plots import matched


def test_clusters_get_the_numbers_they_share_most_samples_with():
    truth = np.repeat([0, 1, 2], 10)
    shuffled = np.array([2, 0, 1])[truth]
    shuffled[0] = 0  # one sample is elsewhere
    expected = truth.copy()
    expected[0] = 1
    assert matched(shuffled, truth).tolist() == expected.tolist()


def test_clusters_beyond_the_reference_get_free_numbers():
    found = matched(["x", "y", "z", "z", "z"], [0, 0, 0, 0, 1])
    assert sorted(set(found.tolist())) == [0, 1, 2]
    assert len({tuple(np.flatnonzero(found == c)) for c in range(3)}) == 3


def test_the_same_clusters_stay_the_same():
    labels = np.array([1, 1, 0, 2, 2])
    assert matched(labels, labels).tolist() == labels.tolist()
