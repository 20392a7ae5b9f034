"""What a default must not get wrong: eight shapes, XOR with eight pairs, units, seeds.

Run: python benchmarks/auto/shapes.py [--data folder]

1. Eight generated shapes without pairs, beside k-means and NCut.
2. XOR (four squares, opposite ones belong together) with eight random pairs, ten draws.
3. Real sets as given and standardised, without pairs: `Auto` chooses the scaling.
4. 1,000 digits with 300 pairs: five values of random_state.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import OUT, SHARED, load, number, pin, show
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons

from linkwise import Auto, Constraints, NCut, Prepared
from linkwise.metrics import adjusted_rand

RAW = ("wine", "wdbc", "dermatology", "hepatitis")
N_DRAWS, N_SEEDS = 10, 5


def squares(rng):
    """Return four squares, and the class of each sample: opposite squares share one."""
    corner = np.repeat(np.arange(4), 100)
    X = rng.uniform(0, 1, (400, 2)) + 1.8 * np.c_[corner % 2, corner // 2]
    return X, np.array([0, 1, 1, 0])[corner]


def spirals(rng):
    """Return two spirals."""
    turn = np.sqrt(rng.uniform(0.03, 1, 400))
    y = np.repeat([0, 1], 200)
    angle = 2 * np.pi * turn + np.pi * y
    return np.c_[turn * np.cos(angle), turn * np.sin(angle)] + 0.02 * rng.randn(400, 2), y


def shapes():
    """Yield name, samples and classes."""
    rng = np.random.RandomState(0)
    yield "moons", *make_moons(400, noise=0.08, random_state=0)
    yield "circles", *make_circles(400, factor=0.5, noise=0.05, random_state=0)
    yield "spirals", *spirals(rng)
    yield "XOR", *squares(rng)
    X, y = make_blobs(500, centers=3, random_state=170)
    yield "stretched", X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y
    yield "varied", *make_blobs(500, centers=3, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    yield "ten blobs, 5-d", *make_blobs(500, 5, centers=10, cluster_std=2.0, random_state=0)
    X, y = make_blobs(400, 3, centers=3, random_state=1)
    yield "blobs, 20 noise features", np.c_[X, X.std() * rng.randn(400, 20)], y


def shape_rows():
    for name, X, y in shapes():
        k = int(y.max()) + 1
        start = time.process_time()
        model = Auto(k, random_state=0).fit(X)
        seconds = time.process_time() - start
        labels = KMeans(k, n_init=10, random_state=0).fit_predict(X)
        simple = labels, NCut(k, random_state=0).fit(X).labels_
        scores = [adjusted_rand(y, one) for one in (*simple, model.labels_)]
        kind = max(model.report_.kinds, key=model.report_.kinds.get)
        yield [
            name,
            *map(number, scores),
            number(scores[2] - max(scores[:2])),
            kind,
            f"{seconds:.2f}",
        ]


def xor_rows():
    X, y = squares(np.random.RandomState(0))
    for draw in range(N_DRAWS):
        known = Constraints.sample(y, 8, random_state=draw)
        model = Auto(2, random_state=0).fit(X, constraints=known)
        yield [draw, number(adjusted_rand(y, model.labels_)), model.report_.n_violated]


def unit_rows(data):
    for name in RAW:
        k_scores, scaling = [], ""
        for standardize in (False, True):
            X, y = load(data, name, standardize=standardize)
            model = Auto(int(y.max()) + 1, random_state=0).fit(X)
            k_scores.append(adjusted_rand(y, model.labels_))
            scaling = scaling or model.report_.scaling
        yield [name, *map(number, k_scores), number(k_scores[0] - k_scores[1]), scaling]


def seed_rows():
    X, y = load_digits(return_X_y=True)
    kept = np.random.RandomState(0).permutation(y.size)[:1000]
    X, y = X[kept], y[kept]
    known = Constraints.sample(y, 300, random_state=0)
    data = Prepared(X)
    for seed in range(N_SEEDS):
        model = Auto(10, random_state=seed).fit(data.cold(), constraints=known)
        free = adjusted_rand(y, model.labels_, outside=known)
        yield [seed, number(adjusted_rand(y, model.labels_)), number(free)]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=SHARED / "data")
    asked = options.parse_args()
    pin()
    path = OUT / "shapes.md"
    path.unlink(missing_ok=True)
    head = ["shape", "k-means", "NCut", "Auto", "against the better", "kind", "CPU s"]
    show("Without pairs", head, shape_rows(), path)
    show("XOR, eight pairs", ["draw", "ARI", "violated"], xor_rows(), path)
    head = ["set", "as given", "standardised", "difference", "scaling of those as given"]
    show("Units, without pairs", head, unit_rows(asked.data), path)
    show("Digits, 300 pairs", ["random_state", "ARI", "ARI, free"], seed_rows(), path)


if __name__ == "__main__":
    main()
