"""COSC: constrained 1-spectral clustering (Rangapuram & Hein 2012)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from linkwise._params import Interval, StrOptions
from linkwise._progress import Progress
from linkwise.linalg.laplacian import degrees
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.partition import relabelled
from linkwise.result import Result
from linkwise.search.allowance import allowance_of, lowest_within
from linkwise.search.bisection import Bisection
from linkwise.search.objective import Context, Task, hard_labels, warn_interrupted, workers
from linkwise.search.one_spectral import Point, Record, Settings
from linkwise.search.problem import rescaled
from linkwise.search.recursion import Recursion
from linkwise.search.soft import (
    check_label_count,
    priced_labels,
    soft_labels,
    violated_items,
    warn_beyond,
)

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Int32s, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.search.objective import Answer, Build
    from linkwise.search.soft import Path


LEAST_WEIGHT = 1e-140  # of the largest one
MOST_UNEVEN = 1e12  # ratio of vertex weights: beyond it sums lose the small ones
PENALTY = 1.0  # of uncertain pairs, in half of what it costs to misplace an average sample


class TradeOff(NamedTuple):
    """The answer at one penalty of violated constraints."""

    gamma: float
    objective: float  # the cut, without the penalty
    n_violated: int


@dataclass(frozen=True, eq=False, repr=False)
class COSCResult(Result):
    """The answer of COSC, with the certificate of its solver.

    Parameters
    ----------
    n_violated : int
        Constraints that the labels violate, counted on the constraints as they were given.
    violated : Constraints
        Those of them that were given as pairs.
    gamma : float
        The penalty of a violated constraint at which the answer was found, in units of the graph's
        weights; 0 if no penalty was needed. With a number of `violations` the answer may be lower
        than what that penalty gives, unless ``refine=False``.
    path : tuple of TradeOff
        Cut and violated constraints from penalty to penalty. For two clusters with hard constraints
        these are the penalties that the best start went through, and violations are counted on the
        contracted graph; with more clusters, those of every split that was tried, one after the
        other, each on the part that was split. Large graphs are searched, and so counted, on a
        coarse level.
    duality_gap : float
        Duality gap of the last inner problem, relative to the norm of its data. `converged` states
        whether that problem proved that no vector near the answer is lower.
    n_inner : int
        Iterations of the inner solver in all; `n_iter` counts its problems.
    """

    n_violated: int = 0
    violated: Constraints | None = None
    gamma: float = 0.0
    path: tuple[TradeOff, ...] = ()
    duality_gap: float = 0.0
    n_inner: int = 0


def cosc(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    violations: int | str | None = None,
    vertex_weights: str | Floats = "degree",
    refine: bool = True,
    n_starts: int = 10,
    balance: str = "lovasz",
    tol: float = 1e-6,
    max_iter: int = 800,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
) -> COSCResult:
    r"""Minimise the cut plus a penalty of violated constraints, by a tight relaxation.

    .. math:: \min_C \; \frac{\mathrm{cut}(C, \bar C) + \gamma \, \#\mathrm{violated}(C)}
       {b(C) \, b(\bar C) / b(V)}

    For two clusters; more are made by repeated splits. `objective` is the sum over clusters of cut
    over vertex weight (for degrees the normalised cut); see :class:`COSC`.
    """
    graph, scale = _scaled_graph(csr_array(W))
    b = _vertex_weights(graph, vertex_weights)
    # More than two clusters with soft constraints need the moves: splits do not know labels. And a
    # minimiser at a penalty is a minimiser, however it is found.
    moves = refine or (violations is not None and (n_clusters > 2 or violations != "auto"))
    settings = Settings(n_starts, moves, balance, tol, max_iter, by_degree=b is None)
    mass, unit = (None, 1.0) if b is None else _search_mass(graph, b)
    on = Bisection.on if n_clusters == 2 else partial(Recursion.on, k=n_clusters)
    with workers(effective_n_jobs(n_jobs)) as run, Progress("COSC", verbose) as progress:
        record = Record(progress.part())
        build: Build = partial(on, graph, mass=mass, settings=settings, record=record)
        context = Context(check_random_state(random_state), run, progress.part())
        task = Task(build, constraints, n_clusters, context)
        if violations is None:
            found = hard_labels(task, PENALTY, check=refine or n_clusters == 2)
            gamma, path = record.gamma, record.path
        else:
            found, gamma, path = _soft_labels(task, violations, graph, b=b, refine=refine)
            unit = 1.0
    if found.interrupted:
        warn_interrupted()
    labels = relabelled(found.labels)
    value_scale = 1.0 if b is None else scale
    return COSCResult(
        labels=labels,
        objective=value_scale * _cut_over_weight(graph, b, labels),
        n_iter=record.n_outer,
        converged=record.converged and not found.interrupted,
        n_violated=constraints.n_violated(labels),
        violated=constraints.violated(labels),
        gamma=scale * gamma,
        path=tuple(TradeOff(scale * g, value_scale * unit * value, n) for g, value, n in path),
        duality_gap=record.gap,
        n_inner=record.n_iter,
    )


def _soft_labels(
    task: Task, violations: int | str, W: csr_array, *, b: Floats | None, refine: bool
) -> tuple[Answer, float, tuple[Point, ...]]:
    """Trade all constraints against the cut, at one penalty or within a number of violations.

    Returns the labels, their penalty, and what other penalties gave.
    """
    budget = None if isinstance(violations, str) else int(violations)
    if budget is None:
        found, path, strength = soft_labels(task, PENALTY, None)
    elif refine:
        found, path, strength = soft_labels(task, "auto", budget, warns=False)
        found = _within_allowance(task, found, path, W=W, b=b, n_allowed=budget)
    else:
        explore = partial(_priced_minima, task, W=W, b=b)
        found, path, strength = priced_labels(task, budget, explore)
    n, unit = task.constraints.n_samples, float(degrees(W).mean()) / 2
    points = []
    for t, z in zip(path.strengths, path.partitions, strict=True):
        value = _cut_over_weight(W, b, z[:n].astype(np.intp))
        points.append(Point(t * unit, value, int(violated_items(task.constraints, z).sum())))
    return found, strength * unit, tuple(points)


def _within_allowance(
    task: Task, found: Answer, path: Path, *, W: csr_array, b: Floats | None, n_allowed: int
) -> Answer:
    """Return the lowest cut within the allowance that is met from the partitions of the path."""
    if found.interrupted:
        return found
    problem = allowance_of(W, b, task.constraints, k=task.k, n_allowed=n_allowed)
    within = lowest_within(problem, path.partitions, task.context.rng)
    labels = within.z[: task.constraints.n_samples].astype(np.intp)
    if within.interrupted and np.isinf(within.cut):
        return found._replace(interrupted=True)
    if np.isinf(within.cut):
        warn_beyond(n_allowed, int(violated_items(task.constraints, within.z).sum()))
    return found._replace(labels=labels, interrupted=within.interrupted)


def _priced_minima(task: Task, path: Path, *, W: csr_array, b: Floats | None) -> list[Int32s]:
    """Return what local search finds at the penalties of a path, whatever is violated."""
    anything = allowance_of(
        W, b, task.constraints, k=task.k, n_allowed=task.constraints.n_samples**2
    )
    unit = float(degrees(W).mean()) / 2
    problems = [anything._replace(gamma=t * unit) for t in path.strengths]
    return [lowest_within(problem, path.partitions, task.context.rng).z for problem in problems]


def _cut_over_weight(W: csr_array, b: Floats | None, labels: Ints) -> float:
    """Return the sum over the clusters of cut over vertex weight; a ratio 0 / 0 counts as 0."""
    k = int(labels.max()) + 1
    heads = np.repeat(labels, np.diff(W.indptr))
    crossing = heads != labels[W.indices]
    cut = np.bincount(heads[crossing], weights=W.data[crossing], minlength=k)
    weight = np.bincount(labels, weights=degrees(W) if b is None else b, minlength=k)
    return float(np.divide(cut, weight, out=np.zeros(k), where=weight > 0).sum())


def _search_mass(W: csr_array, b: Floats) -> tuple[Floats | None, float]:
    """Scale the vertex weights up to the degrees, as the moves need them; return the factor too."""
    d = degrees(W)
    if not d.any():
        return None, 1.0
    factor = float((d / b).max())
    return factor * b, factor


def _scaled_graph(W: csr_array) -> tuple[csr_array, float]:
    """Return the graph without loops in units of its largest weight, and that.

    The squares of its smallest weights do not vanish.
    """
    graph = csr_array(W, copy=True)
    graph.sum_duplicates()
    graph.data[np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) == graph.indices] = 0.0
    graph.eliminate_zeros()
    graph, largest = rescaled(graph)
    np.maximum(graph.data, LEAST_WEIGHT, out=graph.data)
    return graph, largest


def _vertex_weights(W: csr_array, given: str | Floats) -> Floats | None:
    """Return vertex weights, or None for the degrees."""
    if isinstance(given, str):
        return None if given == "degree" else np.ones(W.shape[0])
    b = np.asarray(given, dtype=np.float64)
    if b.shape != (W.shape[0],):
        raise ValueError(
            f"vertex_weights has shape {b.shape}, but there are {W.shape[0]} samples. "
            "Give one weight for each."
        )
    wrong = np.flatnonzero(~(np.isfinite(b) & (b > 0)))
    if wrong.size:
        raise ValueError(
            f"vertex_weights[{wrong[0]}] is {b[wrong[0]]:g}. Vertex weights must be positive and "
            "finite; for samples that should not count, take a small one."
        )
    if b.max() > MOST_UNEVEN * b.min():
        raise ValueError(
            f"vertex_weights go from {b.min():g} to {b.max():g}: sums lose the small ones. Keep "
            f"them within a factor of {MOST_UNEVEN:g}."
        )
    return b


class COSC(ConstrainedClusterer):
    """Constrained 1-spectral clustering (Rangapuram & Hein, 2012).

    The normalised cut under constraints, by a relaxation that is tight: its minimum is the minimum
    over partitions. Must-links are contracted; the penalty of violated cannot-links rises until
    none is left. Hard by default: every certain constraint holds, for any number of clusters, or
    :class:`~linkwise.exceptions.ConflictError` names the pairs that make it impossible.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. More than two are made by repeated splits. Set it to the number that
        you expect.
    violations : int or "auto", default=None
        None satisfies every certain constraint and trades pairs of lower belief. A number makes all
        constraints soft and looks for the lowest cut that violates at most so many (with
        `refine=False` for the minimiser at the lowest penalty that does); ``"auto"`` takes the
        penalty of half a mean degree. Contradictory constraints are accepted then. Give a number,
        or ``"auto"``, if some constraints may be wrong.
    vertex_weights : {"degree", "unit"} or array of shape (n_samples,), default="degree"
        What balances the clusters: degrees (normalised cut), one (ratio cut), or positive weights.
        Take ``"unit"`` if clusters should have equal numbers of samples.
    refine : bool, default=True
        Whether the partitions are refined by moves that keep every constraint, as in
        :class:`~linkwise.ConstrainedCut`. False is the method of the paper as it is: with more
        than two clusters it is the lowest cut of `n_starts` recursions, and may violate
        cannot-links, which `result_` then lists. Set False only to repeat the paper.
    n_starts : int, default=10
        Starts for two clusters: the spectral vector, SCLC, and random ones. Fewer are made if
        the first ones agree. For more clusters, with `refine=False`, runs of the recursion. Take
        fewer on very large graphs.
    balance : {"lovasz", "deviation"}, default="lovasz"
        How the balance of the two sides is extended to vectors: the Lovasz extension, as in the
        authors' program, or the weighted deviation from the mean, as in the paper. Change it only
        to repeat the paper.
    tol : float, default=1e-6
        When an inner problem counts as solved without descent, relative to its data. Lower it if
        `duality_gap` is too large for you.
    max_iter : int, default=800
        Iterations of the inner solver without descent before it gives up. Raise it if `converged`
        is False.
    affinity
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The answer does not depend on `n_jobs`. Give a number to get the same
        answer every time.
    n_jobs : int, default=None
        Threads for independent starts; -1 for all. Set -1 on an idle machine.
    verbose : int or None, default=None
        None shows a progress bar on a terminal or in a notebook if the fit takes more than two
        seconds, 0 shows nothing, 1 prints a line for each start, and every five seconds. Set 0 in
        scripts whose output is read by programs.

    Attributes
    ----------
    result_ : COSCResult
        Labels, objective, violated constraints, the path of penalties, and the certificate.
    n_iter_ : int
        Inner problems that were solved.

    References
    ----------
    S. S. Rangapuram, M. Hein: Constrained 1-spectral clustering. AISTATS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import COSC, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> COSC(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Rangapuram & Hein 2012"
    family = "constrained cut"
    minimizes_cut = True
    max_clusters = MOST_EIGENVECTORS
    enforcement = "hard, or soft with violations"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "violations": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), None],
        "vertex_weights": [StrOptions({"degree", "unit"}), "array-like"],
        "refine": ["boolean"],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "balance": [StrOptions({"lovasz", "deviation"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose", None],
    }
    solve = staticmethod(cosc)

    n_clusters: int = 2
    _: KW_ONLY
    violations: int | str | None = None
    vertex_weights: str | Floats = "degree"
    refine: bool = True
    n_starts: int = 10
    balance: str = "lovasz"
    tol: float = 1e-6
    max_iter: int = 800
    affinity: Affinity | str | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int | None = None

    def _has_bound(self) -> bool:
        return isinstance(self.vertex_weights, str) and self.vertex_weights == "degree"

    def _check_settings(self) -> None:
        if self.violations is not None and not self.refine and self.n_clusters > 2:
            raise ValueError(
                f"violations={self.violations!r} with {self.n_clusters} clusters needs the search "
                "for partitions. Set refine=True, or leave violations out."
            )

    @property
    def accepts_contradictions(self) -> bool:
        """Whether constraints are soft: then contradictory ones are traded like the others."""
        return self.violations is not None

    def _check_feasible(self, constraints: Constraints) -> None:
        if self.violations is None:
            # `fit` looks for a partition itself, and explains if there is none.
            return
        check_label_count(constraints, self.n_clusters)
