"""The pairs that partial labels imply.

Any two labelled samples are a certain pair: a must-link if their labels are equal, else a
cannot-link. `N` labelled samples imply ``N (N - 1) / 2`` pairs, so they are counted by
contingency tables and listed only on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.constraints.table import pair_keys
from linkwise.exceptions import TooLargeError

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Ints


MAX_PAIRS = 20_000_000  # 20 million pairs of indices are 320 MB


class ImpliedCounts(NamedTuple):
    """How many pairs of each kind."""

    must_link: int
    cannot_link: int


def choose_two(sizes: Any) -> int:
    """Return the number of pairs within groups of the given sizes, as an exact integer."""
    # float64 would round above 2**53, int64 may overflow in a sum: Python integers do neither.
    return sum(size * (size - 1) // 2 for size in np.atleast_1d(sizes).tolist())


def _group_sizes(values: AnyArray) -> Ints:
    return np.unique(values, return_counts=True)[1]


def count_implied(labels: Ints | None) -> ImpliedCounts:
    """Count the pairs that labels imply."""
    if labels is None:
        return ImpliedCounts(0, 0)
    known = labels[labels >= 0]
    within = choose_two(_group_sizes(known))
    return ImpliedCounts(within, choose_two(known.size) - within)


def count_violated(labels: Ints | None, clusters: Ints) -> ImpliedCounts:
    """Count the implied pairs that a clustering violates; `clusters` is ``0, 1, ...``."""
    if labels is None:
        return ImpliedCounts(0, 0)
    known = labels >= 0
    class_of, cluster_of = labels[known], clusters[known]
    class_code = np.unique(class_of, return_inverse=True)[1].astype(np.int64)
    cell = class_code * (int(clusters.max()) + 1) + cluster_of
    in_one_cell = choose_two(_group_sizes(cell))
    return ImpliedCounts(
        must_link=choose_two(_group_sizes(class_of)) - in_one_cell,
        cannot_link=choose_two(_group_sizes(cluster_of)) - in_one_cell,
    )


def all_pairs(labels: Ints | None) -> tuple[Ints, Ints]:
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
        message = (
            f"{n_classes} different labels need {choose_two(n_classes)} cannot-links to keep them "
            f"apart, more than {MAX_PAIRS}. Use fewer labels, or work with components()."
        )
        raise TooLargeError(message)
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
