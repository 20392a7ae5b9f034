"""What answers entail once the number of clusters is known, and the neighbourhoods they form.

`Constraints.closure` knows the logic of pairs. With exactly `k` non-empty clusters more follows:

- two samples that are apart from the same one are together, if `k` is 2;
- a sample apart from all but one of `k` groups that are mutually apart is in that one;
- as soon as there are only `k` groups of samples, all of them are apart.

What is left is graph colouring, which is decided for single pairs by the checks of `Constraints`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from linkwise.constraints import Constraints
from linkwise.constraints.feasible import raise_too_few_groups
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Ints
    from linkwise.constraints import Closure

    Neighbors: TypeAlias = dict[int, set[int]]

MAX_STARTS = 20  # groups from which mutually apart groups are looked for
MAX_COMPARED = 100  # candidates that are compared by how many others they leave
MAX_LISTED_CLUSTERS = 1_000  # up to here, all groups being apart is written down as pairs
NO_PAIRS: Ints = np.empty((0, 2), dtype=np.intp)


def with_uncertain(facts: Constraints, constraints: Constraints) -> Constraints:
    """Add the pairs of belief below 1 that facts do not decide."""
    table = constraints.table
    undecided = (table.belief < 1) & (facts.closure().relation(*table.pairs.T) == 0)
    added = facts.table.joined(table.kept(undecided))
    return Constraints.from_table(facts.n_samples, added, labels=facts.labels)


def consistent_part(constraints: Constraints) -> Constraints:
    """Return pairs of any belief as facts, without those that contradict the must-links.

    With answers that may be wrong this is an estimate of the groups.
    """
    labels = constraints.labels
    estimate = Constraints(constraints.n_samples, constraints.must_link, labels=labels)
    if estimate.n_conflicts:  # must-links join different labels
        kept = constraints.must_link_belief == 1
        estimate = Constraints(constraints.n_samples, constraints.must_link[kept], labels=labels)
    group = estimate.components()[constraints.cannot_link]
    cannot = constraints.cannot_link[group[:, 0] != group[:, 1]]
    return Constraints(constraints.n_samples, estimate.must_link, cannot, labels=labels)


def entailed(facts: Constraints, n_clusters: int) -> Constraints:
    """Add the pairs that follow from the number of clusters; certain and consistent facts only."""
    while True:
        closure = facts.closure()
        must, cannot = _conclusions(closure, n_clusters)
        if not len(must) and not len(cannot):
            return facts
        facts = facts.with_pairs(must, cannot)


def _conclusions(closure: Closure, k: int) -> tuple[Ints, Ints]:
    """Return must-links and cannot-links that `k` clusters entail and the closure lacks."""
    first = np.unique(closure.component, return_index=True)[1]  # a sample of each group
    joined = _two_sides(closure, first.size) if k == 2 else _last_clusters(closure, k)
    if joined:
        return first[np.array(joined, dtype=np.intp)], NO_PAIRS
    if first.size != k or k > MAX_LISTED_CLUSTERS or len(closure.apart) == k * (k - 1) // 2:
        return NO_PAIRS, NO_PAIRS
    return NO_PAIRS, first[np.column_stack(np.triu_indices(k, 1))]


def _two_sides(closure: Closure, n_groups: int) -> list[tuple[int, int]]:
    """Join the groups on the same side of the cannot-links.

    In the double cover of the graph of cannot-links, whose edges lead from one layer to the
    other, the copies in one layer of two groups are connected if they are on the same side.
    """
    a, b = closure.apart.T
    ends = (np.concatenate((a, a + n_groups)), np.concatenate((b + n_groups, b)))
    cover = coo_array((np.ones(ends[0].size), ends), shape=(2 * n_groups, 2 * n_groups))
    side = connected_components(cover, directed=False)[1]
    side = np.where(side[:n_groups] == side[n_groups:], -1 - np.arange(n_groups), side[:n_groups])
    order = np.argsort(side, kind="stable")
    same = np.flatnonzero(np.diff(side[order]) == 0)
    return [(int(order[p]), int(order[p + 1])) for p in same]


def _last_clusters(closure: Closure, k: int) -> list[tuple[int, int]]:
    """Join a group with the one of `k` mutually apart groups that it is not apart from."""
    neighbors = _neighbors(closure.apart)
    clique = _clique(neighbors, np.bincount(closure.component), k=k)
    if len(clique) < k:
        return []
    # Of each cluster, the groups that are apart from one of its members
    excluded = [set(neighbors[group]) for group in clique]
    waiting = [group for group in sorted(neighbors) if group not in clique]
    joined: list[tuple[int, int]] = []
    while True:
        left = []
        for group in waiting:
            possible = [c for c in range(k) if group not in excluded[c]]
            if len(possible) != 1:
                left.append(group)
                continue
            joined.append((group, clique[possible[0]]))
            excluded[possible[0]] |= neighbors[group]
        if len(left) == len(waiting):
            return joined
        waiting = left


def _neighbors(apart: Ints) -> Neighbors:
    """Return, for each group with a cannot-link, the groups that it is apart from."""
    neighbors: Neighbors = {}
    for a, b in apart.tolist():
        neighbors.setdefault(a, set()).add(b)
        neighbors.setdefault(b, set()).add(a)
    return neighbors


def _clique(neighbors: Neighbors, size: Ints, *, k: int, given: Sequence[int] = ()) -> list[int]:
    """Return up to `k` mutually apart groups, large ones first: the most found from some starts.

    Those `given` are mutually apart, and are always among them.
    """
    possible = set(neighbors).intersection(*(neighbors[group] for group in given))
    best = list(given)
    starts = sorted(possible, key=lambda g: (-int(size[g]), -len(neighbors[g]), g))
    for start in starts[:MAX_STARTS]:
        clique, candidates = [*given, start], possible & neighbors[start]
        while candidates and len(clique) < k:
            few = sorted(candidates, key=lambda g: (-int(size[g]), g))[:MAX_COMPARED]
            chosen = max(few, key=lambda g: len(neighbors[g] & candidates))
            clique.append(chosen)
            candidates &= neighbors[chosen]
        if len(clique) > len(best):
            best = clique
        if len(best) >= k:
            break
    return best


def neighbourhoods(facts: Constraints, n_clusters: int) -> list[Ints]:
    """Return groups of samples that are known to be mutually apart, at most `n_clusters`.

    Samples with different labels are in different ones. Without any cannot-link the largest
    group of must-linked samples is the only one; without any must-link either, there is none.
    """
    if facts.is_empty:
        return []
    closure = facts.closure()
    size = np.bincount(closure.component)
    given: list[int] = []
    if facts.labels is not None:
        given = np.unique(closure.component[facts.labels >= 0]).tolist()
    groups = _clique(_neighbors(closure.apart), size, k=n_clusters, given=given)
    groups = groups or [int(size.argmax())]
    return [np.flatnonzero(closure.component == group) for group in groups]


def as_labels(facts: Constraints, groups: list[Ints]) -> Constraints:
    """Return the same facts with the neighbourhoods as labels.

    Labels stand for all pairs of their samples, so a method that looks at pairs sees everything
    that is known, not only the pairs that happened to be asked.
    """
    if len(groups) < 2:
        return facts
    labels = np.full(facts.n_samples, -1, dtype=np.intp)
    for label, members in enumerate(groups):
        labels[members] = label
    is_labelled = (labels[facts.table.pairs] >= 0).all(axis=1)
    return Constraints.from_table(facts.n_samples, facts.table.kept(~is_labelled), labels=labels)


def is_decided(facts: Constraints, pair: tuple[int, int], n_clusters: int) -> bool:
    """Return whether one of the two answers about a pair is impossible.

    `facts` are those of `entailed`; their closure does not decide the pair itself.
    """
    closure = facts.closure()
    if int(closure.component.max()) + 1 <= n_clusters:
        return True
    # Two clusters are decided by the closure. A free group can join any other or keep away.
    if n_clusters == 2 or not np.isin(closure.component[list(pair)], closure.apart).all():
        return False
    return any(_is_impossible(facts, (*pair, word), n_clusters) for word in ("same", "different"))


def _is_impossible(facts: Constraints, answer: tuple[int, int, str], n_clusters: int) -> bool:
    try:
        check_answer(facts, answer, n_clusters)
    except ConflictError:
        return True
    return False


def check_answer(facts: Constraints, answer: tuple[int, int, str], n_clusters: int | None) -> None:
    """Raise ConflictError if an answer cannot hold together with the facts.

    Without a number of clusters, any number will do.
    """
    *pair, word = answer
    added = {"must_link" if word == "same" else "cannot_link": [pair]}
    extended = facts.with_pairs(**added)
    extended.check(facts.n_samples if n_clusters is None else n_clusters)
    if n_clusters is None:
        return
    n_groups = int(extended.components().max()) + 1
    if n_groups < n_clusters:
        raise_too_few_groups(n_groups, n_clusters)
