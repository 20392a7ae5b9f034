"""A few labels per class on small sets: label methods beside `Auto`.

Run: python benchmarks/labels/few.py [iris wine ...]

Prints the mean ARI over random draws of labels. Features are standardised, except those of digits
and moons.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.preprocessing import StandardScaler

from linkwise import GFHF, Auto, Constraints, Poisson
from linkwise.metrics import adjusted_rand

SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "moons": lambda return_X_y: make_moons(300, noise=0.16, random_state=0),
}
AS_GIVEN = ("digits", "moons")
METHODS = {
    "GFHF": GFHF,
    "GFHF, class_mass": lambda k: GFHF(k, class_mass=True),
    "Poisson": Poisson,
    "Auto": lambda k: Auto(k, random_state=0),
}
N_DRAWS = 5


def drawn(y, per_class, seed):
    """Return the labels of so many random samples of each class, and -1 elsewhere."""
    rng = np.random.RandomState(seed)
    given = np.full(len(y), -1)
    for one in np.unique(y):
        given[rng.choice(np.flatnonzero(y == one), per_class, replace=False)] = one
    return Constraints.from_labels(given)


def main(names: list[str]) -> None:
    """Print a table for each number of labels per class."""
    print("set, labels per class:", *METHODS, sep=" | ")
    for name in names:
        X, y = SETS[name](return_X_y=True)
        X = X if name in AS_GIVEN else StandardScaler().fit_transform(X)
        for per_class in (1, 5):
            scores = [
                [
                    adjusted_rand(y, make(len(set(y))).fit(X, constraints=known).labels_)
                    for make in METHODS.values()
                ]
                for known in (drawn(y, per_class, seed) for seed in range(N_DRAWS))
            ]
            print(name, per_class, *(f"{one:.2f}" for one in np.mean(scores, axis=0)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SETS))
