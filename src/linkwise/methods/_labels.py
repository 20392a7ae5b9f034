"""What the label-propagation methods share: seeds from constraints, and the base class."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise.constraints.table import symmetric_matrix
from linkwise.exceptions import ConflictError, ConstraintsIgnoredWarning
from linkwise.methods._base import ConstrainedClusterer
from linkwise.methods.ncut import normalized_cut
from linkwise.result import Result

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.linalg.solve import Solution


MAX_STARTS = 50  # groups from which a search for pairwise cannot-linked groups starts
MAX_COMPARED = 200  # candidates that are compared by what they leave, not by size alone
# The user's line is behind a check, `label_seeds`, the method, two steps of `fit` and its wrapper.
STACK_LEVEL = 7


class Seeds(NamedTuple):
    """The class of some samples, -1 for the others; classes are 0 .. n_classes - 1."""

    class_of: Ints
    n_classes: int

    @property
    def known(self) -> Bools:
        """Which samples have a class."""
        known: Bools = self.class_of >= 0
        return known

    @property
    def indicator(self) -> Floats:
        """``Y_l``: one row for each sample of known class, 1 in the column of its class."""
        return np.eye(self.n_classes)[self.class_of[self.known]]

    @property
    def matrix(self) -> Floats:
        """``Y``: `indicator`, with rows of zeros for the other samples."""
        Y = np.zeros((self.class_of.size, self.n_classes))
        Y[self.known] = self.indicator
        return Y

    @property
    def proportions(self) -> Floats:
        """The share of each class among the samples of known class."""
        return self.indicator.mean(axis=0)


def label_seeds(constraints: Constraints, n_clusters: int) -> Seeds | None:
    """Turn certain constraints into classes of samples; None if there are none.

    1. Labels are classes, in the order of their values, and hold for all must-linked samples.
    2. Where labels name fewer than `n_clusters` classes, must-link groups that are apart from all
       of these and from each other become the missing ones, the largest first. Of several ways
       to choose them the one that decides the most samples is taken; its new classes are numbered
       by their first samples.
    3. A group that is apart from all classes but one belongs to that one.

    Raises
    ------
    ValueError
        If there are pairs, no labels, and too few groups that are mutually apart.
    """
    _warn_if_uncertain(constraints)
    if constraints.labels is None and not (constraints.table.belief == 1).any():
        return None
    closure = constraints.closure()
    n_groups = int(closure.component.max()) + 1
    apart = symmetric_matrix(closure.apart, np.ones(len(closure.apart)), n_groups)
    groups = _Groups(np.bincount(closure.component), apart)
    # Classes of the groups: of labels, of missing classes, and what follows from them
    class_of = _labelled_groups(constraints.labels, closure.component, n_clusters)
    class_of = _completed(groups, class_of, n_clusters)
    _check_separated(groups, class_of, n_clusters)
    n_classes = int(class_of.max()) + 1
    if n_classes < n_clusters:
        _check_missing(constraints, n_classes, n_clusters)
    return Seeds(class_of[closure.component], n_classes)


def _warn_if_uncertain(constraints: Constraints) -> None:
    n_uncertain = int((constraints.table.belief < 1).sum())
    if n_uncertain:
        message = (
            f"Label propagation uses labels and certain pairs; {n_uncertain} pairs of belief "
            "below 1 are ignored. linkwise.SignedCSC weighs such pairs."
        )
        warnings.warn(message, ConstraintsIgnoredWarning, stacklevel=STACK_LEVEL)


def _labelled_groups(labels: Ints | None, component: Ints, n_clusters: int) -> Ints:
    """Return the class of each must-link group with a label, -1 for the others."""
    class_of = np.full(int(component.max()) + 1, -1)
    if labels is not None:
        labelled = np.flatnonzero(labels >= 0)
        values = np.unique(labels[labelled], return_inverse=True)[1]
        if int(values.max()) >= n_clusters:
            raise ConflictError(
                f"The labels name {int(values.max()) + 1} classes, but n_clusters is "
                f"{n_clusters}. Raise n_clusters, or leave labels out."
            )
        class_of[component[labelled]] = values
    return class_of


class _Groups(NamedTuple):
    """Groups of must-linked samples: their sizes, and the graph of those that are apart."""

    size: Ints
    apart: csr_array

    def neighbors(self, group: int) -> Ints:
        return self.apart.indices[self.apart.indptr[group] : self.apart.indptr[group + 1]]


def _completed(groups: _Groups, class_of: Ints, k: int) -> Ints:
    """Add missing classes in the way that decides the most samples, then draw conclusions."""
    given = np.flatnonzero(class_of >= 0)
    n_given = int(class_of.max()) + 1
    first = np.array([given[class_of[given] == c][0] for c in range(n_given)], dtype=np.intp)
    if n_given == k:
        return _concluded(groups, class_of, k)
    best, best_score = class_of, (n_given, 0)
    degree = np.diff(groups.apart.indptr)
    starts = np.lexsort((-degree, -groups.size))
    starts = starts[(degree[starts] > 0) & (class_of[starts] < 0)]
    seen, n_tried = np.zeros(class_of.size, dtype=bool), 0
    for start in starts:
        if seen[start]:
            continue
        n_tried += 1
        if n_tried > MAX_STARTS:
            break
        clique = _clique(groups, [*first, start], k)
        if clique is None:
            continue
        found = class_of.copy()
        found[np.sort(clique[n_given:])] = np.arange(n_given, len(clique))
        found = _concluded(groups, found, k)
        # What belongs to a complete choice need not start another one; a dead end proves nothing.
        seen |= (found >= 0) & (len(clique) == k)
        score = (len(clique), int(groups.size[found >= 0].sum()))
        if score > best_score:
            best, best_score = found, score
    return best


def _clique(groups: _Groups, members: list[int], k: int) -> list[int] | None:
    """Add the largest group apart from all members until there are `k`, or none is left."""
    candidates = groups.neighbors(members[-1])
    for member in members[:-1]:
        if member not in groups.neighbors(members[-1]):
            return None
        candidates = np.intersect1d(candidates, groups.neighbors(member))
    while len(members) < k and candidates.size:
        chosen = _most_promising(groups, candidates)
        members = [*members, chosen]
        candidates = np.intersect1d(candidates, groups.neighbors(chosen))
    return members


def _most_promising(groups: _Groups, candidates: Ints) -> int:
    """Return the candidate that leaves the most others, the largest of these if there are few."""
    if candidates.size > MAX_COMPARED:
        return int(candidates[np.argmax(groups.size[candidates])])
    left = [np.intersect1d(candidates, groups.neighbors(c)).size for c in candidates]
    return int(candidates[np.lexsort((-groups.size[candidates], -np.array(left)))[0]])


def _concluded(groups: _Groups, class_of: Ints, k: int) -> Ints:
    """Decide, again and again, the groups for which all classes but one are excluded."""
    if int(class_of.max()) + 1 < k or k < 2:
        return class_of
    class_of = class_of.copy()
    while True:
        known = np.flatnonzero(class_of >= 0)
        members = csr_array((np.ones(known.size), (known, class_of[known])), (class_of.size, k))
        excluded = csr_array(groups.apart @ members)
        forced = (class_of < 0) & (np.diff(excluded.indptr) == k - 1)
        if not forced.any():
            return class_of
        class_of[forced] = (excluded[forced].toarray() == 0).argmax(axis=1)


def _check_separated(groups: _Groups, class_of: Ints, k: int) -> None:
    """Raise if groups that are apart share a class, or one is apart from all: k are too few."""
    pairs = groups.apart.tocoo()
    known = class_of[pairs.col] >= 0
    excluded = csr_array(
        (np.ones(known.sum()), (pairs.row[known], class_of[pairs.col[known]])), (class_of.size, k)
    )
    excluded.sum_duplicates()
    in_conflict = known & (class_of[pairs.row] == class_of[pairs.col])
    if in_conflict.any() or (np.diff(excluded.indptr) == k).any():
        raise ConflictError(
            f"The constraints cannot all hold with {k} clusters: excluding one class after the "
            "other leaves cannot-linked samples in one. Raise n_clusters, or remove cannot-links."
        )


def _check_missing(constraints: Constraints, n_classes: int, k: int) -> None:
    if constraints.labels is not None:
        message = (
            f"The constraints name {n_classes} classes, but n_clusters is {k}: label propagation "
            f"can find the {n_classes} only. Give a label of each class, or set "
            f"n_clusters={n_classes}."
        )
        warnings.warn(message, UserWarning, stacklevel=STACK_LEVEL)
        return
    raise ValueError(
        f"Label propagation needs samples of each of the {k} clusters. There are no labels, and "
        f"among the groups of must-linked samples at most {max(n_classes, 1)} were found that are "
        f"mutually cannot-linked; {k} are needed to stand for the clusters. Give labels with "
        "Constraints.from_labels, add cannot-links, or use a method for pairs such as "
        "linkwise.SignedCSC."
    )


def plain_cut(
    W: Graph, n_clusters: int, random_state: int | np.random.RandomState | None
) -> Result:
    """Cluster without any knowledge: the normalised cut, each sample wholly in its cluster."""
    found = normalized_cut(W, n_clusters, check_random_state(random_state))
    membership = np.eye(int(found.labels.max()) + 1)[found.labels]
    return replace(found, embedding=membership, eigenvalues=None)


def label_result(
    scores: Floats, found: Solution, objective: float, *, decisive: Floats | None = None
) -> Result:
    """Return the class of the largest score of each sample, with the linear solver's certificate.

    `decisive` are scores that decide in place of those that are shown.
    """
    return Result(
        labels=(scores if decisive is None else decisive).argmax(axis=1),
        embedding=scores,
        residuals=found.residuals,
        objective=objective,
        n_iter=found.n_iter,
        converged=found.converged,
    )


def distributions(F: Floats, seeds: Seeds) -> Floats:
    """Scale rows to sum 1; a row of zeros, which no seed reaches, gets the seeds' proportions."""
    F = np.maximum(F, 0.0)
    mass = F.sum(axis=1, keepdims=True)
    reached = mass > 0
    return np.where(reached, F / np.where(reached, mass, 1.0), seeds.proportions)


def smoothness(L: Any, F: Floats) -> float:
    """Return ``trace(F' L F)``, for a Laplacian the weighted squared differences over edges."""
    return float(np.einsum("ij,ij->", F, L @ F))


class LabelPropagator(ConstrainedClusterer):
    """Base class of the methods that give every sample a score for every class.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters: at least the number of distinct labels. Set it to the number that you
        expect.
    random_state : int, RandomState instance or None, default=None
        Used without constraints only: seed of the normalised cut. Give a number to get the same
        answer every time.

    Attributes
    ----------
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Share of each class; also ``embedding_``. Classes are the labels in increasing order.
    """

    family = "label propagation"
    takes = ("labels",)

    @property
    def label_distributions_(self) -> Floats:
        """Scores of the classes, of shape (n_samples, n_classes); the largest one decides."""
        check_is_fitted(self)
        return np.asarray(self.result_.embedding)

    def _memberships(self, samples: Any = slice(None)) -> Floats:
        return self.label_distributions_[samples]
