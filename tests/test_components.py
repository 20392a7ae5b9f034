"""Connected components of symmetric graphs, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from linkwise.linalg import laplacian
from linkwise.linalg.laplacian import symmetric_components
from linkwise.partition import relabelled


@pytest.fixture(autouse=True, params=["scipy's search", "the kernel"])
def route(request, monkeypatch):
    if request.param == "the kernel":  # as for graphs of many edges
        monkeypatch.setattr(laplacian, "SMALL_GRAPH", -1)


@pytest.mark.parametrize("n_edges", [0, 20, 60, 100, 400])
@pytest.mark.parametrize("form", [csr_array, csr_array.toarray])
def test_against_scipy(n_edges, form):
    random = np.random.RandomState(n_edges)
    i, j = random.randint(100, size=(2, n_edges))
    W = csr_array(coo_array((random.uniform(0.1, 1, size=n_edges), (i, j)), shape=(100, 100)))
    W = csr_array(W + W.T)
    n_components, component = symmetric_components(form(W))
    expected = connected_components(W, directed=False)
    assert n_components == expected[0]
    assert_array_equal(component, relabelled(expected[1]))  # numbered by first appearance


def test_stored_zeros_and_loops_join_nothing():
    W = csr_array((np.array([0.0, 0.0, 2.0]), ([0, 1, 2], [1, 0, 2])), shape=(3, 3))
    assert W.nnz == 3
    assert symmetric_components(W)[0] == 3
    assert symmetric_components(csr_array((0, 0)))[0] == 0


def test_one_edge_after_many_joins_two_cliques():
    # Two edges a vertex do not show it, whichever end it is looked for.
    for sizes in ((5, 9), (9, 5)):
        W = np.zeros((14, 14))
        W[: sizes[0], : sizes[0]] = W[sizes[0] :, sizes[0] :] = 1
        np.fill_diagonal(W, 0)
        assert symmetric_components(csr_array(W))[0] == 2
        W[sizes[0] - 1, 13] = W[13, sizes[0] - 1] = 1
        assert symmetric_components(csr_array(W))[0] == 1
