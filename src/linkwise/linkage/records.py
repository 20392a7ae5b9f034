"""Records as sparse vectors: text, numbers and categories side by side, missing ones left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from linkwise._types import Floats

N_HASHED = 2**18
KNOTS = 16  # quantiles of a number, between which its weight is shared
UNKNOWN = {"", "?", "n/a", "nan", "<na>"}  # what is written where nothing is known


class RecordVectorizer(TransformerMixin, BaseEstimator):
    """Vectors of records, whose cosines tell how much they agree.

    Text becomes its character n-grams (two and three letters within words), hashed and weighted by
    rarity, so that a typing error changes a few of many. The words of all text columns are put
    together: a name is found in the wrong column, too. A category has a coordinate for each
    value. A number is shared between the two nearest of sixteen quantiles, so that near numbers
    agree in part. Each number and each category weighs as much as a text column does on average.

    A missing field has no coordinates at all: it agrees with nothing, not with another missing one
    either.

    Parameters
    ----------
    text : sequence of str
        Columns of text.
    numeric : sequence of str, default=()
        Columns of numbers; NaN is missing.
    categorical : sequence of str, default=()
        Columns of categories.

    Examples
    --------
    >>> people = {"name": ["Ann Smith", "Anne Smith", "Bo Li"], "age": [41, 41, np.nan]}
    >>> V = RecordVectorizer(["name"], numeric=["age"]).fit_transform(people)
    >>> agreement = (V @ V.T).toarray()
    >>> bool(agreement[0, 1] > 0.7), bool(agreement[0, 2] < 0.1)
    (True, True)
    """

    def __init__(
        self, text: Sequence[str], *, numeric: Sequence[str] = (), categorical: Sequence[str] = ()
    ) -> None:
        self.text = text
        self.numeric = numeric
        self.categorical = categorical

    def fit(self, X: Mapping[str, Any], y: object = None) -> RecordVectorizer:
        """Learn which n-grams are rare, the categories, and the quantiles of numbers.

        Parameters
        ----------
        X : mapping from column names to values, such as a data frame
            The records.
        y : Ignored
        """
        counts = _ngrams(X, self.text)
        self.rarity_ = TfidfTransformer(sublinear_tf=True, norm=None).fit(counts)
        squares = self.rarity_.transform(counts).power(2).sum() if self.text else 0.0
        filled = sum(int(np.sum([bool(t) for t in _texts(X[name])])) for name in self.text)
        self.weight_ = float(np.sqrt(squares / filled)) if filled else 1.0
        self.quantiles_ = {name: _quantiles(_numbers(X[name])) for name in self.numeric}
        self.values_ = {
            name: {value: at for at, value in enumerate(sorted(set(_texts(X[name])) - {""}))}
            for name in self.categorical
        }
        return self

    def transform(self, X: Mapping[str, Any]) -> csr_array:
        """Return one row of unit length for each record; of an empty one, zeros.

        Parameters
        ----------
        X : mapping from column names to values, such as a data frame
            The records.

        Returns
        -------
        csr_array of shape (n_records, n_coordinates)
        """
        check_is_fitted(self)
        blocks = [csr_array(self.rarity_.transform(_ngrams(X, self.text)))] if self.text else []
        for name, knots in self.quantiles_.items():
            blocks.append(self.weight_ * _hats(_numbers(X[name]), knots))
        for name, values in self.values_.items():
            blocks.append(self.weight_ * _one_hot(_texts(X[name]), values))
        found: csr_array = csr_array(normalize(csr_array(hstack(blocks, format="csr"))))
        return found


def _texts(column: Iterable[Any]) -> list[str]:
    """Return values as lower-case text; missing ones are empty."""
    texts = ["" if value is None else " ".join(str(value).lower().split()) for value in column]
    return ["" if text in UNKNOWN else text for text in texts]


def _numbers(column: Any) -> Floats:
    return np.asarray(column, dtype=np.float64)


def _ngrams(X: Mapping[str, Any], columns: Sequence[str]) -> csr_array:
    """Count the n-grams of the words of all columns together."""
    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 3), n_features=N_HASHED, alternate_sign=False, norm=None
    )
    rows = zip(*(_texts(X[name]) for name in columns), strict=True)
    return csr_array(hashing.transform([" ".join(row) for row in rows] or [""]))


def _quantiles(numbers: Floats) -> Floats:
    known = numbers[np.isfinite(numbers)]
    return np.unique(np.quantile(known, np.linspace(0, 1, KNOTS))) if known.size else np.zeros(1)


def _hats(numbers: Floats, knots: Floats) -> csr_array:
    """Share each number between the two knots around it, in unit length; NaN has none."""
    rows = np.flatnonzero(np.isfinite(numbers))
    place = np.interp(numbers[rows], knots, np.arange(knots.size))
    below = np.minimum(place.astype(np.intp), max(knots.size - 2, 0))
    part = place - below
    shares = np.concatenate((1 - part, part))
    columns = np.concatenate((below, np.minimum(below + 1, knots.size - 1)))
    shape = (numbers.size, knots.size)
    hats = csr_array((shares, (np.tile(rows, 2), columns)), shape=shape)
    length = np.sqrt(np.asarray(hats.power(2).sum(axis=1)).ravel())
    return csr_array(diags_array(1 / np.where(length > 0, length, 1.0)) @ hats)


def _one_hot(texts: list[str], values: Mapping[str, int]) -> csr_array:
    at = np.array([values.get(text, -1) for text in texts], dtype=np.intp)
    rows = np.flatnonzero(at >= 0)
    ones = np.ones(rows.size)
    return csr_array((ones, (rows, at[rows])), shape=(at.size, max(len(values), 1)))
