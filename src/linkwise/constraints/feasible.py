"""Can a number of clusters satisfy all certain constraints? The order of work, and the answer.

Either a proper colouring of the groups, or an error that proves, in the user's own pairs, that
there is none, or an error that neither was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from linkwise.constraints import logic, messages
from linkwise.constraints.coloring import (
    CannotLinkGraph,
    Certificate,
    Coloring,
    color_exhaustively,
    colors_needed,
    find_certificate,
    find_coloring,
    graph_of,
    large_clique,
    peel,
)
from linkwise.constraints.proof import prove
from linkwise.constraints.table import choose_two
from linkwise.exceptions import ConflictError, TooLargeError

if TYPE_CHECKING:
    from linkwise._types import Int32s, Ints
    from linkwise.constraints.conflict import Conflict
    from linkwise.constraints.value import Constraints

MAX_LABEL_PAIRS = 1_000_000  # pairs of labels that are listed for a search
CHAINS_COMPARED = 50  # contradictions of which the one with the shortest chain is shown


class Groups(NamedTuple):
    """Must-linked samples as one vertex each, and the cannot-links between them."""

    component: Ints  # the group of each sample
    n_groups: int
    graph: CannotLinkGraph


def feasible_groups(constraints: Constraints, n_clusters: int) -> Groups:
    """Return the groups of must-linked samples and the cannot-links between them.

    Labels count as pairs: equal ones are one group, different ones are apart.

    Raises
    ------
    ConflictError
        If the constraints contradict each other, name more labels than clusters, or leave
        fewer groups than clusters. Whether the cannot-links can be satisfied is not examined;
        see `require_coloring`.
    TooLargeError
        If there are so many labels that their pairs cannot be listed.
    """
    facts, contraction = constraints.facts, constraints.contraction
    if constraints.contradictions.total:
        raise_contradiction(facts, constraints.contradictions)
    if facts.classes.size > n_clusters:
        _raise_too_many_labels(facts, contraction, n_clusters)
    if contraction.n_groups < n_clusters:
        raise_too_few_groups(contraction.n_groups, n_clusters)
    n_pairs = choose_two(contraction.label_groups.size)
    if n_pairs > MAX_LABEL_PAIRS:
        raise TooLargeError(
            f"The labels keep {contraction.label_groups.size} groups apart, by {n_pairs} pairs; at "
            f"most {MAX_LABEL_PAIRS} are listed. Use fewer labels."
        )
    if n_pairs:
        contraction = logic.with_label_pairs(contraction)
    graph = graph_of(contraction.pairs, contraction.n_groups)
    return Groups(contraction.component, contraction.n_groups, graph)


def require_coloring(
    constraints: Constraints,
    n_clusters: int,
    rng: np.random.RandomState,
    *,
    groups: Groups | None = None,
) -> Coloring:
    """Return a cluster for each group of `feasible_groups` such that all certain pairs hold.

    `groups` are those of these constraints, if they are known.

    Raises
    ------
    ConflictError
        If there is none, with a proof, or if none was found (kind "undecided").
    """
    groups = feasible_groups(constraints, n_clusters) if groups is None else groups
    found = find_coloring(groups.graph, n_clusters, rng)
    if found.n_left and n_clusters > 2:
        found = color_exhaustively(groups.graph, n_clusters, rng) or found
    if found.n_left:
        explain_infeasible(constraints, n_clusters, found)
    return found


def check_feasible(constraints: Constraints, n_clusters: int) -> None:
    """Raise ConflictError if it is proved that `n_clusters` clusters are too few.

    Exact for one and two clusters. For more, colouring is NP-hard, and no error proves nothing.
    """
    facts, contraction = constraints.facts, constraints.contraction
    if facts.classes.size > n_clusters:
        _raise_too_many_labels(facts, contraction, n_clusters)
    if choose_two(contraction.label_groups.size) > MAX_LABEL_PAIRS:
        return
    contraction = logic.with_label_pairs(contraction)
    graph = graph_of(contraction.pairs, contraction.n_groups)
    found = find_certificate(graph, n_clusters, _own_generator())
    if found is not None:
        _raise_certificate(facts, contraction, found=found, n_clusters=n_clusters)


def explain_infeasible(constraints: Constraints, n_clusters: int, attempt: Coloring) -> NoReturn:
    """Raise the error about constraints for which `attempt` is the best colouring found."""
    check_feasible(constraints, n_clusters)
    _raise_undecided(constraints, n_clusters, attempt)


def _own_generator() -> np.random.RandomState:
    """Return a generator for searches whose answer must not depend on the caller."""
    return np.random.RandomState(0)


# Errors that need no search ----------------------------------------------------------------


def shortest_conflict(facts: logic.Facts, found: logic.Contradictions) -> Conflict:
    """Return the contradiction with the shortest of the first proofs."""
    return min(logic.explain(facts, found, limit=CHAINS_COMPARED), key=lambda c: len(c.chain))


def raise_contradiction(facts: logic.Facts, found: logic.Contradictions) -> NoReturn:
    """Raise ConflictError with the shortest of the first proofs of a contradiction."""
    first = shortest_conflict(facts, found)
    message = first.message
    if found.total > 1:
        more = "contradictions" if found.total > 2 else "contradiction"
        message += f" (and {found.total - 1} more {more}; see conflicts())"
    raise ConflictError(
        message,
        first.chain,
        kind="contradiction",
        must_link=tuple(row for row in first.rows if row is not None),
        cannot_link=() if first.cannot_link_row is None else (first.cannot_link_row,),
        labelled=first.labelled,
    )


def raise_too_few_groups(n_groups: int, n_clusters: int) -> NoReturn:
    """Raise ConflictError: some cluster would have to be empty."""
    message = (
        f"The must-links and labels leave only {n_groups} group(s) of samples, too few for "
        f"{n_clusters} non-empty clusters. Remove some, or lower n_clusters."
    )
    raise ConflictError(message, kind="too few groups")


def _raise_too_many_labels(
    facts: logic.Facts, contraction: logic.Contraction, n_clusters: int
) -> NoReturn:
    n_labels = facts.classes.size
    first = np.unique(facts.class_of, return_index=True)[1][: n_clusters + 1]
    samples = tuple(facts.labelled[first].tolist())
    shown = ", ".join(map(str, facts.classes[:5].tolist())) + (", ..." * (n_labels > 5))
    message = (
        f"There are {n_labels} different labels ({shown}), but n_clusters is only {n_clusters}. "
        f"Set n_clusters to at least {n_labels}, or merge labels."
    )
    upper = None
    if choose_two(contraction.label_groups.size) <= MAX_LABEL_PAIRS:
        upper = _upper(logic.with_label_pairs(contraction), n_labels - 1)
    raise ConflictError(
        message, samples, kind="labels", labelled=samples, bracket=(n_labels, upper)
    )


def _upper(contraction: logic.Contraction, too_few: int) -> int:
    """Return a number of clusters that is known to suffice."""
    graph = graph_of(contraction.pairs, contraction.n_groups)
    return min(colors_needed(graph, too_few, _own_generator()), contraction.n_groups)


# Errors that name a subgraph ---------------------------------------------------------------


def _raise_certificate(
    facts: logic.Facts, contraction: logic.Contraction, *, found: Certificate, n_clusters: int
) -> NoReturn:
    proof = prove(facts, contraction, found.edges)
    bracket = (n_clusters + 1, _upper(contraction, n_clusters))
    witness = _samples_of(contraction, found.vertices)
    if found.kind == "odd ring":
        witness = messages.around_ring(proof)
    what = messages.certificate_in_words(
        found, proof, witness=witness, n_clusters=n_clusters, name=facts.name
    )
    message = f"{what} {messages.remedy(proof, bracket)}"
    raise ConflictError(
        message,
        witness,
        kind=found.kind,
        must_link=proof.must_link_row,
        cannot_link=proof.cannot_link_row,
        labelled=proof.labelled,
        bracket=bracket,
    )


def _samples_of(contraction: logic.Contraction, groups: list[int]) -> tuple[int, ...]:
    """Return the first sample of each group."""
    first = np.unique(contraction.component, return_index=True)[1]
    return tuple(first[groups].tolist())


# Undecided ---------------------------------------------------------------------------------


def _raise_undecided(constraints: Constraints, n_clusters: int, attempt: Coloring) -> NoReturn:
    facts = constraints.facts
    contraction = logic.with_label_pairs(constraints.contraction)
    graph = graph_of(contraction.pairs, contraction.n_groups)
    colors = _completed(graph, attempt.colors, n_clusters)
    cluster = colors[contraction.component].astype(np.intp)
    unsatisfied = np.flatnonzero(
        cluster[facts.cannot_link[:, 0]] == cluster[facts.cannot_link[:, 1]]
    )
    rows = tuple(facts.cannot_link_row[unsatisfied].tolist())
    pairs = tuple((int(i), int(j)) for i, j in facts.cannot_link[unsatisfied].tolist())
    core = peel(graph, n_clusters).core
    bracket = (_lower(graph, n_clusters), _upper(contraction, n_clusters))
    left = (
        messages.positions("cannot-link", rows, pairs, name=facts.name)
        or "different labels in one cluster"
    )
    message = (
        f"Could not decide whether {n_clusters} clusters can satisfy all constraints "
        f"({facts.n_samples} samples, {len(facts.must_link)} certain must-links, "
        f"{len(facts.cannot_link)} certain cannot-links). Of {contraction.n_groups} must-link "
        f"groups, {int(core.sum())} are entangled, each by at least {n_clusters} cannot-links. The "
        f"best attempt leaves unsatisfied: {left}. At least {bracket[0]} clusters are needed, and "
        f"{bracket[1]} suffice for certain. Set n_clusters to {bracket[1]}, remove the "
        f"cannot-links that were left, give some pairs beliefs below 1, {messages.SOFT}."
    )
    witness = tuple(sorted({sample for pair in pairs for sample in pair}))
    raise ConflictError(
        message, witness, kind="undecided", cannot_link=rows, bracket=bracket, attempt=cluster
    )


def _completed(graph: CannotLinkGraph, colors: Int32s, n_colors: int) -> Int32s:
    """Give the vertices without a colour the one that the fewest neighbours have."""
    colors = colors.copy()
    for v in np.flatnonzero(colors < 0):
        around = colors[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
        colors[v] = np.bincount(around[around >= 0], minlength=n_colors).argmin()
    return colors


def _lower(graph: CannotLinkGraph, n_clusters: int) -> int:
    """Return a number of clusters that is proved to be needed, if `n_clusters` may suffice."""
    # An undecided graph has an odd ring: two colours would have been decided.
    return max(min(3, n_clusters), large_clique(graph, n_clusters).size)
