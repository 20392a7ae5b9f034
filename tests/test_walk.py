"""Leading eigenvectors of walks, with and without a memory."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, random_array

from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.memory import Memory
from linkwise.linalg.walk import leading_vectors


def test_what_follows_a_search_does_not_depend_on_how_long_it_takes():
    W = random_array((300, 300), density=0.05, rng=0)
    W = csr_array(W + W.T)
    S, profile = normalized_adjacency(W), np.sqrt(degrees(W))
    memory, after = Memory(), []
    for _ in range(2):
        rng = np.random.RandomState(0)
        found = leading_vectors(S, profile, 4, rng, memory=memory)
        after.append(rng.uniform(size=3))
    assert found.converged
    assert memory.recall("walk") is found.vectors
    assert_allclose(after[0], after[1], rtol=0)
