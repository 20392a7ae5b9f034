"""What follows from certain constraints: groups and contradictions.

Functions of plain arrays. Only certain pairs (belief 1) and labels take part; pairs of lower
belief are evidence, not facts. A label is a virtual vertex that is must-linked to the samples
that have it; two labels in one group are a contradiction, which needs no pairs of labels.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._jit import late_module
from linkwise.constraints.conflict import Conflict
from linkwise.constraints.kernels import shortest_chains
from linkwise.constraints.table import choose_two, pair_keys

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Ints
    from linkwise.constraints.labels import Labels
    from linkwise.constraints.table import PairTable


sparse = late_module("scipy.sparse")  # takes 0.2 s to import
csgraph = late_module("scipy.sparse.csgraph")


class Facts(NamedTuple):
    """The certain part of constraints, as arrays."""

    n_samples: int
    must_link: Ints
    cannot_link: Ints
    must_link_row: Ints
    cannot_link_row: Ints
    labelled: Ints  # samples with a known label, ascending
    class_of: Ints  # for each of those, the position of its label in `classes`
    classes: AnyArray  # distinct labels, ascending; their names if they have some
    ids: Any = None  # names of the samples, by which messages name them

    def name(self, sample: int) -> str:
        """Return what messages call a sample."""
        return str(sample) if self.ids is None else str(self.ids[sample])


class Contraction(NamedTuple):
    """The graph of cannot-links between groups of must-linked samples.

    `pairs` leaves out the pairs of two labelled groups: all of those are apart.
    """

    component: Ints  # group of each sample, numbered by first appearance
    n_groups: int
    pairs: Ints  # distinct pairs of groups (a, b) with a < b, sorted
    evidence: Ints  # for each of `pairs`, a cannot-linked pair of samples (in a, in b)
    label_groups: Ints  # groups that have a label, ascending
    label_samples: Ints  # for each of those, a labelled sample in it


class Contradictions(NamedTuple):
    """Cannot-links within a group, and labels that share a group."""

    cannot_link: Ints  # positions in facts.cannot_link
    class_lists: list[list[int]]  # for each group with several labels, their classes
    total: int  # number of cannot-links and pairs of labels that contradict the must-links


def facts_of(n_samples: int, table: PairTable, labels: Labels | None, ids: Any = None) -> Facts:
    """Return the certain part of a sorted table, and the labels as classes."""
    certain = table.kept(table.belief == 1)
    n_must = int(certain.is_must_link.sum())
    labelled = np.empty(0, dtype=np.intp)
    classes: AnyArray = labelled
    class_of = labelled
    if labels is not None:
        labelled = np.flatnonzero(labels.values >= 0)
        classes, class_of = np.unique(labels.values[labelled], return_inverse=True)
        classes = classes if labels.classes is None else labels.classes[classes]
    pairs, row = certain.pairs, certain.row
    return Facts(
        n_samples,
        *(pairs[:n_must], pairs[n_must:]),
        *(row[:n_must], row[n_must:]),
        *(labelled, class_of, classes),
        ids,
    )


def components(facts: Facts) -> Ints:
    """Return the group of each sample under certain must-links and labels."""
    n = facts.n_samples
    n_vertices = n + facts.classes.size
    heads = np.concatenate((facts.must_link[:, 0], facts.labelled))
    tails = np.concatenate((facts.must_link[:, 1], n + facts.class_of))
    ones = np.ones(heads.size, dtype=np.int8)
    graph = sparse.coo_array((ones, (heads, tails)), shape=(n_vertices, n_vertices))
    # scipy numbers components by their first vertex, so virtual vertices change no number.
    _, component = csgraph.connected_components(graph, directed=False)
    numbered: Ints = component[:n].astype(np.intp)
    return numbered


def contract(facts: Facts, component: Ints) -> Contraction:
    """Contract each group to a vertex; keep one cannot-link per pair of groups as evidence."""
    label_groups, first = np.unique(component[facts.labelled], return_index=True)
    n_groups = int(component.max()) + 1
    is_labelled = np.zeros(n_groups, dtype=bool)
    is_labelled[label_groups] = True

    groups = component[facts.cannot_link]
    swapped = groups[:, 0] > groups[:, 1]
    groups = np.sort(groups, axis=1)
    new = (groups[:, 0] != groups[:, 1]) & ~is_labelled[groups].all(axis=1)
    rows = np.flatnonzero(new)
    rows = rows[np.unique(pair_keys(groups[rows], n_groups), return_index=True)[1]]
    evidence = facts.cannot_link[rows]
    evidence[swapped[rows]] = evidence[swapped[rows], ::-1]
    return Contraction(
        component, n_groups, groups[rows], evidence, label_groups, facts.labelled[first]
    )


def with_label_pairs(contraction: Contraction) -> Contraction:
    """Add the pairs of labelled groups to `pairs`; quadratic in their number."""
    if contraction.label_groups.size < 2:
        return contraction
    a, b = np.triu_indices(contraction.label_groups.size, 1)
    groups, samples = contraction.label_groups, contraction.label_samples
    pairs = np.concatenate((contraction.pairs, np.column_stack((groups[a], groups[b]))))
    evidence = np.concatenate((contraction.evidence, np.column_stack((samples[a], samples[b]))))
    order = np.argsort(pair_keys(pairs, contraction.n_groups))
    return contraction._replace(pairs=pairs[order], evidence=evidence[order])


# Contradictions ----------------------------------------------------------------------------


def contradictions(facts: Facts, component: Ints) -> Contradictions:
    """Find everything that contradicts the must-links, without proofs; linear."""
    groups = component[facts.cannot_link]
    inside = np.flatnonzero(groups[:, 0] == groups[:, 1])
    if not facts.labelled.size:
        return Contradictions(inside, [], inside.size)
    first_of_class = facts.labelled[np.unique(facts.class_of, return_index=True)[1]]
    group_of_class = component[first_of_class]
    order = np.argsort(group_of_class, kind="stable")
    borders = np.flatnonzero(np.diff(group_of_class[order])) + 1
    shared = [part.tolist() for part in np.split(order, borders) if part.size > 1]
    total = inside.size + choose_two(list(map(len, shared)))
    return Contradictions(inside, shared, total)


def explain(facts: Facts, found: Contradictions, limit: int | None) -> list[Conflict]:
    """Prove the first `limit` contradictions by shortest chains; labels come first."""
    n = facts.n_samples
    all_pairs = (pair for classes in found.class_lists for pair in combinations(classes, 2))
    label_pairs = list(islice(all_pairs, limit))
    rest = found.cannot_link if limit is None else found.cannot_link[: limit - len(label_pairs)]
    virtual = n + np.array(label_pairs, dtype=np.intp).reshape(-1, 2)
    wanted = np.concatenate((virtual, facts.cannot_link[rest]))
    if not len(wanted):
        return []

    indptr, vertices = chains(facts, wanted[:, 0], wanted[:, 1])
    rows = _step_rows(facts, vertices)
    cannot_link_rows = facts.cannot_link_row[rest].tolist()
    conflicts = []
    for k, (low, high) in enumerate(zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)):
        apart_row = None if k < len(label_pairs) else cannot_link_rows[k - len(label_pairs)]
        labels: tuple[Any, ...] | None = None
        if k < len(label_pairs):
            a, b = label_pairs[k]
            labels = tuple(facts.classes[[a, b]].tolist())
        path, path_rows = vertices[low:high].tolist(), rows[low : high - 1].tolist()
        one = _conflict(path, path_rows, n, cannot_link_row=apart_row, labels=labels)
        if facts.ids is not None:
            one = replace(one, names=tuple(map(facts.name, one.chain)))
        conflicts.append(one)
    return conflicts


def chains(facts: Facts, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return shortest chains of must-links and equal labels; see `kernels.shortest_chains`."""
    return shortest_chains(
        *_adjacency(facts.must_link, facts.n_samples),
        _class_of_sample(facts),
        *_members(facts),
        np.ascontiguousarray(starts),
        np.ascontiguousarray(ends),
    )


def rows_of(pairs: Ints, stored: Ints, row: Ints, *, n_samples: int) -> tuple[int, ...]:
    """Return where pairs that are among the `stored` ones were in the input."""
    place = np.searchsorted(pair_keys(stored, n_samples), pair_keys(pairs, n_samples))
    return tuple(row[place].tolist())


def _conflict(
    path: list[int],
    path_rows: list[int],
    n_samples: int,
    *,
    cannot_link_row: int | None,
    labels: tuple[Any, ...] | None,
) -> Conflict:
    """Translate a path with virtual vertices into samples and steps."""
    chain = [path[0]]
    steps: list[str] = []
    rows: list[int | None] = []
    for k, vertex in enumerate(path[1:]):
        if vertex >= n_samples:
            continue
        by_label = path[k] >= n_samples
        chain.append(vertex)
        steps.append("label" if by_label else "must-link")
        rows.append(None if by_label else path_rows[k])
    return Conflict(
        (chain[0], chain[-1]), tuple(chain), tuple(steps), tuple(rows), cannot_link_row, labels
    )


def _adjacency(pairs: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the symmetric adjacency of pairs in compressed rows.

    As fresh contiguous arrays: numba compiles a kernel anew for read-only or strided ones.
    """
    heads = np.concatenate((pairs[:, 0], pairs[:, 1]))
    tails = np.concatenate((pairs[:, 1], pairs[:, 0]))
    ones = np.ones(heads.size, dtype=np.int8)
    graph = sparse.csr_array((ones, (heads, tails)), shape=(n, n))
    return graph.indptr.astype(np.intp), graph.indices.astype(np.intp)


def _class_of_sample(facts: Facts) -> Ints:
    class_of = np.full(facts.n_samples, -1, dtype=np.intp)
    class_of[facts.labelled] = facts.class_of
    return class_of


def _members(facts: Facts) -> tuple[Ints, Ints]:
    """Return the samples of each class in compressed rows."""
    sizes = np.bincount(facts.class_of, minlength=facts.classes.size)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
    return indptr, facts.labelled[np.argsort(facts.class_of, kind="stable")]


def _step_rows(facts: Facts, vertices: Ints) -> Ints:
    """Return the input row of the must-link between each vertex and the next, where it is one."""
    steps = np.sort(np.column_stack((vertices[:-1], vertices[1:])), axis=1)
    keys = pair_keys(facts.must_link, facts.n_samples)
    place = np.searchsorted(keys, pair_keys(steps, facts.n_samples))
    place[place == keys.size] = 0
    return facts.must_link_row[place] if keys.size else np.full(len(steps), -1, dtype=np.intp)
