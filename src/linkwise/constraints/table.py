"""PairTable: constraints as columns, one row per pair; and the pairs that partial labels imply.

Any two labelled samples are a certain pair: a must-link if their labels are equal, else a
cannot-link. `N` labelled samples imply ``N (N - 1) / 2`` pairs, so they are counted by
contingency tables and listed only on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._jit import late_module
from linkwise.constraints.conflict import Suspect
from linkwise.exceptions import TooLargeError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise._types import AnyArray, Bools, Floats, Int64s, Ints
    from linkwise.constraints.value import Constraints
sparse = late_module("scipy.sparse")  # takes 0.2 s to import

MAX_PAIRS = 20_000_000  # 20 million pairs of indices are 320 MB
MAX_LISTED = 1_000_000  # label-implied pairs that are turned into explicit ones without asking


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
        return together != (self.sign > 0)


def pair_keys(pairs: Ints, n_samples: int) -> Int64s:
    """Return one integer per pair that sorts as the pair does."""
    keys: Int64s = pairs[:, 0].astype(np.int64) * n_samples + pairs[:, 1]
    return keys


def read_only(array: Any) -> Any:
    """Forbid writing to an array that this package owns."""
    array.setflags(write=False)
    return array


def symmetric_matrix(pairs: Ints, weights: Floats, n_samples: int) -> csr_array:
    """Return a symmetric matrix with the weight of each pair; repeated pairs add up."""
    heads = np.concatenate((pairs[:, 0], pairs[:, 1]))
    tails = np.concatenate((pairs[:, 1], pairs[:, 0]))
    entries = np.concatenate((weights, weights)), (heads, tails)
    return sparse.csr_array(entries, shape=(n_samples, n_samples))


# Pairs that labels imply -------------------------------------------------------------------


def choose_two(sizes: Any) -> int:
    """Return the number of pairs within groups of the given sizes, as an exact integer."""
    # float64 would round above 2**53, int64 may overflow in a sum: Python integers do neither.
    n = np.atleast_1d(sizes).astype(object)
    return int((n * (n - 1) // 2).sum())


def _group_sizes(values: AnyArray) -> Ints:
    return np.unique(values, return_counts=True)[1]


def count_implied(labels: Ints | None) -> tuple[int, int]:
    """Count the must-links and the cannot-links that labels imply."""
    if labels is None:
        return 0, 0
    known = labels[labels >= 0]
    within = choose_two(_group_sizes(known))
    return within, choose_two(known.size) - within


def count_implied_violated(labels: Ints | None, clusters: Ints) -> tuple[int, int]:
    """Count the implied pairs that a clustering violates; `clusters` is ``0, 1, ...``."""
    if labels is None:
        return 0, 0
    known = labels >= 0
    class_of, cluster_of = labels[known], clusters[known]
    class_code = np.unique(class_of, return_inverse=True)[1].astype(np.int64)
    cell = class_code * (int(clusters.max()) + 1) + cluster_of
    in_one_cell = choose_two(_group_sizes(cell))
    n_must_link = choose_two(_group_sizes(class_of)) - in_one_cell
    return n_must_link, choose_two(_group_sizes(cluster_of)) - in_one_cell


def implied_pairs(labels: Ints | None) -> tuple[Ints, Ints]:
    """List the implied must-links and cannot-links; the caller has checked their number."""
    if labels is None:
        return np.empty((0, 2), dtype=np.intp), np.empty((0, 2), dtype=np.intp)
    known = np.flatnonzero(labels >= 0)
    pairs = known[np.column_stack(np.triu_indices(known.size, 1))]
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return pairs[same], pairs[~same]


def sparse_pairs(labels: Ints, n_pairs: int) -> tuple[Ints, Ints]:
    """List a few implied pairs whose closure is that of all of them.

    Within a class, a circulant graph with the offsets 1, 2, 4, ...: connected, and of
    logarithmic diameter when all offsets fit. Across classes, every sample is linked to a
    few samples of other classes in turn, and the first samples of any two classes to each
    other. About `n_pairs` pairs, or as many as the closure takes.
    """
    known = np.flatnonzero(labels >= 0)
    _, class_of, sizes = np.unique(labels[known], return_inverse=True, return_counts=True)
    n_classes = sizes.size
    if choose_two(n_classes) + known.size > MAX_PAIRS:
        raise TooLargeError(
            f"{n_classes} different labels need {choose_two(n_classes)} cannot-links to keep them "
            f"apart, more than {MAX_PAIRS}. Use fewer labels, or work with components()."
        )
    members = known[np.argsort(class_of, kind="stable")]  # class by class
    class_of = np.sort(class_of)
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    rank = np.arange(known.size) - first[class_of]
    per_sample = max(1, n_pairs // (2 * known.size))

    offsets = 2 ** np.arange(min(per_sample, int(sizes.max()).bit_length()))
    within = [
        np.column_stack((members, members[first[class_of] + (rank + offset) % sizes[class_of]]))
        for offset in offsets.tolist()
    ]
    across = [members[first][np.column_stack(np.triu_indices(n_classes, 1))]]
    # Connecting the classes takes known.size pairs; a smaller rest is spread over the samples.
    stride = max(1, -(-known.size // max(1, n_pairs - known.size)))
    some, own, own_rank = members[::stride], class_of[::stride], rank[::stride] // stride
    for turn in range(min(per_sample, n_classes - 1)):
        partner = (own + 1 + (own_rank + turn) % (n_classes - 1)) % n_classes
        partner_rank = (own_rank // (n_classes - 1)) % sizes[partner]
        across.append(np.column_stack((some, members[first[partner] + partner_rank])))
    return _distinct(within, labels.size), _distinct(across, labels.size)


def _distinct(blocks: list[Ints], n_samples: int) -> Ints:
    """Return the distinct unordered pairs of several blocks, without loops."""
    pairs: Ints = np.sort(np.concatenate(blocks), axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    first = np.unique(pair_keys(pairs, n_samples), return_index=True)[1]
    distinct: Ints = pairs[first]
    return distinct


def all_pairs(constraints: Constraints, purpose: str) -> PairTable:
    """Return explicit and label-implied pairs, each once; TooLargeError above a million."""
    n_implied = sum(count_implied(constraints.labels))
    if n_implied > MAX_LISTED:
        raise TooLargeError(
            f"{purpose}, but these labels imply {n_implied} pairs; the limit is {MAX_LISTED}. "
            "Keep the labels themselves, or choose pairs with signed_pairs()."
        )
    return some_pairs(constraints, n_implied)


def some_pairs(constraints: Constraints, limit: int) -> PairTable:
    """Return explicit and label-implied pairs, each once.

    Above `limit` label-implied pairs, a few of them with the same closure.
    """
    labels = constraints.labels
    if labels is None:
        return constraints.table
    if sum(count_implied(labels)) <= limit:
        pairs = implied_pairs(labels)
    else:
        pairs = sparse_pairs(labels, max(0, limit - constraints.n_pairs))
    return constraints.table.joined(PairTable.of(*pairs)).unique(constraints.n_samples)


def constraint_matrix(constraints: Constraints, limit: int = MAX_LISTED) -> csr_array:
    """Return the symmetric matrix of signed beliefs, of `some_pairs`: `Y` or `Q` in the papers."""
    listed = some_pairs(constraints, limit)
    matrix = symmetric_matrix(listed.pairs, listed.weight, constraints.n_samples)
    matrix.eliminate_zeros()  # evidence that cancels out
    return matrix


def make_suspects(
    constraints: Constraints,
    items: Ints,
    *,
    probability: Floats | None = None,
    strength: Floats | None = None,
) -> tuple[Suspect, ...]:
    """Return chosen constraints as suspects, in the order given.

    An item is a row of ``constraints.table`` or, counted on from there, a labelled sample
    in ascending order. `probability` and `strength` have one entry per item.
    """
    table, labels, ids = constraints.table, constraints.labels, constraints.ids
    labelled = () if labels is None else (labels >= 0).nonzero()[0].tolist()
    n_pairs = len(table.pairs)
    found = []
    for position, item in enumerate(items.tolist()):
        if item < n_pairs:
            kind = "must-link" if table.sign[item] > 0 else "cannot-link"
            samples, row = tuple(table.pairs[item].tolist()), int(table.row[item])
        else:
            row = labelled[item - n_pairs]
            kind, samples = "label", (row,)
        wrong = None if probability is None else float(probability[position])
        penalty = None if strength is None else float(strength[position])
        names = None if ids is None else tuple(str(ids[sample]) for sample in samples)
        found.append(Suspect(kind, samples, row, wrong, penalty, names))
    return tuple(found)
