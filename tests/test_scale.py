"""What keeps methods affordable on large graphs: memory by counting, refusals, threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from linkwise import METHODS, Affinity, Constraints
from linkwise.exceptions import TooLargeError

N_SAMPLES, N_PAIRS, N_CLUSTERS = 20_000, 2_000, 5
FROM_LABELS = ("gfhf", "llgc", "poisson")
# What a fit may add at its peak, in units of the graph. Propagated pairs have sparse columns for
# every constrained sample, and bring new edges.
LIMITS = dict.fromkeys(("ncut", "sl", "csc", "signed", "fastge", "gp", "sclc", *FROM_LABELS), 12)
LIMITS |= {"cut": 16, "e2cp": 50, "srcp": 65}
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")


@pytest.fixture(scope="module")
def large():
    X, y = make_blobs(
        N_SAMPLES, 4, centers=N_CLUSTERS, cluster_std=2.0, center_box=(-5, 5), random_state=0
    )
    return Affinity(10).fit_transform(X), y


def known_of(key, y, n_known):
    if key not in FROM_LABELS:
        return Constraints.sample(y, n_known, random_state=0)
    partial = np.full(y.size, -1)
    chosen = np.random.RandomState(0).choice(y.size, n_known, replace=False)
    partial[chosen] = y[chosen]
    return Constraints.from_labels(partial)


def fitted(key, W, y, n_known):
    fast = {"effort": "fast"} if key == "cut" else {}
    model = METHODS[key](N_CLUSTERS, affinity="precomputed", random_state=0, **fast)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(W, constraints=known_of(key, y, n_known))


@pytest.mark.parametrize("key", LIMITS)
def test_nothing_of_the_size_of_samples_times_pairs_is_formed(key, large):
    W, y = large
    fitted(key, W, y, 100)  # what is loaded once, as compiled kernels, does not count
    graph = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    assert LIMITS[key] * graph < 8 * N_SAMPLES * N_PAIRS
    tracemalloc.start()
    try:
        fitted(key, W, y, N_PAIRS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= LIMITS[key] * graph, f"{peak / graph:.1f} times the graph"


@pytest.mark.parametrize(
    ("key", "settings"),
    [("srcp", {"solver": "exact"}), ("e2cp", {"solver": "exact"}), ("gp", {"solver": "exact"}),
     ("csp", {"solver": "dense"})],
)  # fmt: skip
def test_what_is_dense_by_nature_refuses_before_it_allocates(key, settings, large):
    W, y = large
    model = METHODS[key](N_CLUSTERS, affinity="precomputed", random_state=0, **settings)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match=r"limit is"):
            model.fit(W, constraints=Constraints.sample(y, 100, random_state=0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * N_SAMPLES**2 / 10


SAME_ON_THREADS = ("ncut", "sl", "csc", "signed", "fastge", "e2cp", "srcp", "gp", "sclc", "cut",
                   "gfhf", "llgc", "poisson")  # fmt: skip


def test_the_number_of_threads_does_not_change_a_label():
    answers = []
    for n_threads in (1, 2):
        pinned = {f"{name}_NUM_THREADS": str(n_threads) for name in THREADS}
        pinned["OMP_WAIT_POLICY"] = "passive"  # threads that spin would slow down other tests
        done = subprocess.run(
            [sys.executable, __file__],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **pinned},
        )
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    different = [key for key in SAME_ON_THREADS if answers[0][key] != answers[1][key]]
    assert not different


if __name__ == "__main__":
    X, y = make_blobs(2_500, 6, centers=N_CLUSTERS, cluster_std=3.0, random_state=0)
    W = Affinity(10).fit_transform(X)
    found = {key: fitted(key, W, y, 300).labels_.tolist() for key in SAME_ON_THREADS}
    print(json.dumps(found))
