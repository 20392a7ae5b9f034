"""The candidates: partitions of different kinds, of which `Auto` forms its answer.

Each is one entry of `CANDIDATES`: a name, a group, a function of a
:class:`~linkwise.auto.trial.Trial` that returns a partition of the trial's rows, and when it is
used. Candidates of the group ``"unsupervised"`` see no constraint. The others run once with all
constraints and once for each fold. A candidate may begin from those above it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.auto.constraint_model import labelled_samples
from linkwise.auto.learner import log_softmax
from linkwise.auto.mixture import mixture_partition
from linkwise.auto.partition import (
    TRUST,
    Partition,
    centred_mean,
    from_labels,
    from_probability,
    matched_mean,
    softened,
)
from linkwise.auto.spanning_tree import balanced_partition
from linkwise.constraints import Constraints
from linkwise.constraints.coloring import find_coloring
from linkwise.constraints.feasible import feasible_groups
from linkwise.exceptions import ConflictError, TooLargeError
from linkwise.linalg.laplacian import degrees
from linkwise.linalg.solve import dirichlet
from linkwise.methods.e2cp import propagated_graph
from linkwise.methods.ncut import normalized_cut
from linkwise.search.cut import CutObjective
from linkwise.search.objective import Context, Task, hard_labels
from linkwise.search.problem import rescaled

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Ints
    from linkwise.auto.trial import Trial


MIXTURE_COMPONENTS = 10  # principal components that mixtures describe
MIXTURE_ROWS = 3_000  # samples that a mixture is fitted to
SHARPENED = 3  # power of the probabilities of label propagation
TINY = 1e-300  # instead of a degree of zero
CUT_PENALTY = 1.0  # of a violated pair of lower belief in a constrained cut; see `ConstrainedCut`
# When a candidate is used: number of constraints, samples, entries of the graph.
PROPAGATION_SAMPLES, PROPAGATION_DENSE = 20_000, 3_000
PROPAGATION_FROM, PROPAGATION_LABELS = 5_000, 300  # constrained, and labelled, samples at most
PROPAGATION_STARTS = 3  # of k-means, beside the one that does not depend on the seed
CUT_ENTRIES, CUT_DEGREE, CUT_SHARE = 32_000, 40, 0.6


class Candidate(NamedTuple):
    """A kind of partition."""

    name: str
    group: str
    find: Callable[[Trial], Partition]
    least: int = 0  # constraints from which on it is used
    applies: Callable[[Trial], bool] | None = None  # any other condition
    is_quick: bool = False  # then it is found in every scaling, to choose one


# --- unsupervised


def _kmeans(trial: Trial) -> Partition:
    return from_labels(trial.view.kmeans[trial.rows], trial.view.k)


def _spectral(trial: Trial) -> Partition:
    return from_labels(trial.view.spectral[trial.rows], trial.view.k)


def _coarse_cut(trial: Trial, penalty: float) -> Partition:
    """Average the partitions of several micro-clusterings, around their centre."""
    found = [
        softened(labels[trial.rows], trial.view.k, TRUST)
        for cut in trial.view.coarse_cuts
        for labels in cut.partitions(*trial.pairs, penalty)
    ]
    return from_probability(centred_mean(found, np.ones(len(found)), power=2.0).probability)


def _linear(trial: Trial) -> Partition:
    """Average learners that see no constraint, from several starts."""
    rigid = _rigid(trial)
    starts = [
        trial.labels_of(name)
        for name in ("k-means", "spectral", "coarse cut")
        if name in trial.found
    ]
    plans: list[tuple[tuple[str, ...], Ints]] = [((rigid,), labels) for labels in starts]
    plans += [((rigid, "graph"), labels) for labels in starts[-2:]]  # those of the graph
    if trial.view.has_features:
        merged = (_merged(trial, factor) for factor in trial.view.micro_clusters)
        plans += [((rigid,), labels) for labels in merged]
    found = [
        trial.learn(f"linear {number}", bases, trial.begin(labels))
        for number, (bases, labels) in enumerate(plans)
    ]
    parts = [np.exp(log_softmax(one.log_probability)) for one in found]
    alike = np.full(len(parts), 1 / len(parts))
    return from_probability(matched_mean(parts, alike, parts[0]))


def _tree(trial: Trial, limit: float, *, robust: bool = False) -> Partition:
    """Merge along a spanning tree, the smallest cluster first while sizes differ too much."""
    view = trial.view
    edges = view.robust_tree if robust else view.tree
    return from_labels(balanced_partition(edges, view.rows.size, view.k, limit), view.k)


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


# --- with constraints


def _micro_clusters(trial: Trial, factor: int) -> Partition:
    return from_labels(_merged(trial, factor), trial.view.k)


def _merged(trial: Trial, factor: int) -> Ints:
    """Return micro-clusters merged the way the pairs want it, on the rows."""
    return trial.view.micro_clusters[factor].merged(*trial.pairs)[trial.rows]


def _learner(trial: Trial, bases: tuple[str, ...], start: str) -> Partition:
    """Learn from the constraints, beginning from another partition; see `Trial.first_learners`."""
    if start.startswith("merged"):
        labels = _merged(trial, int(start[-1]))
    else:
        labels = trial.labels_of(start)
    name = learner_name(bases, start)
    return trial.learn(name, _bases(trial, bases), trial.begin(labels))


def _second_learner(trial: Trial, bases: tuple[str, ...], start: str) -> Partition:
    """Learn with more flexible bases, beginning from what the first learners have learnt."""
    first = trial.first_learners
    begin = first.consensus if start == "consensus" else first.leader
    name = learner_name(bases, start)
    return trial.learn(name, _bases(trial, bases), begin, rate=first.error_rate)


def learner_name(bases: tuple[str, ...], start: str) -> str:
    """Return the name of a learner."""
    return f"{' + '.join(bases)}, {start}"


def _rigid(trial: Trial) -> str:
    return "linear" if trial.view.has_features else "smooth"


def _bases(trial: Trial, bases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_rigid(trial) if name == "linear" else name for name in bases)


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


def _harmonic(trial: Trial) -> Partition:
    """Spread the labels over the graph: their harmonic functions (GFHF)."""
    W, model = trial.view.W, trial.model
    labelled = model.vertices[model.labelled]
    known = np.zeros(trial.view.n_samples, bool)
    known[labelled] = True
    F = dirichlet(W, known, np.eye(model.k)[model.label]).x
    # What a label says about its own sample is added later: here it has the mean of its neighbours.
    F[labelled] = np.asarray(W[labelled] @ F) / np.maximum(degrees(W)[labelled], TINY)[:, None]
    # Walks from far away meet all labels alike: the probabilities are flatter than they should be.
    P = F[trial.rows] ** SHARPENED
    return from_probability(P / np.maximum(P.sum(axis=1, keepdims=True), TINY))


def _can_spread(trial: Trial) -> bool:
    """Whether there is a graph alone, not too large, with labels of two clusters or more."""
    n_labels, W = np.unique(trial.model.label).size, trial.view.W
    most = PROPAGATION_SAMPLES if issparse(W) else PROPAGATION_DENSE
    return not trial.view.has_features and n_labels > 1 and W.shape[0] <= most


def _can_propagate(trial: Trial) -> bool:
    """Whether constraints are not too many to spread over the graph, and not too far."""
    W, constraints = trial.view.W, trial.constraints
    most = PROPAGATION_SAMPLES if issparse(W) else PROPAGATION_DENSE
    n_labelled = labelled_samples(constraints)[0].size
    n_constrained = trial.model.vertices.size
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


def _has_features(trial: Trial) -> bool:
    return trial.view.has_features


LINEAR, GRAPH, KERNEL = ("linear",), ("linear", "graph"), ("linear", "kernel")

CANDIDATES = (
    Candidate("k-means", "unsupervised", _kmeans, applies=_has_features, is_quick=True),
    Candidate("spectral", "unsupervised", _spectral, is_quick=True),
    Candidate("coarse cut", "unsupervised", partial(_coarse_cut, penalty=0.0), is_quick=True),
    Candidate("linear", "unsupervised", _linear),
    Candidate("tree .1", "unsupervised", partial(_tree, limit=0.1), applies=_has_features),
    Candidate("tree .3", "unsupervised", partial(_tree, limit=0.3), applies=_has_features),
    Candidate(
        "robust tree .3",
        "unsupervised",
        partial(_tree, limit=0.3, robust=True),
        applies=_has_features,
    ),
    *(
        Candidate(
            f"mixture, {start}",
            "unsupervised",
            partial(_mixture, start=start),
            applies=_has_features,
        )
        for start in ("k-means", "spectral", "coarse cut", "tree .3", "tree .1", "robust tree .3")
    ),
    *(
        Candidate(
            f"coarse cut, penalty {penalty:g}",
            "coarse cut",
            partial(_coarse_cut, penalty=penalty),
            least=4,
            is_quick=True,
        )
        for penalty in (0.05, 0.2)
    ),
    *(
        Candidate(
            learner_name(bases, start),
            "learner",
            partial(_learner, bases=bases, start=start),
            least=9,
            applies=_has_features if start in ("k-means", "merged 2", "merged 4") else None,
        )
        for start, bases in (
            ("k-means", LINEAR),
            ("spectral", LINEAR),
            ("spectral", GRAPH),
            ("merged 2", LINEAR),
            ("merged 4", LINEAR),
            ("coarse cut, penalty 0.05", LINEAR),
            ("coarse cut, penalty 0.05", GRAPH),
            ("coarse cut, penalty 0.2", LINEAR),
            ("coarse cut, penalty 0.2", GRAPH),
        )
    ),
    *(
        Candidate(
            learner_name(bases, start),
            "learner",
            partial(_second_learner, bases=bases, start=start),
            least=9,
            applies=_has_features if "kernel" in bases else None,
        )
        for bases in (KERNEL, GRAPH)
        for start in ("consensus", "leader")
    ),
    *(
        Candidate(
            f"micro-clusters, {factor} k",
            "micro-clusters",
            partial(_micro_clusters, factor=factor),
            least=12,
            applies=_has_features,
        )
        for factor in (2, 4)
    ),
    Candidate("e2cp", "propagation", _propagation, least=41, applies=_can_propagate),
    Candidate("label propagation", "label propagation", _harmonic, least=9, applies=_can_spread),
    Candidate("constrained cut", "constrained cut", _constrained_cut, least=41, applies=_can_cut),
)
