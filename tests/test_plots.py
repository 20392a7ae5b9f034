"""Colours of clusterings that are drawn beside each other."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.plots import draw_side_by_side, matched


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


@pytest.mark.parametrize(("n", "has_legend"), [(2, True), (12, True), (13, False)])
def test_a_legend_names_few_clusters(n, has_legend):
    pytest.importorskip("matplotlib")
    labels = np.repeat(np.arange(n), 2)
    X = np.random.RandomState(0).normal(size=(2 * n, 2))
    legend = draw_side_by_side(X, {"a": labels}, legend_title="cluster").axes[0].get_legend()
    assert (legend is not None) == has_legend
    if has_legend:
        assert legend.get_title().get_text() == "cluster"
        assert [text.get_text() for text in legend.get_texts()] == [str(k) for k in range(n)]
    assert draw_side_by_side(X, {"a": labels}).axes[0].get_legend() is None
