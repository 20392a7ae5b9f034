"""`Auto` on tables of numbers, ratings and categories, generated.

Run: python benchmarks/auto/tables.py [--first 0] [--sets 24] [--pairs 0 20 n/10]

Each set has 2 to 4 classes of 200, 400 or 700 samples in all: 2 to 6 numbers, up to 2 skewed ones,
up to 3 ratings of 3 to 7 steps, and 1 to 4 categories of 2 to 4 values, with a column for each
value; half of the categories have nothing to do with the classes. In three of ten sets, one
sample of a hundred is far off. All are standardised. Prints the mean ARI of `Auto`, and of k-means
and `NCut` without pairs.
"""

from __future__ import annotations

import numpy as np
from battery import run_generated
from sklearn.preprocessing import StandardScaler


def table(seed):
    """Return a standardised table, and the classes."""
    rng = np.random.RandomState(1_000 + seed)
    n, k = int(rng.choice([200, 400, 700])), int(rng.choice([2, 2, 3, 4]))
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 10.0)))
    columns = [
        rng.randn(k)[y] * rng.uniform(0.8, 2.5) + rng.randn(n) for _ in range(rng.randint(2, 7))
    ]
    columns += [
        np.exp(rng.uniform(0.5, 1.2) * (rng.randn(k)[y] + rng.randn(n)))
        for _ in range(rng.randint(0, 3))
    ]
    for _ in range(rng.randint(0, 4)):
        steps = rng.randint(3, 8)
        rating = np.round(steps / 2 + rng.randn(k)[y] * 1.2 + rng.randn(n))
        columns.append(np.clip(rating, 1, steps))
    for _ in range(rng.randint(1, 5)):
        columns += _category(rng, y, k)
    X = np.array(columns).T
    if rng.rand() < 0.3:
        far = rng.choice(n, max(2, n // 100), replace=False)
        X[far, 0] *= rng.uniform(5, 15)
    return StandardScaler().fit_transform(X[:, X.std(axis=0) > 0]), y


def _category(rng, y, k):
    """Return a column for each value of a category, or one of two values."""
    n_values = rng.randint(2, 5)
    share = rng.dirichlet(np.full(n_values, 1.0), size=k if rng.rand() < 0.5 else 1)
    value = [rng.choice(n_values, p=share[c if len(share) > 1 else 0]) for c in y]
    chosen = np.eye(n_values)[value]
    return [chosen[:, 0]] if n_values == 2 else list(chosen.T)


if __name__ == "__main__":
    run_generated(table, __doc__, n_sets=24)
