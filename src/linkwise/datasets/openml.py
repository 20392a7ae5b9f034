"""Data sets of OpenML, through scikit-learn, turned into what the papers used."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import numpy as np

from linkwise._quiet import quiet
from linkwise.datasets.preprocess import encoded

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Ints
    from linkwise.datasets.catalogue import OpenML


def fetch(wanted: OpenML) -> tuple[AnyArray, Ints]:
    """Fetch a data set, from the cache of scikit-learn if it was fetched before.

    Raises
    ------
    OSError
        If the network or the server fails.
    ValueError
        If the answer is not what was asked for.
    """
    # Imported late: it brings in much that `import linkwise` can do without.
    from sklearn.datasets import fetch_openml  # noqa: PLC0415

    # The pure Python parser numbers nominal values in the same way in all versions; the one of
    # pandas is needed for the speed on large data, where there is nothing to number.
    parser = "pandas" if wanted.numeric and find_spec("pandas") else "liac-arff"
    with quiet():  # one error at the end says more than a warning for each retry
        try:
            bunch = fetch_openml(data_id=wanted.data_id, as_frame=False, parser=parser)
        except HTTPError as error:
            error.close()  # it holds the connection
            raise
    found = str(bunch.details["name"])
    if found.lower() != wanted.name.lower():
        raise ValueError(f"OpenML's data set {wanted.data_id} is {found!r}, not {wanted.name!r}.")
    X = decoded(bunch.data, list(bunch.feature_names), bunch.categories or {}, wanted=wanted)
    y = encoded(bunch.target, wanted.classes)
    return (X, y) if wanted.prepare is None else wanted.prepare(X, y)


def decoded(
    data: AnyArray, names: list[str], categories: dict[str, list[str]], *, wanted: OpenML
) -> Floats:
    """Return the features as numbers, without those to drop.

    `categories` are the values of each nominal feature, which the data hold as places in them.
    """
    keep = [number for number, name in enumerate(names) if name not in wanted.drop]
    X = np.asarray(data)[:, keep].astype(np.float64)
    for column, number in enumerate(keep):
        name = names[number]
        if name in categories:
            value = _values(categories[name], wanted.codes.get(name, {}))
            known = ~np.isnan(X[:, column])
            X[known, column] = value[X[known, column].astype(np.intp)]
    return X


def _values(categories: list[str], codes: Any) -> Floats:
    """Return the number that stands for each nominal value."""
    if codes:
        return np.array([codes[category] for category in categories])
    try:
        return np.array([float(category) for category in categories])
    except ValueError:
        return np.arange(float(len(categories)))
