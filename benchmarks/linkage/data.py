"""Sets of many small clusters: records, faces, generated ones; and pairs for a reviewer."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from linkwise import Constraints
from linkwise.graph.neighbors import NeighborSearch

SHARED = Path(__file__).parents[3] / "shared"
FEBRL = Path(tempfile.gettempdir())  # where febrl.py has put its files

# Rules and constants were chosen while looking at the first group; the difficulty of generated
# sets was set by looking at results. No choice was made on the second.
DESIGN = (
    *("zipf", "zipf3", "tails", "childhood", "orl", "voices", "broad", "broad2"),
    *("scales", "small", "voices2", "yale", "febrl2", "febrl3"),
)
REPORT = ("tails3", "febrl4")
# The order in which answers are merged, and the likelihood of a cut, were chosen on these alone.
CHOSEN_ON = ("orl", "voices", "broad", "zipf", "zipf3", "tails", "childhood", "febrl3")


def load(name, seed=0):
    """Return samples and their clusters."""
    if name in GENERATED:
        return GENERATED[name](np.random.RandomState(1000 + seed))
    if name in ("orl", "yale"):
        stored = np.load(SHARED / "data" / f"{name}_32x32.npz")
        return stored["X"].astype(float), codes(stored["y"])
    if name == "childhood":
        path = SHARED / "data" / "records" / "early_childhood.csv"
        fields, key = ("Site name", "Address", "Zip", "Phone"), "True Id"
    else:
        path, fields, key = FEBRL / f"{name}.csv", None, "entity"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = [" ".join((r[f] or "").strip().lower() for f in fields or list(r)[1:]) for r in rows]
    return text_vectors(texts), codes([r[key] for r in rows])


def codes(values):
    return np.unique(values, return_inverse=True)[1]


def text_vectors(texts):
    """Return hashed character n-grams of texts, weighted by their rarity."""
    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 3), n_features=2**18, alternate_sign=False, norm=None
    )
    return TfidfTransformer(sublinear_tf=True).fit_transform(hashing.transform(texts))


def zipf_sizes(n, k, rng, exponent=1.0):
    """Return clusters of samples, every cluster at least once, sizes by Zipf's law."""
    share = np.arange(1, k + 1) ** -exponent
    drawn = rng.choice(k, n - k, p=share / share.sum())
    return rng.permutation(np.concatenate((np.arange(k), drawn)))


def clusters(rng, n=5_000, k=768, d=64, *, tails=None, scales=False, spread=0.8, exponent=1.0):
    """Return clusters whose spread differs by direction; with heavy tails or hidden scales."""
    y = zipf_sizes(n, k, rng, exponent)
    between = np.exp(-np.arange(d) / 20)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    within = 4 * np.exp(-rng.permutation(d) / 8) + 0.2  # wide where it says nothing
    noise = rng.normal(size=(n, d)) * np.sqrt(within)
    if tails:
        noise *= np.sqrt(tails / rng.chisquare(tails, size=(n, 1)))
    X = rng.normal(size=(k, d))[y] * np.sqrt(between) + spread * noise @ Q
    return (X * 10 ** rng.uniform(-0.5, 0.5, d) if scales else X), y


def voices(rng, n=400, k=7, d=128):
    """Return unit vectors like embeddings of speech: speakers, and channels they share."""
    y = zipf_sizes(n, k, rng, 0.7)
    channel = rng.normal(size=(20, d)) * 0.22
    X = rng.normal(size=(k, d))[y] + rng.normal(size=(n, 20)) @ channel * 1.3
    X += 1.1 * rng.normal(size=(n, d)) * rng.gamma(4, 0.25, size=(n, 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def broad(rng, n=2_400, k=100, d=40):
    """Return a few large clusters among many small ones, each of a width of its own."""
    y = zipf_sizes(n, k, rng, 1.35)
    width = rng.lognormal(0, 0.35, size=k)
    noise = rng.normal(size=(n, d)) * np.sqrt(6 / rng.chisquare(6, size=(n, 1)))
    return rng.normal(size=(k, d))[y] * 1.15 + 0.75 * noise * width[y, None], y


GENERATED = {
    "zipf": clusters,
    "zipf3": lambda rng: clusters(rng, 3_000, 900, 40, spread=0.6),
    "scales": lambda rng: clusters(rng, scales=True),
    "tails": lambda rng: clusters(rng, tails=4, spread=0.45),
    "tails3": lambda rng: clusters(rng, 4_000, 500, 48, tails=3, spread=0.4),
    "small": lambda rng: clusters(rng, 4_000, 1_600, 32, spread=0.4, exponent=0.5),
    "voices": voices,
    "voices2": lambda rng: voices(rng, 600, 12, 160),
    "broad": broad,
    "broad2": lambda rng: broad(rng, 3_000, 60, 30),
}


def reviewed_pairs(X, y, m, *, wrong=0.0, seed=0, bins=10):
    """Return pairs of neighbours, equally many from ten bins of distance; and which are wrong."""
    rng = np.random.RandomState(seed)
    n = y.size
    distances, indices = NeighborSearch(X).nearest(10)
    pairs = np.column_stack((np.repeat(np.arange(n), 10), indices.ravel()))
    pairs.sort(axis=1)
    _, first = np.unique(pairs[:, 0] * n + pairs[:, 1], return_index=True)
    pairs, distances = pairs[first], distances.ravel()[first]
    order = np.argsort(distances, kind="stable")
    parts = np.array_split(order, bins)
    share = [m // bins + (b < m % bins) for b in range(bins)]
    taken = np.concatenate(
        [rng.permutation(part)[:size] for part, size in zip(parts, share, strict=True)]
    )
    pairs = pairs[taken]
    flipped = np.zeros(len(pairs), bool)
    flipped[rng.permutation(len(pairs))[: round(wrong * len(pairs))]] = True
    must = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ flipped
    return Constraints(n, pairs[must], pairs[~must]), {tuple(p) for p in pairs[flipped].tolist()}
