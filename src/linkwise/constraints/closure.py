"""Closure: everything that certain constraints entail."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from linkwise.constraints.logic import with_label_pairs
from linkwise.constraints.table import (
    MAX_PAIRS,
    PairTable,
    choose_two,
    pair_keys,
    read_only,
    symmetric_matrix,
)
from linkwise.exceptions import TooLargeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import csr_array

    from linkwise._types import Int8s, Ints
    from linkwise.constraints.logic import Contraction
    from linkwise.constraints.value import Constraints


@dataclass(frozen=True, eq=False, repr=False)
class Closure:
    """All pairs that certain pairs and labels entail, kept as groups and pairs of groups.

    Made by `Constraints.closure`. Two samples are in one group if must-links or equal labels
    connect them; two groups are apart if a cannot-link or different labels separate them. The
    pairs themselves can be many more than the constraints: they are counted at once and listed
    only on demand.

    Examples
    --------
    >>> from linkwise.constraints import Constraints
    >>> closure = Constraints(5, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 4)]).closure()
    >>> closure.n_must_link, closure.n_cannot_link
    (3, 3)
    >>> closure.relation(0, [2, 3, 4]).tolist()
    [1, 0, -1]
    """

    _source: Constraints
    _contraction: Contraction

    def __repr__(self) -> str:
        return (
            f"Closure(n_samples={self.n_samples}, must_link={self.n_must_link}, "
            f"cannot_link={self.n_cannot_link})"
        )

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return self._source.n_samples

    @property
    def component(self) -> Ints:
        """The group of each sample, numbered by first appearance."""
        return self._contraction.component

    @cached_property
    def apart(self) -> Ints:
        """The distinct pairs of groups that are cannot-linked, sorted, of shape (p, 2)."""
        n_apart = len(self._contraction.pairs) + choose_two(self._contraction.label_groups.size)
        self._check_limit(n_apart, "pairs of groups")
        return read_only(with_label_pairs(self._contraction).pairs)

    @cached_property
    def n_must_link(self) -> int:
        """The number of entailed must-links, counted without listing them."""
        return choose_two(self._sizes)

    @cached_property
    def n_cannot_link(self) -> int:
        """The number of entailed cannot-links, counted without listing them."""
        sizes = self._sizes.astype(object)  # Python integers: products are exact
        a, b = self._contraction.pairs.T
        labelled = self._sizes[self._contraction.label_groups]
        between_labels = choose_two(labelled.sum()) - choose_two(labelled)
        return int((sizes[a] * sizes[b]).sum()) + between_labels

    @cached_property
    def must_link(self) -> Ints:
        """The entailed must-links, sorted, of shape (m, 2); TooLargeError above 20 million."""
        self._check_limit(self.n_must_link, "must-links")
        members, first = self._members_by_group
        group = self.component[members]
        # A member is paired with those that come after it in its group.
        place = np.arange(members.size)
        n_later = first[group + 1] - place - 1
        heads = np.repeat(place, n_later)
        tails = heads + 1 + _ranges(n_later)
        return self._sorted_pairs(members[heads], members[tails])

    @cached_property
    def cannot_link(self) -> Ints:
        """The entailed cannot-links, sorted, of shape (m, 2); TooLargeError above 20 million."""
        self._check_limit(self.n_cannot_link, "cannot-links")
        members, first = self._members_by_group
        a, b = self.apart.T
        n_products = self._sizes[a] * self._sizes[b]
        within = _ranges(n_products)
        width = np.repeat(self._sizes[b], n_products)
        heads = np.repeat(first[a], n_products) + within // width
        tails = np.repeat(first[b], n_products) + within % width
        return self._sorted_pairs(members[heads], members[tails])

    def relation(self, i: ArrayLike, j: ArrayLike) -> Int8s:
        """Say what is entailed about pairs of samples, without listing the closure.

        Parameters
        ----------
        i, j : int or array-like of int
            Samples; they are broadcast against each other.

        Returns
        -------
        ndarray of int8
            1: in one cluster, -1: in different clusters, 0: not known.
        """
        left, right = np.broadcast_arrays(self._samples(i, "i"), self._samples(j, "j"))
        a, b = self.component[left], self.component[right]
        is_labelled = np.zeros(self._contraction.n_groups, dtype=bool)
        is_labelled[self._contraction.label_groups] = True
        apart = is_labelled[a] & is_labelled[b]
        keys = pair_keys(self._contraction.pairs, self._contraction.n_groups)
        if keys.size:
            key = np.minimum(a, b) * self._contraction.n_groups + np.maximum(a, b)
            place = np.minimum(np.searchsorted(keys, key), keys.size - 1)
            apart |= keys[place] == key
        return np.where(a == b, 1, np.where(apart, -1, 0)).astype(np.int8)

    def to_matrix(self) -> csr_array:
        """Return the entailed pairs as a symmetric matrix of 1 (must) and -1 (cannot)."""
        self._check_limit(self.n_must_link + self.n_cannot_link, "pairs")
        table = PairTable.of(self.must_link, self.cannot_link)
        return symmetric_matrix(table.pairs, table.sign, self.n_samples)

    def to_constraints(self) -> Constraints:
        """Return constraints with every entailed pair as an explicit one.

        Uncertain pairs are kept unless they are entailed or refuted; labels are kept.
        """
        source, table = self._source, self._source.table
        undecided = (table.belief < 1) & (self.relation(*table.pairs.T) == 0)
        entailed = PairTable.of(self.must_link, self.cannot_link)
        return source.from_table(
            self.n_samples,
            entailed.joined(table.kept(undecided)),
            labels=source.known_labels,
            ids=source.ids,
        )

    @cached_property
    def _sizes(self) -> Ints:
        return np.bincount(self.component, minlength=self._contraction.n_groups)

    @cached_property
    def _members_by_group(self) -> tuple[Ints, Ints]:
        """Samples group by group, and where each group begins (with an end mark)."""
        first = np.concatenate(([0], np.cumsum(self._sizes)))
        return np.argsort(self.component, kind="stable"), first

    def _samples(self, value: ArrayLike, name: str) -> Ints:
        samples = np.asarray(value)
        if samples.dtype.kind not in "iu" and samples.size:
            raise TypeError(f"{name} holds {samples.dtype} values, but samples are integers.")
        wrong = samples[(samples < 0) | (samples >= self.n_samples)]
        if wrong.size:
            raise IndexError(
                f"{name} holds the index {wrong[0]}, but there are only {self.n_samples} samples "
                f"(valid indices are 0..{self.n_samples - 1})."
            )
        return samples.astype(np.intp)

    def _sorted_pairs(self, heads: Ints, tails: Ints) -> Ints:
        pairs = np.column_stack((np.minimum(heads, tails), np.maximum(heads, tails)))
        return read_only(pairs[np.argsort(pair_keys(pairs, self.n_samples))])

    def _check_limit(self, count: int, what: str) -> None:
        if count > MAX_PAIRS:
            raise TooLargeError(
                f"The closure holds {count} {what}; at most {MAX_PAIRS} are listed. "
                "Use relation(i, j) to ask about some pairs, or component for the groups."
            )


def _ranges(counts: Ints) -> Ints:
    """Return ``0 .. counts[0] - 1, 0 .. counts[1] - 1, ...`` in one array."""
    begin = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(begin, counts)
