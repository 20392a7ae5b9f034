"""The constrained cut: every constraint satisfied, for any number of clusters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise import metrics
from linkwise._params import Interval, StrOptions
from linkwise._progress import Progress
from linkwise._rows import RowIndex
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.partition import relabelled
from linkwise.result import Result
from linkwise.search.cut import CutObjective
from linkwise.search.means import MeansObjective, scaled_rows
from linkwise.search.objective import Context, Task, hard_labels, warn_interrupted, workers
from linkwise.search.problem import rescaled
from linkwise.search.soft import check_label_count, find_suspects, soft_labels, violated_items
from linkwise.search.starts import squared_distances

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints, Suspect
    from linkwise.graph import Affinity
    from linkwise.search.soft import Path


class PathPoint(NamedTuple):
    """The answer at one penalty."""

    strength: float
    labels: Ints
    objective: float  # without the penalty of violated pairs
    n_violated: int  # pairs and labels; a label is one, however many samples share it


@dataclass(frozen=True, eq=False, repr=False)
class CutResult(Result):
    """The answer of a constrained cut.

    Parameters
    ----------
    n_violated : int
        Constraints that the labels violate, counted on the constraints as they were given.
    strength : float or None
        The penalty at which soft pairs were traded, where there are any.
    path : tuple of PathPoint
        In soft mode, the answers from no constraints to strong ones.
    noise : float or None
        In soft mode, the estimated share of wrong constraints.
    suspects : tuple of Suspect
        In soft mode, the constraints most likely wrong, the most suspicious first.
    islands : ndarray
        Samples without an edge into their own cluster: only constraints keep them there.
    """

    n_violated: int = 0
    strength: float | None = None
    path: tuple[PathPoint, ...] = ()
    noise: float | None = None
    suspects: tuple[Suspect, ...] = ()
    islands: Ints | None = None


def constrained_cut(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    constraints_mode: str = "hard",
    strength: float | str = "auto",
    violations: int | None = None,
    effort: str = "default",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
) -> CutResult:
    r"""Minimise the normalised cut among the partitions that satisfy every certain constraint.

    .. math:: \sum_c \frac{\mathrm{cut}(c, V \setminus c)}{\mathrm{vol}(c)}
       + \gamma \sum_{\text{violated soft pairs}} w_{ij},
       \qquad \gamma = t\, k / n

    The search never leaves the feasible partitions; see :class:`ConstrainedCut`.
    """
    graph, _ = rescaled(csr_array(W))
    build = partial(CutObjective.on, graph, k=n_clusters)
    context = Context(check_random_state(random_state))
    task = Task(build, constraints, n_clusters, context, effort=effort)
    options = Options(constraints_mode, strength, violations, n_jobs, verbose)
    found = _solve(task, partial(metrics.ncut, graph), options)
    return replace(found, islands=_isolated_in_cluster(graph, found.labels))


def constrained_kmeans(
    X: Floats,
    constraints: Constraints,
    n_clusters: int,
    *,
    constraints_mode: str = "hard",
    strength: float | str = "auto",
    violations: int | None = None,
    effort: str = "default",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
) -> CutResult:
    r"""Minimise the sum of squares among the partitions that satisfy every certain constraint.

    .. math:: \frac{1}{T} \sum_c \sum_{i \in c} \lVert x_i - \bar x_c \rVert^2
       + \gamma \sum_{\text{violated soft pairs}} w_{ij},
       \qquad \gamma = t / n

    with the total sum of squares :math:`T`. For data in round clusters; it builds no graph.
    """
    rows, total = scaled_rows(X)
    build = partial(MeansObjective.on, rows, k=n_clusters)
    context = Context(check_random_state(random_state))
    task = Task(build, constraints, n_clusters, context, effort=effort)
    options = Options(constraints_mode, strength, violations, n_jobs, verbose)

    def inertia(labels: Ints) -> float:
        return total * float(((rows - _centers(rows, labels)[labels]) ** 2).sum())

    return _solve(task, inertia, options)


class Options(NamedTuple):
    """Parameters that both objectives share; see :class:`ConstrainedCut`."""

    constraints_mode: str
    strength: float | str
    violations: int | None
    n_jobs: int | None
    verbose: int | None


def _solve(task: Task, objective: Callable[[Ints], float], options: Options) -> CutResult:
    """Search under hard or soft constraints, and return the labels with their `objective`."""
    constraints, strength, violations = task.constraints, options.strength, options.violations
    is_hard = options.constraints_mode == "hard"
    if violations is not None and is_hard:
        raise ValueError(
            f"violations={violations} is a budget for soft constraints, but hard ones are "
            'never violated. Set constraints_mode="soft", or leave violations out.'
        )
    with (
        workers(effective_n_jobs(options.n_jobs)) as run,
        Progress("ConstrainedCut", options.verbose) as progress,
    ):
        task = task._replace(context=task.context._replace(run=run, report=progress.part()))
        more: dict[str, Any] = {}
        if is_hard:
            strength = 1.0 if isinstance(strength, str) else float(strength)
            found = hard_labels(task, strength)
        else:
            found, path, strength = soft_labels(task, strength, violations)
            more = _from_path(path, constraints, strength, objective=objective)
    if found.interrupted:
        warn_interrupted()
    labels = relabelled(found.labels)
    return CutResult(
        labels=labels,
        objective=objective(labels),
        n_iter=found.n_iter,
        converged=not found.interrupted,
        n_violated=constraints.n_violated(labels),
        strength=strength,
        **more,
    )


def _from_path(
    path: Path, constraints: Constraints, strength: float, *, objective: Callable[[Ints], float]
) -> dict[str, Any]:
    """Return the points of a soft path, the estimated noise, and the suspects."""
    points = []
    noise = None  # unless the path was interrupted before `strength=1`
    for t, z in zip(path.strengths, path.partitions, strict=True):
        labels = z[: constraints.n_samples].astype(np.intp)
        violated = violated_items(constraints, z)
        points.append(PathPoint(t, relabelled(labels), objective(labels), int(violated.sum())))
        if t == 1.0:
            noise = float(violated.mean()) if violated.size else 0.0
    suspects = find_suspects(constraints, path, strength)
    return {"path": tuple(points), "noise": noise, "suspects": suspects}


def _isolated_in_cluster(W: csr_array, labels: Ints) -> Ints:
    """Return samples that have neighbours, but none in their own cluster."""
    heads = np.repeat(np.arange(labels.size), np.diff(W.indptr))
    counted = (heads != W.indices) & (W.data > 0)
    heads, tails = heads[counted], W.indices[counted]
    n_neighbors = np.bincount(heads, minlength=labels.size)
    own = np.bincount(heads[labels[heads] == labels[tails]], minlength=labels.size)
    return np.flatnonzero((n_neighbors > 0) & (own == 0))


def _centers(rows: Floats, labels: Ints) -> Floats:
    sizes = np.bincount(labels)
    return np.column_stack([np.bincount(labels, column) / sizes for column in rows.T])


class ConstrainedCut(ConstrainedClusterer):
    """The lowest cut, or sum of squares, with every constraint satisfied.

    Must-links are contracted; a partition that satisfies all constraints is then a proper
    colouring of the cannot-links. The search moves only between such colourings, by single
    vertices and Kempe chains, over coarser and coarser graphs, with a small population that
    recombines. So no constraint is ever violated, for any number of clusters, and there is no
    penalty to tune. Constraints that cannot be satisfied raise
    :class:`~linkwise.exceptions.ConflictError` with the pairs that prove it.

    Parameters
    ----------
    n_clusters
    objective : {"ncut", "kmeans"}, default="ncut"
        The normalised cut of the graph, or the sum of squares of the data, for round clusters.
        Take ``"kmeans"`` if clusters are round and the graph misleads.
    constraints_mode : {"hard", "soft"}, default="hard"
        ``"hard"``: pairs of belief 1 and labels hold without exception; pairs of lower belief are
        traded against the cut. ``"soft"``: all are traded, for answers that may be wrong. Take
        ``"soft"`` if some pairs may be wrong.
    strength : float or "auto", default="auto"
        The penalty of a violated soft pair: 1 is about half of what it costs to misplace an average
        sample. ``"auto"`` is 1; in soft mode with more than 200 pairs it is chosen by
        cross-validation over the pairs. Raise it if pairs should count more.
    violations : int, default=None
        In soft mode, take the smallest `strength` that violates at most so many constraints, in
        place of `strength`. Use it if you know about how many constraints are wrong.
    effort : {"fast", "default", "thorough"}, default="default"
        How long to search. ``"fast"`` is for very large graphs. Take ``"thorough"`` for the lowest
        cut.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``. Not used for ``"kmeans"``. Give an
        :class:`~linkwise.Affinity` for other neighbours or weights, and ``"precomputed"`` if X is
        a graph already.
    random_state : int, RandomState instance or None, default=None
        Seed of the search. The answer does not depend on `n_jobs`. Give a number to get the same
        answer every time.
    n_jobs : int, default=None
        Threads for independent parts of the search; -1 for all. Set -1 on an idle machine.
    verbose : int or None, default=None
        None shows a progress bar on a terminal or in a notebook if the fit takes more than two
        seconds, 0 shows nothing, 1 prints a line for each step. Set 0 in scripts whose output is
        read by programs.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, with the objective ``"kmeans"``.
    result_ : CutResult
        Labels and objective; `n_violated`; in soft mode the `path`, the estimated `noise` and
        the `suspects`: constraints most likely wrong.

    See Also
    --------
    linkwise.Constraints.check : Whether constraints can be satisfied at all.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, ConstrainedCut
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0], [9.1], [9.2]])
    >>> known = Constraints(9, must_link=[(3, 6)], cannot_link=[(0, 2), (2, 3)])
    >>> model = ConstrainedCut(3, random_state=0).fit(X, constraints=known)
    >>> model.result_.n_violated
    0
    """

    family = "constrained cut"
    minimizes_cut = True
    max_clusters = MOST_EIGENVECTORS
    enforcement = "hard, or soft with constraints_mode"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "objective": [StrOptions({"ncut", "kmeans"})],
        "constraints_mode": [StrOptions({"hard", "soft"})],
        "strength": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "violations": [Interval(Integral, 0, None, closed="left"), None],
        "effort": [StrOptions({"fast", "default", "thorough"})],
        "n_jobs": [Integral, None],
        "verbose": ["verbose", None],
    }
    solve = staticmethod(constrained_cut)

    n_clusters: int = 2
    _: KW_ONLY
    objective: str = "ncut"
    constraints_mode: str = "hard"
    strength: float | str = "auto"
    violations: int | None = None
    effort: str = "default"
    affinity: Affinity | str | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int | None = None

    def _has_bound(self) -> bool:
        return self.objective == "ncut"

    def _keep_samples(self, X: Any) -> None:
        for name in ("_known", "cluster_centers_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.objective == "kmeans":
            self._known = RowIndex(X)
            self.cluster_centers_ = _centers(X, self.labels_)

    def _check_settings(self) -> None:
        if self.objective == "kmeans" and self._is_precomputed:
            raise ValueError(
                'affinity="precomputed" means that X is a graph, but objective="kmeans" clusters '
                'rows of features. Give the features without affinity, or take objective="ncut".'
            )

    def predict(self, X: Any) -> Ints:
        """Assign new samples to the clusters found by `fit`.

        With the objective ``"ncut"`` a sample joins the cluster to which it is most similar, see
        :meth:`ConstrainedClusterer.predict`; with ``"kmeans"`` the one with the nearest centre. A
        duplicate of a training sample gets its label, which constraints may have decided.
        """
        check_is_fitted(self)
        if not hasattr(self, "cluster_centers_"):
            return super().predict(X)
        X = self._new_samples(X)
        labels = squared_distances(X, self.cluster_centers_).argmin(axis=1)
        duplicates = self._known.find(X)
        return np.where(duplicates >= 0, self.labels_[duplicates], labels)

    @property
    def accepts_contradictions(self) -> bool:
        """Whether constraints are soft: then contradictory ones are traded like the others."""
        return self.constraints_mode == "soft"

    def _check_feasible(self, constraints: Constraints) -> None:
        if self.constraints_mode == "hard":
            # `fit` looks for a partition itself, and explains if there is none.
            return
        check_label_count(constraints, self.n_clusters)

    def _solver(self) -> Callable[..., Result]:
        return constrained_kmeans if self.objective == "kmeans" else constrained_cut
