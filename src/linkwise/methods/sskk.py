"""SSKK: semi-supervised kernel k-means on a graph (Kulis, Basu, Dhillon & Mooney 2005)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.utils import check_random_state

from linkwise._params import Interval, StrOptions
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg import eigen
from linkwise.linalg.embedding import leading_eigenpairs
from linkwise.linalg.laplacian import degrees
from linkwise.methods._base import ConstrainedClusterer
from linkwise.partition import kmeans, relabelled, unit_rows
from linkwise.result import Result
from linkwise.search.kernel_kmeans import (
    Descent,
    VertexWeighted,
    batch_steps,
    contracted,
    filled,
    single_moves,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.linalg.eigen import EigenPairs


# Automatic reward of a sample for all its must-links together, in mean degrees. At 1, must-linked
# samples would be as good alone as a perfect cluster, and clusters shrink to them. Mean ARI with
# pairs and with labels, on iris, wine, WDBC and digits: .865 and .838 (0.3), .886 and .831 (0.5),
# .889 and .828 (0.7), .878 and .704 (1).
FULL_REWARD = 0.5

# Of two starts with an equal result the earlier one is kept.
SAME_OBJECTIVE = 1e-9


def sskk(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    penalty: float | str = "auto",
    start: str = "best",
    shift: float = 0.0,
    max_iter: int = 100,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Lower the normalised cut with rewards and penalties for pairs by weighted kernel k-means.

    With the graph `A`, its degrees `D` as weights, and `C` holding ``+w`` for must-links and
    ``-w`` for cannot-links, the kernel ``sigma D^-1 + D^-1 (A + C) D^-1`` gives the criterion

    .. math:: \sum_c \frac{\mathrm{cut}(V_c) - 2 w \, \#\{\text{must-links inside } V_c\}
       + 2 w \, \#\{\text{cannot-links inside } V_c\}}{\mathrm{vol}(V_c)} ,

    up to a constant. `objective` is this value; the sum of `eigenvalues`, those of
    ``I - D^-1/2 (A + C) D^-1/2``, is a lower bound of it.
    """
    rng = check_random_state(random_state)
    unit = pair_penalty(constraints) if penalty == "auto" else float(penalty)
    # A + C, and the eigenvectors that relax the criterion with and without C
    graph = penalised_graph(W, constraints, unit)
    eigenpairs = plain = _relaxation(graph, n_clusters, rng, is_plain=constraints.is_empty)
    if not constraints.is_empty:
        plain = _relaxation(penalised_graph(W, constraints, 0.0), n_clusters, rng, is_plain=True)
    group = constraints.components()
    if int(group.max()) + 1 < n_clusters:
        group = np.arange(group.size)
    # Kernel k-means from every start; of equal results the earlier one is kept
    best, *others = (
        descend(graph, labels, group, k=n_clusters, shift=shift, max_iter=max_iter, rng=rng)
        for labels in _starts((plain, eigenpairs), group, start, rng=rng)
    )
    for other in others:
        if other.history[-1] < best.history[-1] - SAME_OBJECTIVE:
            best = other
    return Result(
        labels=relabelled(best.labels),
        embedding=unit_rows(eigenpairs.vectors),
        eigenvalues=1 - eigenpairs.values,
        residuals=eigenpairs.residuals,
        objective=best.history[-1],
        n_iter=best.n_iter,
        converged=best.converged and eigenpairs.converged,
    )


def pair_penalty(constraints: Constraints) -> float:
    """Return the automatic penalty of a pair, in units of the mean degree.

    It is 0.5 when each must-linked sample has one must-link, and in general 0.5 divided by the
    number of must-links that such a sample has. (The mean over the endpoints of must-links, beliefs
    counted: a crowd of well connected samples is what could fall off as a cluster.)
    """
    pairs, weights = constraints.signed_pairs()
    ends, belief = pairs[weights > 0].ravel(), np.repeat(weights[weights > 0], 2)
    reward = np.bincount(ends, weights=belief, minlength=1)
    crowd = (reward**2).sum() / reward.sum() if ends.size else 1.0
    return float(FULL_REWARD / max(1.0, crowd))


def penalised_graph(W: Graph, constraints: Constraints, penalty: float) -> VertexWeighted:
    """Return ``A + C`` with the degrees of `A` as weights, in units of the mean degree.

    Isolated vertices get a self-loop of the mean degree.
    """
    A = csr_array(W)
    d = degrees(A)
    unit = d[d > 0].mean() if d.any() else 1.0
    loops = (d == 0).astype(np.float64)
    M = A / unit
    if loops.any():
        M = M + diags_array(loops, format="csr")
    if penalty and not constraints.is_empty:
        M = M + penalty * constraint_matrix(constraints)
    M = csr_array(M)
    M.sort_indices()
    return VertexWeighted(M, d / unit + loops)


def descend(
    graph: VertexWeighted,
    labels: Ints,
    group: Ints,
    *,
    k: int,
    shift: float,
    max_iter: int,
    rng: np.random.RandomState,
) -> Descent:
    """Run batch steps, then moves of whole must-link groups, then moves of single samples.

    The groups move as one at first, or no member could leave its must-linked partners. `history`
    holds the criterion after each step; it never increases.
    """
    groups = contracted(graph, group)
    start = filled(groups, _majority(labels, group, k, weights=graph.d), k)
    batch = batch_steps(groups, start, k, sigma=shift, max_iter=max_iter)
    together = single_moves(groups, batch.labels, k, rng=rng, max_iter=max_iter)
    alone = single_moves(graph, together.labels[group], k, rng=rng, max_iter=max_iter)
    association = batch.history + together.history[1:] + alone.history[1:]
    return Descent(
        alone.labels,
        [k - value for value in association],
        n_iter=batch.n_iter + together.n_iter + alone.n_iter,
        converged=together.converged and alone.converged,
    )


def _relaxation(
    graph: VertexWeighted, k: int, rng: np.random.RandomState, *, is_plain: bool
) -> EigenPairs:
    """Return the leading eigenpairs of ``D^-1/2 M D^-1/2``, whose clusters relax the criterion."""
    s = diags_array(1 / np.sqrt(graph.d), format="csr")
    S = csr_array(s @ graph.M @ s)
    if not is_plain:
        return eigen.largest(S, k, rng)
    return leading_eigenpairs(S, k, rng, profile=np.sqrt(graph.d))


def _starts(
    relaxations: tuple[EigenPairs, EigenPairs],
    group: Ints,
    start: str,
    *,
    rng: np.random.RandomState,
) -> Iterator[Ints]:
    """Yield clusterings to start from: two spectral ones, then the must-link neighbourhoods.

    The relaxations are those without and with pairs.
    """
    plain, penalised = relaxations
    k = plain.values.size
    rows = unit_rows(plain.vectors)
    if start in ("best", "spectral"):
        yield kmeans(rows, k, rng).labels
        if penalised is not plain:
            yield kmeans(unit_rows(penalised.vectors), k, rng).labels
    if start in ("best", "neighborhoods"):
        yield _neighborhoods(rows, group, k)


def _neighborhoods(rows: Floats, group: Ints, k: int) -> Ints:
    """Put every sample with the nearest of `k` must-link groups that are large and far apart.

    The weighted farthest-first traversal of the paper. Distances are between rows of the spectral
    embedding: in the kernel of a sparse graph, samples without a common neighbour are all alike.
    """
    size = np.bincount(group)
    means = np.column_stack([np.bincount(group, column) / size for column in rows.T])
    # Single samples are chosen only when there are too few groups.
    weight = np.where(size > 1, size, 0.0)
    nearest = np.full(size.size, np.inf)
    seeds: list[int] = []
    for _ in range(k):
        reach = np.where(np.isinf(nearest), 1.0, nearest)
        score = weight * reach
        last = int(np.argmax(score if score.any() else reach))
        seeds.append(last)
        weight[last] = 0.0
        nearest = np.minimum(nearest, ((means - means[last]) ** 2).sum(axis=1))
    distances = [((rows - means[seed]) ** 2).sum(axis=1) for seed in seeds]
    return np.argmin(distances, axis=0)


def _majority(labels: Ints, group: Ints, k: int, *, weights: Floats) -> Ints:
    """Return, for every group, the cluster that has the most of its weight."""
    n_groups = int(group.max()) + 1
    votes = np.bincount(group * k + labels, weights=weights, minlength=n_groups * k)
    return votes.reshape(n_groups, k).argmax(axis=1)


class SSKK(ConstrainedClusterer):
    """Semi-supervised kernel k-means on a graph (Kulis, Basu, Dhillon & Mooney, 2005).

    Lowers the normalised cut, with a reward for each must-link inside a cluster and a penalty for
    each cannot-link inside one, by weighted kernel k-means: all samples at once, then one by one.
    Soft: it trades the cut against the constraints. The criterion never increases.

    Parameters
    ----------
    n_clusters
    affinity
    penalty : float or "auto", default="auto"
        Weight of a certain pair, in units of the mean degree of the graph. ``"auto"`` is
        0.5 divided by the number of must-links (their beliefs added up) of their endpoints, on
        average. Much above 1 the criterion itself prefers tiny clusters of must-linked samples.
        Raise it a little if too many pairs are violated.
    start : {"best", "spectral", "neighborhoods"}, default="best"
        Where the descent starts. ``"neighborhoods"``: large groups of must-linked samples that are
        far apart, as in the paper. ``"spectral"``: the relaxations of the criterion with and
        without pairs. ``"best"`` tries all three and keeps the lowest criterion. Take
        ``"spectral"`` to save time.
    shift : float, default=0.0
        The paper's `sigma`. A large one makes the kernel positive definite and holds every sample
        where it is in the steps of all samples at once; single moves do not feel it. Change it
        only to repeat the paper.
    max_iter : int, default=100
        Most passes over the samples in each phase. Raise it if `n_iter_` reaches it.
    random_state : int, RandomState instance or None, default=None
        Seed of the eigensolver's start, of k-means and of the order of single moves. Give a number
        to get the same answer every time.

    Attributes
    ----------
    result_ : Result
        Labels, criterion, and the relaxation whose eigenvalues add up to a lower bound of it.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Unit rows of the relaxation's eigenvectors.
    n_iter_ : int
        Passes over the samples.

    References
    ----------
    B. Kulis, S. Basu, I. Dhillon, R. Mooney: Semi-supervised graph clustering: a kernel approach.
    ICML 2005; Machine Learning 74 (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import SSKK, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> SSKK(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Kulis et al. 2005"
    family = "kernel k-means"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "start": [StrOptions({"best", "spectral", "neighborhoods"})],
        "shift": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    solve = staticmethod(sskk)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    penalty: float | str = "auto"
    start: str = "best"
    shift: float = 0.0
    max_iter: int = 100
    random_state: int | np.random.RandomState | None = None
