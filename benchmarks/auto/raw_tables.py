"""`Auto` on tables as people have them, generated: numbers in units, ratings, dummies.

Run: python benchmarks/auto/raw_tables.py [--first 0] [--sets 16] [--pairs 0 20 n/10]

Each set has 2 to 4 classes of 150, 300 or 600 people in all: 2 to 5 numbers in units of their own
(an income, an age, a share, ...), 1 to 3 ratings from 1 to 5, a category that depends on the class,
one that does not, and often a question with two answers. Categories are columns of 0 and 1, in two
of five sets without the first of each. Nothing is scaled. Prints the mean ARI of `Auto`, and of
k-means and `NCut` without pairs.
"""

from __future__ import annotations

import numpy as np
from battery import run_generated

UNITS = ((15_000, 40_000), (12, 45), (0.1, 0.5), (900, 2_000), (8, 70))  # deviation, mean


def raw_table(seed):
    """Return a table, and the classes."""
    rng = np.random.RandomState(5_000 + seed)
    n, k = int(rng.choice([150, 300, 600])), int(rng.choice([2, 3, 3, 4]))
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 10.0)))
    columns = []
    for unit, middle in UNITS:
        if len(columns) >= 2 and rng.rand() < 0.4:
            continue
        apart = rng.uniform(1.0, 2.5) if rng.rand() < 0.8 else 0.0
        number = middle + unit * (_levels(rng, k)[y] * apart + rng.randn(n))
        columns.append(np.round(number, 0 if unit > 1 else 3))
    for _ in range(rng.randint(1, 4)):
        rating = np.round(3 + _levels(rng, k)[y] * rng.uniform(0, 1.3) + rng.randn(n))
        columns.append(np.clip(rating, 1, 5))
    categories = [_category(rng, y, k, n_values=rng.randint(3, 7), concentration=0.5)]
    categories.append(_category(rng, y, 1, n_values=rng.randint(3, 9)))
    if rng.rand() < 0.5:
        categories.append(_category(rng, y, k if rng.rand() < 0.5 else 1, n_values=2))
    first = 1 if rng.rand() < 0.4 else 0  # column of each category
    for values in categories:
        columns += list((np.unique(values)[first:, None] == values).astype(float))
    return np.array(columns).T, y


def _levels(rng, k):
    """Return a level for each class, evenly spaced."""
    return rng.permutation(np.linspace(-1, 1, k))


def _category(rng, y, n_kinds, *, n_values, concentration=1.0):
    """Return values, drawn for each class from shares of its own, or from the same ones."""
    share = rng.dirichlet(np.full(n_values, concentration), size=n_kinds)
    return np.array([rng.choice(n_values, p=share[c % n_kinds]) for c in y])


if __name__ == "__main__":
    run_generated(raw_table, __doc__, n_sets=16)
