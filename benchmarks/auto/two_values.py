"""`Auto` on features with two values: generated answers to yes/no questions, and one-hot columns.

Run: python benchmarks/auto/two_values.py [--first 0] [--sets 20] [--pairs 0 20 n/10]

Each set has 2 to 6 classes of 200 to 600 people, who answer 8 to 30 questions with 2 to 4 choices;
a class has a frequency of its own for each choice. Questions with more than two choices become a
column for each choice. Set `seed` of one run is the same in every other. Prints the mean ARI of
`Auto`, and of k-means and `NCut` without pairs.
"""

from __future__ import annotations

import numpy as np
from battery import run_generated
from sklearn.preprocessing import StandardScaler


def answers(seed):
    """Return standardised answers, a column for each choice, and the classes."""
    rng = np.random.RandomState(seed)
    k, n_questions, n = rng.randint(2, 7), rng.randint(8, 30), rng.randint(200, 600)
    n_choices, spread = rng.randint(2, 5), rng.choice([0.3, 0.7, 1.5])
    share = rng.dirichlet(np.full(n_choices, spread), size=(k, n_questions))
    y = np.unique(rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0))), return_inverse=True)[1]
    below = share[y].cumsum(axis=2)
    chosen = (rng.uniform(size=(n, n_questions, 1)) > below[:, :, :-1]).sum(axis=2)
    choices = range(n_choices) if n_choices > 2 else [1]
    X = np.hstack([chosen == one for one in choices]).astype(float)
    return StandardScaler().fit_transform(X[:, X.std(axis=0) > 0]), y


if __name__ == "__main__":
    run_generated(answers, __doc__, n_sets=20)
