"""Data of the measurements: blobs of any size, and MNIST on 50 principal components."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
CENTERS, FEATURES, SPREAD = 10, 16, 1.0
SEED = 0


def centers():
    """Ten centres, whose clusters touch."""
    return np.random.RandomState(SEED).uniform(-2.2, 2.2, size=(CENTERS, FEATURES))


def blobs_chunk(number, size):
    """Return one chunk of the blobs: samples in single precision, and their clusters."""
    rng = np.random.default_rng([SEED, number])
    y = rng.integers(CENTERS, size=size)
    X = centers()[y] + SPREAD * rng.standard_normal((size, FEATURES))
    return X.astype(np.float32), y


def blobs(n, chunk=100_000):
    """Return blobs as arrays."""
    parts = [blobs_chunk(i, min(chunk, n - i * chunk)) for i in range(-(-n // chunk))]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def mnist(shared=SHARED):
    """Return the 70,000 digits on their first 50 principal components."""
    from sklearn.decomposition import PCA

    given = np.load(shared / "mnist.npz")
    X = given["X"].reshape(len(given["y"]), -1).astype(np.float64) / 255
    return PCA(50, random_state=0).fit_transform(X), given["y"].astype(int)
