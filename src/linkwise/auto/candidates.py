"""The candidates: partitions of different kinds, of which `Auto` forms its answer.

Each is one entry of `CANDIDATES`: a name, a group with its prior, a function of a
:class:`~linkwise.auto.evidence.Trial` that returns a partition of the trial's rows, and when it is
used. Candidates of the group `UNSUPERVISED` see no constraint. The others run once with all
constraints and once for each fold. A candidate may begin from those above it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.auto.consensus import (
    TRUST,
    Group,
    Partition,
    centred_mean,
    from_labels,
    from_probability,
    matched_mean,
    softened,
)
from linkwise.auto.latent_classes import latent_class_partition
from linkwise.auto.learner import log_softmax
from linkwise.auto.mixture import mixture_partition
from linkwise.auto.spanning_tree import balanced_partition
from linkwise.constraints import Constraints
from linkwise.constraints.coloring import find_coloring
from linkwise.constraints.feasible import feasible_groups
from linkwise.exceptions import ConflictError, TooLargeError
from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.solve import dirichlet, resolvent
from linkwise.methods.e2cp import propagated_graph
from linkwise.methods.ncut import normalized_cut
from linkwise.partition import kmeans
from linkwise.search.cut import CutObjective
from linkwise.search.objective import Context, Task, hard_labels
from linkwise.search.problem import rescaled

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Ints
    from linkwise.auto.evidence import Trial


MIXTURE_COMPONENTS = 10  # principal components that mixtures describe
MIXTURE_ROWS = 3_000  # samples that a mixture is fitted to
SHARPENED = 3  # power of the probabilities of label propagation
SPREADING = 0.9  # share of a label that goes on to the neighbours; `alpha` of LLGC
TINY = 1e-300  # instead of a degree of zero
CUT_OPTIMISM = 0.3  # by which the log of a cut seems lower than it is to a candidate that sought it
CUT_PENALTY = 1.0  # of a violated pair of lower belief in a constrained cut; see `ConstrainedCut`
# When a candidate is used: number of constraints, samples, entries of the graph.
PROPAGATION_SAMPLES, PROPAGATION_DENSE = 20_000, 3_000
PROPAGATION_FROM, PROPAGATION_LABELS = 5_000, 300  # constrained, and labelled, samples at most
PROPAGATION_STARTS = 3  # of k-means, beside the one that does not depend on the seed
CUT_ENTRIES, CUT_DEGREE, CUT_SHARE = 32_000, 40, 0.6


class Candidate(NamedTuple):
    """A kind of partition."""

    name: str
    group: Group
    find: Callable[[Trial], Partition]
    least: int = 0  # constraints from which on it is used
    needs_features: bool = False  # a graph alone is not enough
    needs_labels: bool = False  # pairs alone are not enough
    needs_binary: bool = False  # every feature has two values
    applies: Callable[[Trial], bool] | None = None  # any other condition
    is_quick: bool = False  # then it is found in every scaling, to choose one
    # What it gains by seeking itself what it is judged by: nats per sample of a likelihood that it
    # maximises, logarithm of a cut that it minimises
    optimism: float = 0.0
    cut_optimism: float = 0.0
    is_preferred: bool = False  # where clusters overlap: it holds on such data

    def is_used(self, trial: Trial) -> bool:
        """Whether the candidate is used, given all constraints."""
        if trial.model.n_constraints < self.least:
            return False
        if self.needs_features and not trial.view.has_features:
            return False
        if self.needs_labels and not trial.model.labelled.size:
            return False
        if self.needs_binary and trial.view.binary is None:
            return False
        return self.applies is None or self.applies(trial)


# --- unsupervised


def _kmeans(trial: Trial) -> Partition:
    view = trial.view
    assert view.bases.scores is not None
    labels = kmeans(view.bases.scores, view.k, np.random.RandomState(0), n_init=10).labels
    return from_labels(labels[trial.rows], view.k)


def _spectral(trial: Trial) -> Partition:
    return from_labels(trial.view.spectral[trial.rows], trial.view.k)


def _coarse_cut(trial: Trial, penalty: float) -> Partition:
    """Average the partitions of several micro-clusterings, around their centre."""
    parts = []
    for cut in trial.view.coarse_cuts:
        for labels in cut.partitions(*trial.pairs, penalty):
            some = labels[trial.rows]
            parts.append(softened(some, trial.view.k, TRUST))
    return from_probability(centred_mean(parts, np.ones(len(parts)), power=2.0).probability)


def _linear(trial: Trial) -> Partition:
    """Average learners that see no constraint, from several starts."""
    plans: list[tuple[tuple[str, ...], Ints]] = []
    if "k-means" in trial.found:
        plans.append((LINEAR, trial.found["k-means"].labels))
    spectral, cut = trial.found["spectral"].labels, trial.found["coarse cut"].labels
    plans += [(LINEAR, spectral), (LINEAR, cut), (GRAPH, spectral), (GRAPH, cut)]
    if trial.view.has_features:
        for micro_clusters in trial.view.micro_clusters.values():
            plans.append((LINEAR, micro_clusters.merged(*trial.pairs)[trial.rows]))
    parts = []
    for number, (bases, labels) in enumerate(plans):
        found = trial.learn(f"linear {number}", bases, labels)
        parts.append(np.exp(log_softmax(found.log_probability)))
    alike = np.full(len(parts), 1 / len(parts))
    return from_probability(matched_mean(parts, alike, parts[0]))


def _tree(trial: Trial, limit: float, *, robust: bool = False) -> Partition:
    """Merge along a spanning tree, the smallest cluster first while sizes differ too much."""
    view = trial.view
    edges = view.tree(robust=robust)
    return from_labels(balanced_partition(edges, view.rows.size, view.k, limit=limit), view.k)


def _mixture(trial: Trial, start: str) -> Partition:
    """Fit a Gaussian to each cluster of another partition."""
    Z = trial.view.coordinates[trial.rows, :MIXTURE_COMPONENTS]
    rows = None
    if len(Z) > MIXTURE_ROWS:
        rows = np.random.RandomState(0).choice(len(Z), MIXTURE_ROWS, replace=False)
    k = trial.view.k
    R = np.zeros((len(Z), k))
    found = mixture_partition(Z, trial.labels_of(start), rows=rows)
    R[:, : found.shape[1]] = found
    return from_probability(TRUST * R + (1 - TRUST) / k)


def _latent_classes(trial: Trial, start: str) -> Partition:
    """Fit the frequencies of two values to each cluster of another partition."""
    k = trial.view.k
    R = latent_class_partition(trial.view.binary, trial.labels_of(start), k)
    return from_probability(TRUST * R + (1 - TRUST) / k)


# --- with constraints


def _micro_clusters(trial: Trial, factor: int) -> Partition:
    """Merge micro-clusters the way the pairs want it."""
    labels = trial.view.micro_clusters[factor].merged(*trial.pairs)
    return from_labels(labels[trial.rows], trial.view.k)


def _learner(trial: Trial, bases: tuple[str, ...], start: str) -> Partition:
    """Learn from the constraints, beginning from another partition.

    The second learners, with more flexible bases, begin from what the first ones have learnt: the
    `"consensus"` of them, or their `"leader"`.
    """
    key = f"{bases}, {start}"
    if start in ("consensus", "leader"):
        first = trial.first_learners
        begin = first.consensus if start == "consensus" else first.leader
        return trial.learn(key, bases, begin, rate=first.error_rate)
    if start.startswith("merged"):
        labels = trial.view.micro_clusters[int(start[-1])].merged(*trial.pairs)
        return trial.learn(key, bases, labels[trial.rows])
    return trial.learn(key, bases, trial.labels_of(start))


def _propagation(trial: Trial) -> Partition:
    """Spread the pairs over the graph (E2CP), and cut it."""
    W = trial.view.W
    solver = "lowrank" if issparse(W) else "exact"
    W_star = propagated_graph(W, trial.constraints, solver=solver, warm=trial.warm)
    rng = np.random.RandomState(trial.seed)
    labels = normalized_cut(
        W_star, trial.view.k, rng, n_init=PROPAGATION_STARTS, warm=trial.warm
    ).labels
    return from_labels(labels[trial.rows], trial.view.k)


def _label_propagation(trial: Trial) -> Partition:
    """Spread the labels over the graph, in three ways that err differently, and average.

    They are harmonic functions (GFHF), the same with the mass of a class as large as its share of
    the labels (Zhu et al. 2003), and the spreading of LLGC, in which labels of a class that has
    many do not count for more.
    """
    W, model = trial.view.W, trial.model
    labelled = model.vertices[model.labelled]
    if not labelled.size:  # in a fold without labels
        return from_probability(np.zeros((trial.rows.size, model.k)))
    Y = np.eye(model.k)[model.label]
    known = np.zeros(trial.view.n_samples, bool)
    known[labelled] = True
    F = dirichlet(W, known, Y).x
    B = np.zeros((trial.view.n_samples, model.k))
    B[labelled] = Y
    G = np.maximum(resolvent(normalized_adjacency(W), SPREADING, B).x, 0.0)
    for H in (F, G):
        # What a label says about its own sample is added later: here it has the mean of its
        # neighbours.
        H[labelled] = np.asarray(W[labelled] @ H) / np.maximum(degrees(W)[labelled], TINY)[:, None]
    count = Y.sum(axis=0)
    mass = (count + (count > 0)) / np.maximum(F.mean(axis=0), TINY)  # with one more of each class
    ways = (F, F * mass, G / np.maximum(G.sum(axis=0), TINY))
    return from_probability(np.mean([_sharpened(one[trial.rows]) for one in ways], axis=0))


def _sharpened(F: Floats) -> Floats:
    """Return probabilities: walks from far away meet all labels alike, and `F` is too flat."""
    P = (F / np.maximum(F.max(axis=1, keepdims=True), TINY)) ** SHARPENED
    sharpened: Floats = P / np.maximum(P.sum(axis=1, keepdims=True), TINY)
    return sharpened


def _can_spread(trial: Trial) -> bool:
    """Whether there is a graph alone, not too large, with labels of two clusters or more."""
    n_labels, W = np.unique(trial.model.label).size, trial.view.W
    most = PROPAGATION_SAMPLES if issparse(W) else PROPAGATION_DENSE
    return not trial.view.has_features and n_labels > 1 and W.shape[0] <= most


def _can_propagate(trial: Trial) -> bool:
    """Whether constraints are not too many to spread over the graph, and not too far."""
    W = trial.view.W
    most = PROPAGATION_SAMPLES if issparse(W) else PROPAGATION_DENSE
    n_labelled, n_constrained = trial.model.labelled.size, trial.model.vertices.size
    return (
        W.shape[0] <= most
        and n_constrained <= PROPAGATION_FROM
        and n_labelled <= PROPAGATION_LABELS
    )


def _constrained_cut(trial: Trial) -> Partition:
    """Return a low cut that satisfies every certain constraint."""
    context = Context(np.random.RandomState(trial.seed))
    build = partial(CutObjective.on, rescaled(csr_array(trial.view.W))[0], k=trial.view.k)
    task = Task(build, trial.constraints, trial.view.k, context, effort="fast")
    try:
        found = hard_labels(task, CUT_PENALTY)
    except ConflictError:  # all of them can hold (see `_can_cut`), but no partition was found
        none = Constraints(trial.view.n_samples)
        found = hard_labels(task._replace(constraints=none), CUT_PENALTY)
    if found.interrupted:
        raise KeyboardInterrupt
    return from_labels(found.labels[trial.rows], trial.view.k)


def _can_cut(trial: Trial) -> bool:
    """Whether there are many constraints on a small graph, and they can all hold."""
    W, n = trial.view.W, trial.view.n_samples
    if trial.model.n_constraints <= CUT_SHARE * n:
        return False
    n_entries = np.count_nonzero(W) if isinstance(W, np.ndarray) else W.nnz
    if n_entries > min(CUT_ENTRIES, CUT_DEGREE * n):
        return False
    try:
        groups = feasible_groups(trial.constraints, trial.view.k)
    except (ConflictError, TooLargeError):
        return False
    rng = np.random.RandomState(0)
    return find_coloring(groups.graph, trial.view.k, rng).n_left == 0


LINEAR, GRAPH, KERNEL = ("linear",), ("linear", "graph"), ("linear", "kernel")

UNSUPERVISED = Group("unsupervised", 0.6, stacked=0.3)
COARSE_CUT = Group("coarse cut", 0.1, few=0.03)
LEARNER = Group("learner", 0.3)
MICRO_CLUSTERS = Group("micro-clusters", 0.05)

CANDIDATES = (
    Candidate("k-means", UNSUPERVISED, _kmeans, needs_features=True, is_quick=True),
    Candidate("spectral", UNSUPERVISED, _spectral, is_quick=True, is_preferred=True),
    Candidate(
        "coarse cut",
        UNSUPERVISED,
        partial(_coarse_cut, penalty=0.0),
        is_quick=True,
        cut_optimism=CUT_OPTIMISM,
    ),
    Candidate("linear", UNSUPERVISED, _linear, is_preferred=True),
    Candidate("tree .1", UNSUPERVISED, partial(_tree, limit=0.1), needs_features=True),
    Candidate("tree .3", UNSUPERVISED, partial(_tree, limit=0.3), needs_features=True),
    Candidate(
        "robust tree .3",
        UNSUPERVISED,
        partial(_tree, limit=0.3, robust=True),
        needs_features=True,
    ),
    *(
        Candidate(
            f"mixture, {start}",
            UNSUPERVISED,
            partial(_mixture, start=start),
            needs_features=True,
            optimism=0.03,
            cut_optimism=CUT_OPTIMISM if start == "coarse cut" else 0.0,
        )
        for start in ("k-means", "spectral", "coarse cut", "tree .3", "tree .1", "robust tree .3")
    ),
    *(
        Candidate(
            f"latent classes, {start}",
            UNSUPERVISED,
            partial(_latent_classes, start=start),
            needs_binary=True,
            optimism=0.03,
        )
        for start in ("k-means", "spectral", "tree .3", "robust tree .3")
    ),
    *(
        Candidate(
            f"coarse cut, penalty {penalty:g}",
            COARSE_CUT,
            partial(_coarse_cut, penalty=penalty),
            least=4,
            is_quick=True,
        )
        for penalty in (0.05, 0.2)
    ),
    *(
        Candidate(
            f"{' + '.join(bases)}, {start}",
            LEARNER,
            partial(_learner, bases=bases, start=start),
            least=9,
            needs_features="kernel" in bases or start in ("k-means", "merged 2", "merged 4"),
        )
        for bases, start in (
            (LINEAR, "k-means"),
            (LINEAR, "spectral"),
            (GRAPH, "spectral"),
            (LINEAR, "merged 2"),
            (LINEAR, "merged 4"),
            (LINEAR, "coarse cut, penalty 0.05"),
            (GRAPH, "coarse cut, penalty 0.05"),
            (LINEAR, "coarse cut, penalty 0.2"),
            (GRAPH, "coarse cut, penalty 0.2"),
            (KERNEL, "consensus"),
            (KERNEL, "leader"),
            (GRAPH, "consensus"),
            (GRAPH, "leader"),
        )
    ),
    *(
        Candidate(
            f"micro-clusters, {factor} k",
            MICRO_CLUSTERS,
            partial(_micro_clusters, factor=factor),
            least=12,
            needs_features=True,
        )
        for factor in (2, 4)
    ),
    Candidate("e2cp", Group("propagation", 0.05), _propagation, least=41, applies=_can_propagate),
    Candidate(
        "label propagation",
        Group("label propagation", 0.1, stacked=0.6),
        _label_propagation,
        needs_labels=True,
        least=9,
        applies=_can_spread,
    ),
    Candidate(
        "constrained cut",
        Group("constrained cut", 0.05),
        _constrained_cut,
        least=41,
        applies=_can_cut,
    ),
)
