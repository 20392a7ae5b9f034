"""Leading eigenvectors of graphs, with and without a warm start."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from linkwise.linalg.embedding import leading_eigenpairs
from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.warm import EigenWarmStart


def test_what_follows_a_search_does_not_depend_on_how_long_it_takes():
    rng = np.random.RandomState(0)
    W = csr_array(rng.uniform(size=(300, 300)) * (rng.uniform(size=(300, 300)) < 0.05))
    W = csr_array(W + W.T)
    S, profile = normalized_adjacency(W), np.sqrt(degrees(W))
    warm, after = EigenWarmStart(), []
    for _ in range(2):
        rng = np.random.RandomState(0)
        found = leading_eigenpairs(S, 4, rng, profile=profile, warm=warm)
        after.append(rng.uniform(size=3))
    assert found.converged
    assert warm.vectors is found.vectors
    assert_allclose(after[0], after[1], rtol=0)
