"""Answered samples are put where the answers say at once, until the full clustering is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.app.conflicts import Evidence


def settled(
    labels: Ints,
    evidence: Evidence,
    known: tuple[Floats, Ints | None] | None = None,
    *,
    may_add: bool = False,
) -> Ints:
    """Return labels in which groups of answered samples are in one cluster, and apart if said so.

    Each group takes the cluster that is most probable for its members together, larger groups
    first, among those that no group apart from it has taken. If none is left it is the most
    probable one: the full clustering will find another. With `may_add`, a group that has to leave
    its cluster is one of its own.
    """
    labels = labels.copy()
    groups = {evidence.group(pair[0]) for pair in evidence.accepted}
    groups |= {evidence.group(pair[1]) for pair in evidence.accepted}
    apart: dict[int, set[int]] = {}
    for a, b in evidence.apart_groups():
        apart.setdefault(a, set()).add(b)
        apart.setdefault(b, set()).add(a)
    taken: dict[int, int] = {}
    for group in sorted(groups, key=lambda one: (-len(evidence.members(one)), one)):
        members = evidence.members(group)
        if may_add:
            ranking = [*_own(labels, members), int(labels.max()) + 1]
        else:
            ranking = _ranking(labels, members, known)
        excluded = {taken[other] for other in apart.get(group, ()) if other in taken}
        chosen = next((c for c in ranking if c not in excluded), ranking[0])
        taken[group] = chosen
        labels[members] = chosen
    return labels


def _own(labels: Ints, members: list[int]) -> list[int]:
    """Return the clusters of some samples, the one of most of them first."""
    found, votes = np.unique(labels[members], return_counts=True)
    return [int(c) for c in found[np.argsort(-votes, kind="stable")]]


def _ranking(
    labels: Ints, members: list[int], known: tuple[Floats, Ints | None] | None
) -> list[int]:
    """Return the clusters, the most probable for all members first."""
    probability, clusters = (None, None) if known is None else known
    if probability is None or clusters is None:
        votes = np.bincount(labels[members], minlength=int(labels.max()) + 1)
        return [int(c) for c in np.argsort(-votes, kind="stable")]
    score = np.log(probability[members] + 1e-3).sum(axis=0)
    return [int(clusters[c]) for c in np.argsort(-score, kind="stable")]
