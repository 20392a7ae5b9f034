"""From cannot-links between groups to the user's own pairs."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.constraints import logic
from linkwise.constraints.table import pair_keys

if TYPE_CHECKING:
    from linkwise._types import Ints

    Tree = dict[int, set[int]]


class Proof(NamedTuple):
    """Links and labels from which cannot-links between groups follow."""

    evidence: list[tuple[int, int]]  # for each of these, the samples that are apart
    must_link: tuple[tuple[int, int], ...]
    cannot_link: tuple[tuple[int, int], ...]
    must_link_row: tuple[int, ...]  # where each was in the input
    cannot_link_row: tuple[int, ...]
    labelled: tuple[int, ...]  # samples whose labels take part
    labels: tuple[Any, ...]


def prove(facts: logic.Facts, contraction: logic.Contraction, edges: Ints) -> Proof:
    """Expand cannot-links between groups to the links of the user that entail them.

    Every edge becomes one cannot-link, or two samples with different labels. Within a group,
    shortest chains of must-links and equal labels tie together the samples at which its edges
    end, and nothing else.
    """
    keys = pair_keys(contraction.pairs, contraction.n_groups)
    rows = np.searchsorted(keys, pair_keys(np.sort(edges, axis=1), contraction.n_groups))
    found = contraction.evidence[rows]
    swapped = edges[:, 0] > edges[:, 1]
    found[swapped] = found[swapped, ::-1]
    evidence = [(int(i), int(j)) for i, j in found.tolist()]

    # Two labelled samples are apart by their labels: groups with labels have no other edges.
    has_label = np.zeros(facts.n_samples, dtype=bool)
    has_label[facts.labelled] = True
    by_label = has_label[found].all(axis=1)
    labelled = set(found[by_label].ravel().tolist())
    cannot = np.unique(np.sort(found[~by_label], axis=1), axis=0)

    must, more = _ties(facts, contraction, found)
    samples, n = sorted(labelled | more), facts.n_samples
    label_of = dict(
        zip(facts.labelled.tolist(), facts.classes[facts.class_of].tolist(), strict=True)
    )
    return Proof(
        evidence,
        _tuples(must),
        _tuples(cannot),
        logic.rows_of(must, facts.must_link, facts.must_link_row, n_samples=n),
        logic.rows_of(cannot, facts.cannot_link, facts.cannot_link_row, n_samples=n),
        tuple(samples),
        tuple(label_of[sample] for sample in samples),
    )


def _tuples(pairs: Ints) -> tuple[tuple[int, int], ...]:
    return tuple((int(i), int(j)) for i, j in pairs.tolist())


def _ties(
    facts: logic.Facts, contraction: logic.Contraction, evidence: Ints
) -> tuple[Ints, set[int]]:
    """Tie the samples of each group together; returns must-links and labelled samples."""
    ends = np.unique(evidence)
    ends = ends[np.argsort(contraction.component[ends], kind="stable")]
    same = contraction.component[ends[1:]] == contraction.component[ends[:-1]]
    indptr, vertices = logic.chains(facts, ends[:-1][same], ends[1:][same])
    union: Tree = defaultdict(set)
    for low, high in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        path = vertices[low:high].tolist()
        for a, b in pairwise(path):
            union[a].add(b)
            union[b].add(a)
    tree = _pruned(_spanning_forest(union), set(ends.tolist()))
    must, labelled = [], set()
    for a, neighbors in tree.items():
        for b in neighbors:
            if a >= facts.n_samples:  # a label: its neighbours have it
                labelled.add(b)
            elif a < b < facts.n_samples:
                must.append((a, b))
    return np.array(sorted(must), dtype=np.intp).reshape(-1, 2), labelled


def _spanning_forest(graph: Tree) -> Tree:
    """Drop links until no ring is left."""
    forest: Tree = defaultdict(set)
    seen: set[int] = set()
    for root in sorted(graph):
        if root in seen:
            continue
        seen.add(root)
        queue = [root]
        for a in queue:
            for b in sorted(graph[a]):
                if b not in seen:
                    seen.add(b)
                    queue.append(b)
                    forest[a].add(b)
                    forest[b].add(a)
    return forest


def _pruned(forest: Tree, needed: set[int]) -> Tree:
    """Cut off branches that lead to nothing needed."""
    leaves = [a for a, neighbors in forest.items() if len(neighbors) == 1 and a not in needed]
    for a in leaves:
        if len(forest[a]) != 1:
            continue
        (b,) = forest.pop(a)
        forest[b].discard(a)
        if len(forest[b]) == 1 and b not in needed:
            leaves.append(b)
    return forest
