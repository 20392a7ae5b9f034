"""Data of the measurements: blobs or a surface of any size; MNIST on 50 principal components."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
SHARED = Path(os.environ.get("LINKWISE_DATA", HERE.parents[3] / "shared" / "data"))
CENTERS, FEATURES, SPREAD = 10, 16, 1.0
INNER, RANGE, NOISE = (
    5,
    5.0,
    0.01,
)  # dimensions of the surface, where its centres are, and its noise
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


def surface_chunk(number, size):
    """Return one chunk of samples on a smooth surface with a little noise, and their clusters.

    Ten clusters that touch are drawn in 5 dimensions, which are bent into 16 features. Near each
    other, samples differ in 5 directions, as most data differ in fewer directions than features.
    """
    shape = np.random.RandomState(SEED)
    centers = shape.uniform(-RANGE, RANGE, size=(CENTERS, INNER))
    flat = np.linalg.qr(shape.normal(size=(FEATURES, INNER)))[0].T
    waves, phases = shape.normal(size=(INNER, FEATURES)) / 4, shape.uniform(0, 6.28, FEATURES)
    rng = np.random.default_rng([SEED, number])
    y = rng.integers(CENTERS, size=size)
    inner = centers[y] + SPREAD * rng.standard_normal((size, INNER))
    X = inner @ flat + np.sin(inner @ waves + phases)
    X += NOISE * rng.standard_normal((size, FEATURES))
    return X.astype(np.float32), y


CHUNKS = {"blobs": blobs_chunk, "surface": surface_chunk}


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
