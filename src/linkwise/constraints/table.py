"""PairTable: constraints as columns, one row per pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Bools, Floats, Int64s, Ints


class Violations(NamedTuple):
    """Numbers of violated pairs."""

    must_link: int
    cannot_link: int

    @property
    def total(self) -> int:
        """Violated pairs of both kinds."""
        return self.must_link + self.cannot_link


class PairTable(NamedTuple):
    """Pairs of samples as columns of equal length.

    `Constraints.table` holds the must-links first, then the cannot-links, each sorted. Count its
    rows with ``len(table.pairs)``.
    """

    pairs: Ints  # of shape (m, 2), the smaller index first
    sign: Floats  # +1 for a must-link, -1 for a cannot-link
    belief: Floats  # in (0, 1]; 1 is certain
    row: Ints  # where the pair was among the given ones of its kind, or its line in a file

    @classmethod
    def of(
        cls,
        must_link: Ints,
        cannot_link: Ints,
        *,
        must_link_belief: Floats | float = 1.0,
        cannot_link_belief: Floats | float = 1.0,
    ) -> PairTable:
        """Return must-links and cannot-links as one table, in the order given."""
        n_must, n_cannot = len(must_link), len(cannot_link)
        belief = np.empty(n_must + n_cannot)
        belief[:n_must], belief[n_must:] = must_link_belief, cannot_link_belief
        return cls(
            np.concatenate((must_link, cannot_link)),
            np.repeat([1.0, -1.0], [n_must, n_cannot]),
            belief,
            np.concatenate((np.arange(n_must), np.arange(n_cannot))),
        )

    @property
    def is_must_link(self) -> Bools:
        """Which pairs are must-links; the others are cannot-links."""
        return self.sign > 0

    @property
    def weight(self) -> Floats:
        """Belief of a must-link, minus the belief of a cannot-link."""
        return self.sign * self.belief

    def kept(self, rows: Any) -> PairTable:
        """Return some of the rows, chosen by a mask or by indices."""
        return PairTable(self.pairs[rows], self.sign[rows], self.belief[rows], self.row[rows])

    def joined(self, other: PairTable) -> PairTable:
        """Return these pairs, then the others, numbered on from the last row of their kind."""
        n_must, n_cannot = (self.row[self.sign == sign].max(initial=-1) + 1 for sign in (1.0, -1.0))
        row = other.row + np.where(other.is_must_link, n_must, n_cannot)
        parts = zip(self, other._replace(row=row), strict=True)
        return PairTable(*(np.concatenate(columns) for columns in parts))

    def unique(self, n_samples: int) -> PairTable:
        """Sort must-links before cannot-links, then by pair; each pair once per sign.

        Of duplicates the larger belief stays, then the earlier row.
        """
        keys = pair_keys(self.pairs, n_samples)
        order = np.lexsort((-self.belief, keys, -self.sign))
        keys, sign = keys[order], self.sign[order]
        first = np.ones(keys.size, dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (sign[1:] != sign[:-1])
        return self.kept(order[first])

    def is_violated(self, labels: AnyArray) -> Bools:
        """Return which pairs a clustering violates: must-links apart, cannot-links together."""
        together: Bools = labels[self.pairs[:, 0]] == labels[self.pairs[:, 1]]
        return together != self.is_must_link


def pair_keys(pairs: Ints, n_samples: int) -> Int64s:
    """Return one integer per pair that sorts as the pair does."""
    keys: Int64s = pairs[:, 0].astype(np.int64) * n_samples + pairs[:, 1]
    return keys


def read_only(array: Any) -> Any:
    """Forbid writing to an array that this package owns."""
    array.setflags(write=False)
    return array


def common_pair(must_link: Ints, cannot_link: Ints, n_samples: int) -> tuple[int, int] | None:
    """Return the positions, in each array, of the first pair that is in both."""
    _, in_must, in_cannot = np.intersect1d(
        pair_keys(must_link, n_samples), pair_keys(cannot_link, n_samples), return_indices=True
    )
    return (int(in_must[0]), int(in_cannot[0])) if in_must.size else None


def symmetric_matrix(pairs: Ints, weights: Floats, n_samples: int) -> csr_array:
    """Return a symmetric matrix with the weight of each pair."""
    upper = coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n_samples,) * 2)
    return csr_array(upper + upper.T)
