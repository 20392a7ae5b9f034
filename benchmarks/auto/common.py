"""What the benchmarks of `Auto` share: the data sets, the noise, the tables."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from linkwise import Constraints, Prepared
from linkwise.auto.views import canonical_order

SHARED = Path(__file__).parents[3] / "shared"
OUT = Path(__file__).parent / "out"

# The first group was looked at while the method was designed, the second was not.
DESIGN = [
    *("dermatology", "ecoli", "glass", "iris", "mit8_gist", "sonar", "wine", "yale_32x32", "zoo"),
]
VALIDATION = [
    *("corel15_gist", "hepatitis", "ionosphere", "orl_32x32", "soybean_small", "usps", "wdbc"),
]
SUBSETS = {"mit8_gist": 800, "corel15_gist": 1500, "usps": 2000}


def load(folder, name, *, standardize=True):
    """Return a data set and its classes; large ones are cut to a random subset."""
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        sys.exit(f"There is no {path}. Give the folder of the data sets with --data.")
    stored = np.load(path)
    X, y = stored["X"].astype(float), np.unique(stored["y"], return_inverse=True)[1]
    if name in SUBSETS and y.size > SUBSETS[name]:
        kept = np.random.RandomState(0).permutation(y.size)[: SUBSETS[name]]
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    return StandardScaler().fit_transform(X) if standardize else X, y


def with_flips(known, share, seed):
    """Return the pairs with a share of them turned around, and which ones these are."""
    must, cannot = known.must_link, known.cannot_link
    n = len(must) + len(cannot)
    flipped = np.zeros(n, dtype=bool)
    flipped[np.random.RandomState(seed).permutation(n)[: round(share * n)]] = True
    pairs = np.vstack([must, cannot])
    is_must = (np.arange(n) < len(must)) ^ flipped
    wrong = {tuple(sorted(pair)) for pair in pairs[flipped].tolist()}
    turned = Constraints(known.n_samples, must_link=pairs[is_must], cannot_link=pairs[~is_must])
    return turned, wrong


def fitted(model, X, known=None):
    """Fit `Auto`; return what it knows of its candidates, an `Answer`.

    Its samples are in an order of their own, which is that of X if X was sorted by `canonical`.
    """
    kept, find = [], model._found

    def keep(*args, **kwargs):
        kept.append(find(*args, **kwargs))
        return kept[0]

    model._found = keep
    model.fit(X, constraints=known)
    del model._found
    return kept[0].answer


def canonical(X, y):
    """Return samples and classes in the order in which `Auto` looks at them."""
    order = canonical_order(Prepared(X))
    return X[order], y[order]


def pin():
    """Compute on one thread, without warnings, from here on."""
    warnings.simplefilter("ignore")
    threadpool_limits(1)


def show(title, header, rows, path=None):
    """Print a Markdown table; append it to a file if there is one."""
    lines = [f"## {title}", "", f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    text = "\n".join(lines) + "\n\n"
    print(text, flush=True)
    if path is not None:
        OUT.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)


def number(value, digits=3):
    return "-" if value is None or not np.isfinite(value) else f"{value:.{digits}f}"
